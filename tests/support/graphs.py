"""Hand-made action graphs for tests of pure modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gsum.rules.graph import Action, ActionGraph, ActionKind
from gsum.rules.snapshot import Scope


def make_action(label: str, children: Sequence[str] = (), *, scope: Scope | None = None, **changes) -> Action:
    """Return an action with plain values for all that a test does not care about."""
    fields = {
        "label": label,
        "kind": ActionKind.REDUCE if children else ActionKind.MAP,
        "rule": "summary_tree",
        "package": "dossier",
        "dossier": "S-1",
        "source": "corpus",
        "principal": "reader",
        "children": tuple(children),
        "scope": scope,
        "path": None,
        "prompt": "map",
        "schema": "fact",
        "toolchain": "fake",
        "input_tokens": 100,
        "fan_in": 2 if children else None,
    }
    return Action(**(fields | changes))


def make_graph(children: Mapping[str, Sequence[str]], requested: Sequence[str]) -> ActionGraph:
    """Return a graph from a mapping of label to children, which must stand before their parents."""
    return ActionGraph({label: make_action(label, below) for label, below in children.items()}, tuple(requested))
