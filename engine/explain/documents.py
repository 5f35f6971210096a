"""Documents that were added, removed or moved between two lists. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence

import msgspec

from gsum.engine.explain.model import Cause, CauseKind, FieldChange

_NUMBER = "the number of documents changes which of them stand in one group"
_PLACES = "the place of a document decides which of them stand in one group"
"""Said where as many documents came as went."""


class ListChange(msgspec.Struct, frozen=True):
    """How one list of documents became another: causes by document, and one for all that moved."""

    before: tuple[str, ...]
    now: tuple[str, ...]
    added: dict[str, Cause]
    removed: dict[str, Cause]
    moved: tuple[str, ...]
    reordered: Cause | None

    def found_in(self, before: Sequence[str], now: Sequence[str]) -> list[Cause]:
        """Return the causes for which a node's documents, a run of each list, changed from `before` to `now`."""
        if tuple(before) == tuple(now):
            return []
        shifted = self._lead(self.before, before[0]) != self._lead(self.now, now[0])
        names = {*before, *now}
        new, old = _span(self.now, names, shifted), _span(self.before, names, shifted)
        found = [self.added[name] for name in new if name in self.added]
        found += [self.removed[name] for name in old if name in self.removed]
        if self.reordered is not None and (not found or not names.isdisjoint(self.moved)):
            found.append(self.reordered)
        return found

    def _lead(self, documents: Sequence[str], first: str) -> int:
        """Return how many documents of both lists stand before a run."""
        lead = documents[: documents.index(first)]
        return sum(name not in self.added and name not in self.removed for name in lead)


def _span(documents: Sequence[str], names: Collection[str], from_start: bool) -> Sequence[str]:
    """Return the part of a list from the first to the last of `names` in it, or from its start."""
    places = [place for place, name in enumerate(documents) if name in names]
    return documents[0 if from_start else places[0] : places[-1] + 1]


def list_change(before: Sequence[str], now: Sequence[str], label_of: Callable[[str], str], where: str) -> ListChange:
    """Compare two lists of distinct document ids; `label_of` gives a document's label, `where` names them all."""
    old, new = set(before), set(now)
    note = _PLACES if len(before) == len(now) else _NUMBER
    added = {
        name: Cause(CauseKind.ADDED, label_of(name), f"document `{name}` added", _listed(None, name), note=note)
        for name in now
        if name not in old
    }
    removed = {
        name: Cause(CauseKind.REMOVED, label_of(name), f"document `{name}` removed", _listed(name, None), note=note)
        for name in before
        if name not in new
    }
    old_kept, new_kept = [name for name in before if name in new], [name for name in now if name in old]
    moved = moved_documents(old_kept, new_kept)
    reordered = _reordered(moved, old_kept, new_kept, where) if moved else None
    return ListChange(tuple(before), tuple(now), added, removed, tuple(moved), reordered)


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


def _listed(before: str | None, after: str | None) -> tuple[FieldChange, ...]:
    return (FieldChange(("documents",), before, after),)


def _reordered(moved: Sequence[str], before: list[str], now: list[str], where: str) -> Cause:
    places = ", ".join(f"`{name}` from place {before.index(name) + 1} to {now.index(name) + 1}" for name in moved)
    change = FieldChange(("documents",), before, now)
    note = "the order of documents is part of the key"
    return Cause(CauseKind.REORDERED, where, f"documents reordered: {places}", (change,), note=note)
