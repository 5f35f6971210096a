"""What was built as what, by which invocation, and its events, in order.

It knows the tables target, invocation and event. It reads no clock: times come with the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec

from gsum.store.database import Database, Row, chunks, hex_name, marks
from gsum.store.digests import Key
from gsum.store.faults import StoreDamaged
from gsum.store.ledger import knows_invocation
from gsum.store.records import InvocationRecord, InvocationStatus, TargetRef

_TARGET = (
    "CAST(label AS TEXT), CAST(principal AS TEXT), CAST(toolchain AS TEXT), key,"
    " CAST(invocation AS TEXT), CAST(created AS TEXT)"
)
"""The casts keep a damaged row from turning up as values of other types."""
T = TypeVar("T", covariant=True)

_RECORDS = msgspec.json.Decoder(InvocationRecord)
_EVENTS = msgspec.msgpack.Decoder(list[bytes])


class _Decoder(Protocol[T]):
    def decode(self, data: bytes, /) -> T: ...


class LocalJournal:
    """The `Journal` of a local store."""

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
            self._db.write_many(
                "INSERT OR REPLACE INTO target (label, principal, toolchain, key, put, invocation, created) VALUES"
                " (?1, ?2, ?3, ?4, 1 + (SELECT coalesce(max(put), 0) FROM target WHERE label = ?1 AND principal = ?2),"
                " ?5, ?6)",
                rows,
            )

    def latest(self, label: str, principal: str, toolchain: str) -> TargetRef | None:
        """Return what a label was last built as."""
        return self.latest_of([label], principal, toolchain).get(label)

    def latest_of(self, labels: Sequence[str], principal: str, toolchain: str) -> dict[str, TargetRef]:
        """Return what those of `labels` that were ever built were last built as, for a statement per 500."""
        found: dict[str, TargetRef] = {}
        for chunk in chunks(labels):
            sql = (
                f"SELECT {_TARGET} FROM target WHERE label IN ({marks(chunk)}) AND principal = ? AND toolchain = ?"
                " ORDER BY put"
            )
            for row in self._db.query(sql, (*chunk, principal, toolchain)):
                ref = _to_ref(row)
                found[ref.label] = ref
        return found

    def target_history(self, label: str, principal: str) -> list[TargetRef]:
        """Return all a label was built as, newest first."""
        sql = f"SELECT {_TARGET} FROM target WHERE label = ? AND principal = ? ORDER BY put DESC"
        return [_to_ref(row) for row in self._db.query(sql, (label, principal))]

    def begin(self, record: InvocationRecord) -> None:
        """Record that an invocation started; one that is known stays as it is."""
        self._put_invocation(record)

    def finish(self, record: InvocationRecord) -> None:
        """Record how an invocation ended; only its RUNNING form is replaced."""
        with self._db.together():
            if self._put_invocation(record):
                return
            self._db.write(
                "UPDATE invocation SET running = ?, record = ? WHERE id = ? AND running = 1",
                (record.status is InvocationStatus.RUNNING, msgspec.json.encode(record), record.id),
            )

    def append_events(self, invocation: str, events: Sequence[bytes]) -> None:
        """Append encoded events of an invocation, in order."""
        if not events:
            return
        with self._db.together():
            self._db.write(
                "INSERT INTO event (invocation, number, events) VALUES"
                " (?1, 1 + (SELECT coalesce(max(number), 0) FROM event WHERE invocation = ?1), ?2)",
                (invocation, msgspec.msgpack.encode(list(events))),
            )

    def events(self, invocation: str) -> list[bytes]:
        """Return an invocation's events in order.

        Raises:
            StoreDamaged: if they can't be decoded.
        """
        sql = "SELECT CAST(events AS BLOB) FROM event WHERE invocation = ? ORDER BY number"
        return self._events(sql, invocation)

    def events_holding(self, invocation: str, part: bytes) -> list[bytes]:
        """Return those of an invocation's events that hold `part`, in order; of the others nothing is decoded.

        Raises:
            StoreDamaged: if they can't be decoded.
        """
        sql = "SELECT CAST(events AS BLOB) FROM event WHERE invocation = ? ORDER BY number"
        return [event for event in self._events(sql, invocation, part) if part in event]

    def last_events(self, invocation: str) -> list[bytes]:
        """Return the events of the last append, without reading those before.

        Raises:
            StoreDamaged: if they can't be decoded.
        """
        sql = "SELECT CAST(events AS BLOB) FROM event WHERE invocation = ? ORDER BY number DESC LIMIT 1"
        return self._events(sql, invocation)

    def has_invocation(self, invocation: str) -> bool:
        """Tell whether an invocation was recorded here to its end."""
        return knows_invocation(self._db, invocation)

    def invocations(self, limit: int) -> list[InvocationRecord]:
        """Return the newest invocations, newest first.

        Raises:
            StoreDamaged: if one can't be decoded.
        """
        sql = "SELECT id, CAST(record AS BLOB) FROM invocation ORDER BY number DESC LIMIT ?"
        rows = self._db.query(sql, (max(limit, 0),))
        return [self._decoded(_RECORDS, data, f"the record of invocation `{name}`") for name, data in rows]

    def _events(self, sql: str, invocation: str, part: bytes = b"") -> list[bytes]:
        what = f"the events of invocation `{invocation}`"
        rows = self._db.query(sql, (invocation,))
        wanted = (data for (data,) in rows if data is None or part in data)
        return [event for data in wanted for event in self._decoded(_EVENTS, data, what)]

    def _decoded(self, decoder: _Decoder[T], data: bytes | None, what: str) -> T:
        try:
            return decoder.decode(data or b"")
        except msgspec.MsgspecError as error:
            raise StoreDamaged(self._db.path, f"{what} can't be read") from error

    def _put_invocation(self, record: InvocationRecord) -> bool:
        with self._db.together():
            row = (record.id, record.status is InvocationStatus.RUNNING, msgspec.json.encode(record))
            insert = "INSERT INTO invocation (id, running, record) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
            return self._db.write(insert, row) > 0


def _to_ref(row: Row) -> TargetRef:
    label, principal, toolchain, key, invocation, created = row
    return TargetRef(label, principal, toolchain, Key(hex_name(key)), invocation, created)
