"""The few statements of a store that a null build needs: what the store is, whether it knows an invocation, one record.

It knows a database, bytes and no record type, and imports no more than the standard library: saying "nothing to do"
must not wait for what builds.
"""

from __future__ import annotations

from collections.abc import Sequence

from gsum.store.database import Database
from gsum.store.faults import StoreDamaged

_BINARY = ((0xC4, 1), (0xC5, 2), (0xC6, 4))
"""msgpack's heads of byte strings by the width of their length."""

_FEW = 16
"""A msgpack array of fewer items has its length in its head."""


def epoch_of(database: Database) -> str:
    """Return a store's identity and how often something kept was taken out of it.

    Raises:
        StoreDamaged: if the database has lost its identity.
    """
    row = database.one("SELECT hex(id), CAST(losses AS INTEGER) FROM identity")
    if row is None:
        raise StoreDamaged(database.path, "it has no identity")
    return f"{row[0]}-{row[1]}"


def knows_invocation(database: Database, invocation: str) -> bool:
    """Tell whether an invocation ended in a store: all that it kept is then there, as its end was written last.

    Of one that only began, a loss of power may have taken what it kept.
    """
    return database.one("SELECT 1 FROM invocation WHERE id = ? AND running = 0", (invocation,)) is not None


def put_ended(database: Database, invocation: str, record: bytes, events: Sequence[bytes]) -> None:
    """Keep an invocation that began and ended, with its few events: both or none."""
    with database.transaction():
        database.write("INSERT INTO invocation (id, running, record) VALUES (?, 0, ?)", (invocation, record))
        database.write(
            "INSERT INTO event (invocation, number, events) VALUES (?, 1, ?)", (invocation, pack_few(events))
        )


def pack_few(items: Sequence[bytes]) -> bytes:
    """Return a msgpack array of up to 15 byte strings."""
    if len(items) >= _FEW:
        raise ValueError(f"{len(items)} items are not few")
    packed = bytearray([0x90 | len(items)])
    for item in items:
        head, width = next((head, width) for head, width in _BINARY if len(item) < 1 << 8 * width)
        packed.append(head)
        packed += len(item).to_bytes(width, "big") + item
    return bytes(packed)
