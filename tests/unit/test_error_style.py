"""Messages of errors, read from the code: one sentence that begins in lower case or with a name, without a period."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(path for name in ("cli", "engine", "rules", "store") for path in (ROOT / name).rglob("*.py"))
TREES = {path: ast.parse(path.read_text("utf-8")) for path in MODULES}
PLACES = {"UsageError": 0, "Refusal": 1, "Refused": 1, "Failed": 2}
"""Where the message stands in what is no GsumError and is printed alike: click's errors, values of failed actions."""


def name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def error_classes() -> frozenset[str]:
    """Return the names of GsumError and all classes below it."""
    bases = {
        node.name: {name_of(base) for base in node.bases}
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = {"GsumError"}
    while more := {name for name, above in bases.items() if above & found} - found:
        found |= more
    return frozenset(found)


ERRORS = error_classes()


def parts(text: ast.expr) -> tuple[str, str]:
    """Return how a literal begins and ends; a place filled in counts as a name in backticks."""
    pieces = text.values if isinstance(text, ast.JoinedStr) else [text]
    shown = [piece.value if isinstance(piece, ast.Constant) else "`" for piece in pieces]
    return str(shown[0]), str(shown[-1])


def calls(tree: ast.Module) -> Iterator[tuple[ast.Call, int]]:
    """Yield the calls that make an error, with the place of the message among their arguments."""
    inside = {
        call
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name in ERRORS
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "__init__"
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (node in inside or name_of(node.func) in ERRORS | PLACES.keys()):
            yield node, PLACES.get(name_of(node.func), 0)


def messages() -> list[tuple[str, ast.expr]]:
    found = []
    for path, tree in TREES.items():
        for call, place in calls(tree):
            if len(call.args) > place and isinstance(call.args[place], ast.JoinedStr | ast.Constant):
                found.append((f"{path.relative_to(ROOT)}:{call.lineno}", call.args[place]))
    return found


MESSAGES = messages()


def test_the_messages_of_every_layer_are_looked_at() -> None:
    assert {place.split("/")[0] for place, _ in MESSAGES} == {"cli", "engine", "rules", "store"}
    assert len(MESSAGES) > 100


@pytest.mark.parametrize(("place", "text"), MESSAGES, ids=[place for place, _ in MESSAGES])
def test_a_message_begins_in_lower_case_and_ends_without_a_period(place: str, text: ast.expr) -> None:
    begin, end = parts(text)
    assert begin[:1] == begin[:1].lower(), place
    assert not end.split("\n")[0].endswith("."), place
