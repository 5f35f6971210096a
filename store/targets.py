"""What labels were built as, for whom and with which toolchain, newest last.

It knows the table target, and of the table entry what says the same: an entry's own label was built as its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from gsum.store.database import Database, Row, chunks, hex_name, marks
from gsum.store.digests import Key
from gsum.store.records import TargetRef

_REF = (
    "CAST(label AS TEXT), CAST(principal AS TEXT), CAST(toolchain AS TEXT), key,"
    " CAST(invocation AS TEXT), CAST(created AS TEXT)"
)
"""The casts keep a damaged row from turning up as values of other types."""
_FROM_ENTRY = f"SELECT {_REF}, CAST(number AS INTEGER), 0 FROM entry"
_FROM_TARGET = f"SELECT {_REF}, CAST(behind AS INTEGER), CAST(number AS INTEGER) FROM target"
_AGE = itemgetter(6, 7)
_PUT = (
    "INSERT OR REPLACE INTO target (label, principal, toolchain, key, behind, invocation, created) VALUES"
    " (?, ?, ?, ?, (SELECT coalesce(max(number), 0) FROM entry), ?, ?)"
)
KEEP_AS_TARGET = (
    "INSERT OR REPLACE INTO target (label, principal, toolchain, key, behind, invocation, created)"
    " SELECT label, principal, toolchain, key, number - 1, invocation, created FROM entry"
    " WHERE key = ? AND principal IS NOT NULL AND NOT EXISTS (SELECT 1 FROM target AS later"
    " WHERE later.label = entry.label AND later.principal = entry.principal AND later.toolchain = entry.toolchain"
    " AND later.key = entry.key AND later.behind >= entry.number)"
)
"""Keeps what an entry says of its label, before another takes its place, perhaps with its number."""


class LocalTargets:
    """Of the `Journal` of a local store, what is told about labels."""

    _db: Database

    def put_target(self, ref: TargetRef) -> None:
        """Record that a label has been built as a key; the newest is the last put.

        A key the label had before comes to the front again; nothing is written when it is there already.
        """
        self.put_targets([ref])

    def put_targets(self, refs: Sequence[TargetRef]) -> None:
        """Record several, in order, as `put_target` does; in a few statements."""
        labels: dict[tuple[str, str], list[str]] = {}
        for ref in refs:
            labels.setdefault((ref.principal, ref.toolchain), []).append(ref.label)
        with self._db.together():
            keys = {
                (whose, label): known.key
                for whose, names in labels.items()
                for label, known in self.latest_of(names, *whose).items()
            }
            rows = []
            for ref in refs:
                name = ((ref.principal, ref.toolchain), ref.label)
                if keys.get(name) != ref.key:
                    keys[name] = ref.key
                    key = bytes.fromhex(ref.key)
                    rows.append((ref.label, ref.principal, ref.toolchain, key, ref.invocation, ref.created))
            self._db.write_many(_PUT, rows)

    def latest(self, label: str, principal: str, toolchain: str) -> TargetRef | None:
        """Return what a label was last built as."""
        return self.latest_of([label], principal, toolchain).get(label)

    def latest_of(self, labels: Sequence[str], principal: str, toolchain: str) -> dict[str, TargetRef]:
        """Return what those of `labels` that were ever built were last built as, for a few statements per 500."""
        rows: list[Row] = []
        for chunk in chunks(labels):
            whose = f"label IN ({marks(chunk)}) AND principal = ? AND toolchain = ?"
            newest = f"SELECT max(number) FROM entry WHERE {whose} GROUP BY label"
            for select in (f"{_FROM_ENTRY} WHERE number IN ({newest})", f"{_FROM_TARGET} WHERE {whose}"):
                rows += self._db.query(select, (*chunk, principal, toolchain))
        return {ref.label: ref for ref in map(_to_ref, sorted(rows, key=_AGE))}

    def target_history(self, label: str, principal: str) -> list[TargetRef]:
        """Return all a label was built as, newest first."""
        rows: list[Row] = []
        for select in (_FROM_ENTRY, _FROM_TARGET):
            rows += self._db.query(f"{select} WHERE label = ? AND principal = ?", (label, principal))
        found: dict[tuple[str, Key], TargetRef] = {}
        for ref in map(_to_ref, sorted(rows, key=_AGE, reverse=True)):
            found.setdefault((ref.toolchain, ref.key), ref)
        return list(found.values())


def _to_ref(row: Row) -> TargetRef:
    label, principal, toolchain, key, invocation, created = row[:6]
    return TargetRef(label, principal, toolchain, Key(hex_name(key)), invocation, created)
