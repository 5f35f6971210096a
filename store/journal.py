"""Invocations and their events, in order.

It knows the tables invocation and event. It reads no clock: times come with the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec

from gsum.store.database import Database
from gsum.store.faults import StoreDamaged
from gsum.store.ledger import knows_invocation
from gsum.store.records import InvocationRecord, InvocationStatus

T = TypeVar("T", covariant=True)

_RECORDS = msgspec.json.Decoder(InvocationRecord)
_EVENTS = msgspec.msgpack.Decoder(list[bytes])


class _Decoder(Protocol[T]):
    def decode(self, data: bytes, /) -> T: ...


class LocalJournal:
    """Of the `Journal` of a local store, what is told about invocations."""

    _db: Database

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
