"""How values become text: errors, JSON documents, tables and aligned facts. Prints; knows no command.

Text that is piped is stable: no colour, no progress, no width of a terminal.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
import msgspec

from gsum.cli.config import Config
from gsum.cli.light import counted as counted  # words that a null build needs too
from gsum.cli.light import duration as duration
from gsum.store.errors import GsumError

JSON_SCHEMA = 1
"""Version of every JSON document printed; a change of meaning bumps it."""

_INDENT = "  "
STATE_COLORS = {
    "VALID": "green",
    "PARTIAL": "yellow",
    "INELIGIBLE": "cyan",
    "INVALID": "red",
    "STALE": "red",
    "NOT BUILT": "yellow",
    "FAILED": "red",
}


def emit(config: Config, text: str, *, err: bool = False) -> None:
    """Print one piece of text and a newline."""
    click.echo(text, err=err, color=config.colored)


def emit_json(command: str, document: Mapping[str, Any]) -> None:
    """Print the one JSON document of a command: `schema`, `command`, then its own keys."""
    print_json({"schema": JSON_SCHEMA, "command": command, **document})


def print_json(document: Mapping[str, Any]) -> None:
    """Print a JSON document, indented, as UTF-8 whatever the locale."""
    click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2))


def safe(text: str) -> str:
    """Return a text of unknown origin fit for a terminal: what could steer it or hide is written as an escape."""
    return "".join(
        character if character.isprintable() or unicodedata.category(character) == "Zs" else _escape(character)
        for character in text
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _encodable(text: str) -> str:
    """Write as escapes what UTF-8 can't: bytes of arguments and file names that are no text."""
    return text.encode("utf-8", "backslashreplace").decode()


def state_text(state: str, width: int = 0) -> str:
    """Return a state's name in its colour, padded to `width`."""
    return click.style(state, fg=STATE_COLORS.get(state)) + " " * max(0, width - len(state))


def aligned(facts: Mapping[str, object], indent: str = _INDENT) -> list[str]:
    """Return lines of names and values, values aligned; a value of several lines goes on under itself."""
    width = max((len(name) for name in facts), default=0)
    lines = []
    for name, value in facts.items():
        first, *more = [safe(line) for line in str(value).split("\n")]
        lines.append(f"{indent}{name:<{width}}  {first}".rstrip())
        lines += [f"{indent}{'':<{width}}  {line}".rstrip() for line in more]
    return lines


def table(rows: Iterable[Sequence[str]], indent: str = "") -> list[str]:
    """Return lines of columns, each as wide as its widest cell; the last one is not padded."""
    cells = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        indent + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def error_lines(message: str, facts: Mapping[str, object], hint: str | None, excerpt: str | None = None) -> list[str]:
    """Return the lines of an error: one sentence, aligned facts, the excerpt, what to type."""
    lines = [f"{click.style('error:', fg='red', bold=True)} {safe(message)}", *aligned(facts)]
    if excerpt:
        lines += ["", *(f"{_INDENT}{safe(line)}".rstrip() for line in excerpt.split("\n")), ""]
    if hint:
        first, *more = [safe(line.strip()) for line in hint.split("\n")]
        lines.append(f"{click.style('hint:', fg='cyan', bold=True)} {first}")
        lines += [f"      {line}" for line in more]
    return lines


def error_document(message: str, facts: Mapping[str, object], hint: str | None, exit_code: int) -> dict[str, Any]:
    """Return the JSON document of an error."""
    plain = {
        name: value if isinstance(value, int | bool | None) else _encodable(str(value)) for name, value in facts.items()
    }
    return {
        "schema": JSON_SCHEMA,
        "error": {
            "message": _encodable(message),
            "facts": plain,
            "hint": None if hint is None else _encodable(hint),
            "exit_code": exit_code,
        },
    }


def print_error(error: GsumError, *, json: bool, color: bool | None = None) -> None:
    """Print an error: text on standard error, or one JSON document on standard output."""
    if json:
        print_json(error_document(error.message, error.facts, error.hint, int(error.exit_code)))
        return
    for line in error_lines(error.message, error.facts, error.hint, error.excerpt):
        click.echo(line, err=True, color=color)


def on_terminal() -> bool:
    """Whether a person watches standard error."""
    return sys.stderr.isatty()
