"""The target graph: actions, documents, prompts, schemas and toolchains, and what each depends on. Pure.

Nodes are numbered in label order, so that a set of numbers sorts as its labels do. Edges go from a target to what it
depends on, in declared order: children, document, prompt, schema, toolchain.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import cached_property

from gsum.rules.config import Workspace
from gsum.rules.graph import Action, ActionGraph
from gsum.rules.labels import document_label

DOCUMENT, PROMPT, SCHEMA, TOOLCHAIN = "document", "prompt", "schema", "toolchain"
INPUT_KINDS = (DOCUMENT, PROMPT, SCHEMA, TOOLCHAIN)
"""Kinds of nodes that are no actions; an action's kind is its `ActionKind`'s value."""


class TargetGraph:
    """An acyclic graph of labelled nodes. Immutable; its reverse is made when it is first asked for."""

    def __init__(self, kinds: Mapping[str, str], edges: Mapping[str, Iterable[str]]) -> None:
        """Take the kind of each node by label, and by label the labels it depends on (each a node)."""
        self.labels: tuple[str, ...] = tuple(sorted(kinds))
        self.numbers: dict[str, int] = {label: number for number, label in enumerate(self.labels)}
        self.kinds: tuple[str, ...] = tuple(kinds[label] for label in self.labels)
        self.deps: tuple[tuple[int, ...], ...] = tuple(
            tuple(dict.fromkeys(self.numbers[other] for other in edges.get(label, ()))) for label in self.labels
        )

    @cached_property
    def rdeps(self) -> tuple[tuple[int, ...], ...]:
        """By node: the nodes that depend on it directly, in label order."""
        above: list[list[int]] = [[] for _ in self.labels]
        for number, below in enumerate(self.deps):
            for other in below:
                above[other].append(number)
        return tuple(map(tuple, above))

    @cached_property
    def actions(self) -> frozenset[int]:
        """The nodes that are actions."""
        return frozenset(number for number, kind in enumerate(self.kinds) if kind not in INPUT_KINDS)

    def is_action(self, number: int) -> bool:
        """Whether a node is an action."""
        return number in self.actions

    def starting_with(self, prefix: str) -> range:
        """Return the nodes whose label starts with `prefix`."""
        first = bisect_left(self.labels, prefix)
        return range(first, bisect_left(self.labels, prefix + "\U0010ffff", lo=first))


def target_graph(workspace: Workspace, graph: ActionGraph) -> TargetGraph:
    """Return the target graph of a workspace's action graph.

    Prompts, schemas and toolchains that nothing uses are nodes too, and so are documents that are withdrawn or that
    the principal may not read: only their ids are known here.
    """
    kinds: dict[str, str] = {}
    edges: dict[str, list[str]] = {}
    for kind, names in ((PROMPT, workspace.prompts), (SCHEMA, workspace.schemas), (TOOLCHAIN, workspace.toolchains)):
        kinds |= {input_label(kind, name): kind for name in names}
    for label, action in graph.actions.items():
        kinds[label] = action.kind.value
        edges[label] = [*action.children, *_inputs(action)]
        if action.scope is not None:
            kinds[document_of(action)] = DOCUMENT
    return TargetGraph(kinds, edges)


def input_label(kind: str, name: str) -> str:
    """Return the label of a prompt, schema or toolchain."""
    return f"//{kind}:{name}"


def document_of(action: Action) -> str:
    """Return the label of a leaf's document."""
    assert action.scope is not None
    return str(document_label(action.source, action.dossier, action.scope.id))


def _inputs(action: Action) -> list[str]:
    found = [] if action.scope is None else [document_of(action)]
    named = ((PROMPT, action.prompt), (SCHEMA, action.schema), (TOOLCHAIN, action.toolchain))
    return found + [input_label(kind, name) for kind, name in named if name is not None]
