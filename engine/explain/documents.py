"""Documents that were added, removed or moved between two lists. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

import msgspec

from gsum.engine.explain.model import Cause, CauseKind, FieldChange


class ListChange(msgspec.Struct, frozen=True):
    """How one list of documents became another, as causes by document; `moved` is one cause for all that moved."""

    added: dict[str, Cause]
    removed: dict[str, Cause]
    moved: Cause | None

    def found_in(self, before: Sequence[str], now: Sequence[str]) -> list[Cause]:
        """Return the causes for which a node's documents changed from `before` to `now`."""
        if tuple(before) == tuple(now):
            return []
        here = [self.added[name] for name in now if name in self.added]
        here += [self.removed[name] for name in before if name in self.removed]
        if here:
            return here
        if self.moved is not None:
            return [self.moved]
        return [*self.added.values(), *self.removed.values()]


def list_change(before: Sequence[str], now: Sequence[str], label_of: Callable[[str], str], where: str) -> ListChange:
    """Compare two lists of distinct document ids; `label_of` gives a document's label, `where` names them all."""
    old, new = set(before), set(now)
    added = {name: _one(CauseKind.ADDED, label_of(name), name, "added", None, name) for name in now if name not in old}
    removed = {
        name: _one(CauseKind.REMOVED, label_of(name), name, "removed", name, None) for name in before if name not in new
    }
    return ListChange(added, removed, _moved([n for n in before if n in new], [n for n in now if n in old], where))


def moved_documents(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """Return a smallest set of documents whose move explains another order of the same documents."""
    place = {name: number for number, name in enumerate(before)}
    tails: list[int] = []
    ends: list[str] = []
    earlier: dict[str, str | None] = {}
    for name in now:
        slot = bisect_left(tails, place[name])
        earlier[name] = ends[slot - 1] if slot else None
        tails[slot : slot + 1], ends[slot : slot + 1] = [place[name]], [name]
    stayed: set[str] = set()
    current = ends[-1] if ends else None
    while current is not None:
        stayed.add(current)
        current = earlier[current]
    return [name for name in now if name not in stayed]


def _one(kind: CauseKind, label: str, name: str, fate: str, before: str | None, after: str | None) -> Cause:
    change = FieldChange(("documents",), before, after)
    note = "the number of documents changes which of them stand in one group"
    return Cause(kind, label, f"document `{name}` {fate}", (change,), note=note)


def _moved(before: list[str], now: list[str], where: str) -> Cause | None:
    moved = moved_documents(before, now)
    if not moved:
        return None
    places = ", ".join(f"`{name}` from place {before.index(name) + 1} to {now.index(name) + 1}" for name in moved)
    change = FieldChange(("documents",), before, now)
    note = "the order of documents is part of the key"
    return Cause(CauseKind.REORDERED, where, f"documents reordered: {places}", (change,), note=note)
