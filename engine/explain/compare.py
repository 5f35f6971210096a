"""Walks from targets down to root causes: each target against what it was built from, by slot. Pure.

The counterpart of a child is the child of its parent's former preimage in the same slot, not what its own label was
last built as: after a revert that would mislead. Where documents were added, removed or moved, leaves correspond by
document and inner nodes by height.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from gsum.engine.explain.causes import Reader, find_causes
from gsum.engine.explain.documents import ListChange, list_change
from gsum.engine.explain.model import Cause, CauseKind, Node
from gsum.engine.explain.records import Record, Records, Shape, same_shape
from gsum.store.digests import Key


class Side(Protocol):
    """The tree that is explained."""

    def key(self, label: str) -> Key:
        """Return a target's key."""

    def children(self, label: str) -> Sequence[str]:
        """Return the labels below a target, in slot order."""

    def latest(self, label: str) -> Key | None:
        """Return what a label was last built as, where its parent can't tell."""

    def unbuilt(self, label: str) -> Cause:
        """Return the cause of a target that was never built."""

    def unchanged(self, label: str) -> Cause:
        """Return the cause for which a target runs although its key did not change."""

    def unknown(self, label: str) -> Cause:
        """Return the cause of a target whose former or present preimage is not kept."""


class _Structure(msgspec.Struct, frozen=True):
    """Two trees of different documents: their shapes, and what became of the list."""

    before: Shape
    now: Shape
    change: ListChange


class _Found(msgspec.Struct, frozen=True):
    """A visited target: its node, and every cause at or below it that changed its key, by identity."""

    node: Node
    causes: dict[tuple[CauseKind, str, str], Cause]


class Comparison:
    """Explains targets of one side. `explain` each top once; then take `causes` and `nodes`."""

    def __init__(self, side: Side, records: Records, reader: Reader, runs: Collection[str]) -> None:
        self._side, self._records, self._reader = side, records, reader
        self._runs = frozenset(runs)
        self._order = tuple(runs)
        self._visited: dict[str, _Found] = {}
        self._direct: dict[str, list[Cause]] = {}
        self._tops: list[str] = []

    def explain(self, label: str, previous: Key | None) -> None:
        """Compare a target with what it was built from before (null: never)."""
        self._visit(label, previous, self._structure_of(label, previous))
        self._tops.append(label)

    def result(self) -> tuple[tuple[Cause, ...], tuple[Node, ...]]:
        """Return all causes, each once with the targets that run because of it, and the trees of the tops."""
        merged: dict[tuple[CauseKind, str, str], Cause] = {}
        targets: dict[tuple[CauseKind, str, str], list[str]] = {}
        for found in self._visited.values():
            for identity, cause in found.causes.items():
                merged.setdefault(identity, cause)
        for label in self._order:
            for identity in self._visited[label].causes if label in self._visited else ():
                targets.setdefault(identity, []).append(label)
        ranks = {kind: rank for rank, kind in enumerate(CauseKind)}
        ordered = sorted(merged.values(), key=lambda cause: (ranks[cause.kind], cause.subject))
        places = {cause.identity: place for place, cause in enumerate(ordered)}
        causes = tuple(
            msgspec.structs.replace(cause, targets=tuple(targets.get(cause.identity, ()))) for cause in ordered
        )
        return causes, tuple(self._placed(self._visited[top].node, places) for top in self._tops)

    def _placed(self, node: Node, places: dict[tuple[CauseKind, str, str], int]) -> Node:
        direct = sorted({places[cause.identity] for cause in self._direct[node.label]})
        children = tuple(self._placed(child, places) for child in node.children)
        return msgspec.structs.replace(node, causes=tuple(direct), children=children)

    def _structure_of(self, label: str, previous: Key | None) -> _Structure | None:
        """Return how the documents below a target changed; None where they and their slots are the same."""
        key = self._side.key(label)
        if previous is None or same_shape(self._records, previous, key):
            return None
        old, new = Shape(self._records, previous), Shape(self._records, key)
        change = list_change(
            old.documents(previous),
            new.documents(key),
            lambda document: self._reader.document(label, document),
            label.rpartition("/")[0],
        )
        return _Structure(old, new, change)

    def _visit(self, label: str, previous: Key | None, structure: _Structure | None) -> _Found:
        if label in self._visited:
            return self._visited[label]
        key, runs = self._side.key(label), label in self._runs
        before = None if previous is None else self._records.get(previous)
        causes: dict[tuple[CauseKind, str, str], Cause] = {}
        nodes: list[Node] = []
        for child, child_previous, child_structure in self._pairs(label, previous, before, structure):
            changed = child_previous != self._side.key(child)
            if changed or child in self._runs:
                found = self._visit(child, child_previous, child_structure)
                nodes.append(found.node)
                causes |= found.causes if changed else {}
        direct = list(self._own(label, previous, structure, causes))
        causes |= {cause.identity: cause for cause in direct}
        self._direct[label] = direct
        self._visited[label] = _Found(Node(label, key, previous, runs, children=tuple(nodes)), causes)
        return self._visited[label]

    def _own(
        self,
        label: str,
        previous: Key | None,
        structure: _Structure | None,
        below: Collection[tuple[CauseKind, str, str]],
    ) -> Iterable[Cause]:
        """Yield the causes that lie at a target itself; `below` has those of its children."""
        key = self._side.key(label)
        if previous is None:
            added = self._added(key, structure)
            yield self._side.unbuilt(label) if added is None else added
            return
        if previous == key:
            if label in self._runs:
                yield self._side.unchanged(label)
            return
        before, now = self._records.get(previous), self._records.get(key)
        if before is None or now is None:
            yield self._side.unknown(label)
            return
        found = find_causes(self._reader, self._records, label, before, now)
        found += [cause for cause in self._list_causes(previous, key, structure) if cause.identity not in below]
        yield from found
        if not found and not below:
            yield self._side.unknown(label)

    def _added(self, key: Key, structure: _Structure | None) -> Cause | None:
        document = self._records.document(key)
        return None if structure is None or document is None else structure.change.added.get(document)

    def _list_causes(self, previous: Key, key: Key, structure: _Structure | None) -> list[Cause]:
        if structure is None or self._records.document(key) is not None:
            return []
        return structure.change.found_in(structure.before.documents(previous), structure.now.documents(key))

    def _pairs(
        self, label: str, previous: Key | None, before: Record | None, structure: _Structure | None
    ) -> Iterator[tuple[str, Key | None, _Structure | None]]:
        """Yield a target's children, each with the key of its counterpart in the former tree, if it has one."""
        children = self._side.children(label)
        if previous is None or before is None:
            for child in children:
                latest = self._side.latest(child)
                yield child, latest, self._structure_of(child, latest)
            return
        slots = self._records.children(previous)
        for slot, child in enumerate(children):
            at_slot = slots[slot] if slot < len(slots) else None
            yield child, at_slot if structure is None else self._counterpart(structure, child, at_slot), structure

    def _counterpart(self, structure: _Structure, child: str, at_slot: Key | None) -> Key | None:
        key = self._side.key(child)
        document = self._records.document(key)
        if document is not None:
            return structure.before.leaves.get(document)
        height = structure.now.height(key)
        if at_slot is not None and structure.before.height(at_slot) == height:
            return at_slot
        same = structure.before.inner.get(height)
        return same[-1] if same else structure.before.root
