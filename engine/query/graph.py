"""The target graph: actions, documents, prompts, schemas and toolchains, and what each depends on. Pure.

Nodes are numbered in label order, so that a set of numbers sorts as its labels do. Edges go from a target to what it
depends on, in declared order: children, document, prompt, schema, toolchain.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache

from gsum.rules.config import Workspace
from gsum.rules.graph import Action, ActionGraph
from gsum.rules.labels import Pattern, document_label

DOCUMENT, PROMPT, SCHEMA, TOOLCHAIN = "document", "prompt", "schema", "toolchain"
INPUT_KINDS = (DOCUMENT, PROMPT, SCHEMA, TOOLCHAIN)
"""Kinds of nodes that are no actions; an action's kind is its `ActionKind`'s value."""

ATTRIBUTES = (
    *("kind", "rule", "package", "dossier", "source", "principal", "prompt", "schema", "toolchain"),
    *("document", "active", "eligible", "version", "input_tokens", "fan_in", "name"),
)
"""What `attr` can ask for; a node has those that apply to its kind."""

Attributes = Mapping[str, str]


def _no_attributes(label: str) -> Attributes:
    del label
    return {}


def _complete(pattern: Pattern) -> bool:
    del pattern
    return False


class TargetGraph:
    """An acyclic graph of labelled nodes. Immutable; its reverse is made when it is first asked for."""

    def __init__(
        self,
        kinds: Mapping[str, str],
        edges: Mapping[str, Iterable[str]],
        attributes: Callable[[str], Attributes] = _no_attributes,
        unread: Callable[[Pattern], bool] = _complete,
    ) -> None:
        """Take the kind of each node by label, and by label the labels it depends on (each a node).

        `attributes` gives those of a label beside its kind; `unread` says whether a pattern covers targets that were
        left out of the graph because the query does not need them.
        """
        self._attributes = attributes
        self.unread = unread
        self.labels: tuple[str, ...] = tuple(sorted(kinds))
        self.numbers: dict[str, int] = {label: number for number, label in enumerate(self.labels)}
        self.kinds: tuple[str, ...] = tuple(kinds[label] for label in self.labels)
        number = self.numbers.__getitem__
        self.deps: tuple[tuple[int, ...], ...] = tuple(
            tuple(dict.fromkeys(map(number, edges.get(label, ())))) for label in self.labels
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

    def attributes(self, number: int) -> Attributes:
        """Return the attributes of a node."""
        return {"kind": self.kinds[number], **self._attributes(self.labels[number])}

    def starting_with(self, prefix: str) -> range:
        """Return the nodes whose label starts with `prefix`."""
        first = bisect_left(self.labels, prefix)
        return range(first, bisect_left(self.labels, prefix + "\U0010ffff", lo=first))


def target_graph(
    workspace: Workspace, graph: ActionGraph, unread: Callable[[Pattern], bool] = _complete
) -> TargetGraph:
    """Return the target graph of a workspace's action graph.

    Prompts, schemas and toolchains that nothing uses are nodes too, and so are documents that are withdrawn or that
    the principal may not read: only their ids are known here.
    """
    kinds: dict[str, str] = {}
    edges: dict[str, list[str]] = {}
    leaves: dict[str, Action] = {}
    for kind, names in ((PROMPT, workspace.prompts), (SCHEMA, workspace.schemas), (TOOLCHAIN, workspace.toolchains)):
        kinds |= {input_label(kind, name): kind for name in names}
    for label, action in graph.actions.items():
        kinds[label] = action.kind.value
        edges[label] = below = list(action.children)
        if action.scope is not None:
            document = document_of(action)
            kinds[document] = DOCUMENT
            leaves[document] = action
            below.append(document)
        below += _declared(action.prompt, action.schema, action.toolchain)

    def attributes(label: str) -> Attributes:
        if label in graph.actions:
            return _action_attributes(graph.actions[label])
        if label in leaves:
            return _document_attributes(leaves[label])
        return {"name": label.partition(":")[2]}

    return TargetGraph(kinds, edges, attributes, unread)


def _action_attributes(action: Action) -> Attributes:
    found: dict[str, object] = {name: getattr(action, name) for name in ATTRIBUTES if hasattr(action, name)}
    del found["kind"]
    if action.scope is not None:
        found |= _document_attributes(action)
    return {name: str(value) for name, value in found.items() if value is not None}


def _document_attributes(action: Action) -> Attributes:
    """Return what may be said of a document: of one that may not be read, its scope has no version."""
    scope = action.scope
    assert scope is not None
    found = {"document": scope.id, "source": action.source, "dossier": action.dossier}
    found |= {"active": str(scope.active).lower(), "eligible": str(scope.eligible).lower()}
    content_names_it = scope.text is not None and scope.text.startswith(scope.version or "")
    return found if scope.version is None or content_names_it else {**found, "version": scope.version}


def input_label(kind: str, name: str) -> str:
    """Return the label of a prompt, schema or toolchain."""
    return f"//{kind}:{name}"


def document_of(action: Action) -> str:
    """Return the label of a leaf's document."""
    assert action.scope is not None
    return str(document_label(action.source, action.dossier, action.scope.id))


@lru_cache(maxsize=256)
def _declared(prompt: str | None, schema: str, toolchain: str | None) -> tuple[str, ...]:
    """Return the labels of what many actions refer to by name."""
    named = ((PROMPT, prompt), (SCHEMA, schema), (TOOLCHAIN, toolchain))
    return tuple(input_label(kind, name) for kind, name in named if name is not None)
