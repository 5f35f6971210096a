"""Preimages of keys, verified on every read, wherever they stand: in rows of their own or beside what they belong to.

It knows the tables record and damaged, and the preimages in entry and execution. A request's stands beside its
execution, an action's and its perimeter's beside its entry; those of toolchains, prompts and schemas are records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from gsum.store.database import Database, hex_name
from gsum.store.digests import Digest, Key, Preimage, RecordKind, derive_key
from gsum.store.errors import StoreError
from gsum.store.faults import BlobCorrupt, BlobMissing

# The casts keep a damaged row from turning up as a value of another type. Perimeters are shared by entries: each has
# its own copy, and one that is right is enough.
_SELECT = """
    SELECT 'record', CAST(kind AS TEXT), coalesce(CAST(data AS BLOB), x''), rowid FROM record WHERE key = ?1
    UNION ALL
    SELECT 'entry', 'action', CAST(preimage AS BLOB), number FROM entry WHERE key = ?1 AND preimage IS NOT NULL
    UNION ALL
    SELECT 'execution', 'request', CAST(preimage AS BLOB), rowid FROM execution
        WHERE request = ?1 AND preimage IS NOT NULL
    UNION ALL
    SELECT * FROM (
        SELECT 'entry', 'perimeter', CAST(perimeter_preimage AS BLOB), number FROM entry
            WHERE perimeter = ?1 AND perimeter_preimage IS NOT NULL LIMIT 8
    )"""

PREIMAGES_BETWEEN = """
    SELECT key FROM record WHERE key BETWEEN ?1 AND ?2
    UNION SELECT key FROM entry WHERE key BETWEEN ?1 AND ?2 AND preimage IS NOT NULL
    UNION SELECT request FROM execution WHERE request BETWEEN ?1 AND ?2 AND preimage IS NOT NULL
    UNION SELECT perimeter FROM entry WHERE perimeter BETWEEN ?1 AND ?2 AND perimeter_preimage IS NOT NULL"""
"""The keys, from one to another, whose preimages are kept."""

_HOLDING = (
    "SELECT key FROM record WHERE key IN ({})",
    "SELECT key FROM entry WHERE key IN ({}) AND preimage IS NOT NULL",
    "SELECT request FROM execution WHERE request IN ({}) AND preimage IS NOT NULL",
    "SELECT DISTINCT perimeter FROM entry WHERE perimeter IN ({}) AND perimeter_preimage IS NOT NULL",
)
_TAKE_OUT = {
    ("record", False): "DELETE FROM record WHERE rowid = ?",
    ("entry", False): "UPDATE entry SET preimage = NULL WHERE number = ?",
    ("entry", True): "UPDATE entry SET perimeter_preimage = NULL WHERE number = ?",
    ("execution", False): "UPDATE execution SET preimage = NULL WHERE rowid = ?",
}
KEEP_AS_RECORDS = tuple(
    f"INSERT OR IGNORE INTO record (key, kind, data) SELECT {key}, '{kind}', {data} FROM entry"
    f" WHERE key = ? AND {data} IS NOT NULL"
    for key, kind, data in (("key", "action", "preimage"), ("perimeter", "perimeter", "perimeter_preimage"))
)
"""Keep the preimages that stand beside an entry."""
_ASIDE = "INSERT INTO damaged (what, name, data) VALUES ('record ' || coalesce(?, 'of no kind'), ?, ?)"
_LOST = "UPDATE identity SET losses = losses + 1"
_REFERRED = (
    "SELECT 1 FROM entry WHERE result = ?1 OR generation = ?1 OR request = ?1 OR perimeter = ?1 OR key = ?1"
    " OR instr(sources, ?1) LIMIT 1"
)
"""Whether an entry refers to a name: it looks at all of them, and is asked where something is missing."""


class LocalPreimages:
    """The keyed records of a local store."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def put_record(self, preimage: Preimage) -> Key:
        """Keep a key's preimage. Kept bytes that turn out damaged give way to these.

        Raises:
            BlobCorrupt: if the preimage does not hash to its key; nothing is kept.
        """
        self.put_records([preimage])
        return preimage.key

    def put_records(self, preimages: Sequence[Preimage]) -> None:
        """Keep the preimages of several keys, in one statement; none is kept if one does not hash to its key.

        Raises:
            BlobCorrupt: naming the first that does not.
        """
        require_right(preimages)
        rows = sorted({(bytes.fromhex(one.key), one.kind.value, one.data) for one in preimages})
        insert = "INSERT INTO record (key, kind, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        with self._db.together():
            if self._db.write_many(insert, rows) == len(rows):
                return
            found = self._db.query_in("SELECT key, kind, data FROM record WHERE key IN ({})", (row[0] for row in rows))
            for row in set(rows).difference(found):
                self._condemn_record(Key(row[0].hex()))
                self._db.write(insert, row)

    def get_record(self, key: Key) -> Preimage:
        """Return a preimage that hashes to `key`.

        Raises:
            BlobMissing: if it is not kept.
            BlobCorrupt: if its bytes don't hash to `key`; they are set aside where the store is writable.
        """
        found = False
        for preimage, _ in self._copies(key):
            if preimage is not None:
                return preimage
            found = True
        if not found:
            self._miss(key)
            raise BlobMissing(key, "record")
        raise BlobCorrupt(key, "record", set_aside=self._set_aside(lambda: self._condemn_record(key)))

    def missing_records(self, keys: Iterable[Key]) -> set[Key]:
        """Return those of `keys` whose preimage is not kept."""
        wanted = set(keys)
        for sql in _HOLDING:
            if wanted:
                wanted -= {Key(hex_name(name)) for (name,) in self._db.query_in(sql, map(bytes.fromhex, wanted))}
        return wanted

    def _copies(self, key: Key) -> Iterator[tuple[Preimage | None, tuple[str, str, bytes, int]]]:
        """Yield what is kept of a key, and the rows as they are; null for one that does not hash to it."""
        for table, kind, data, number in self._db.query(_SELECT, (bytes.fromhex(key),)):
            yield _verified(key, kind, data), (table, kind, data, number)

    def _condemn_record(self, key: Key) -> None:
        """Set aside what is kept of a key and does not hash to it: another process may have put it right meanwhile."""
        with self._db.transaction():
            for preimage, (table, kind, data, number) in list(self._copies(key)):
                if preimage is None:
                    self._db.write(_ASIDE, (kind, bytes.fromhex(key), data))
                    beside = table == "entry" and kind == RecordKind.PERIMETER.value
                    self._db.write(_TAKE_OUT[table, beside], (number,))
                    if table != "record":  # of rows that go, a trigger knows
                        self._db.write(_LOST)

    def _miss(self, name: Key | Digest) -> None:
        """Count a loss if what is not there is what an entry refers to: it went without any statement's doing."""
        if self._db.writable and self._db.one(_REFERRED, (bytes.fromhex(name),)) is not None:
            self._note_loss()

    def _note_loss(self) -> None:
        """Count a loss that no statement makes: nothing leans any more on what was believed to be kept."""

        def note() -> None:
            with self._db.transaction():
                self._db.write(_LOST)

        self._set_aside(note)

    def _set_aside(self, condemn: Callable[[], None]) -> bool:
        """Run `condemn` now or after the transaction under way; tell whether it was or will be done."""
        if not self._db.writable:
            return False
        if self._db.in_transaction:
            self._db.afterwards(condemn)
            return True
        try:
            condemn()
        except StoreError:
            return False
        return True


def require_right(preimages: Iterable[Preimage]) -> None:
    """Raise `BlobCorrupt`, naming the first preimage that does not hash to its key."""
    for preimage in preimages:
        if derive_key(preimage.kind, preimage.data) != preimage.key:
            raise BlobCorrupt(preimage.key, "record", set_aside=False)


def _verified(key: Key, kind: str, data: bytes) -> Preimage | None:
    """Return a stored record as a preimage, None when it does not hash to its key."""
    with suppress(ValueError):
        preimage = Preimage(RecordKind(kind), data, key)
        if derive_key(preimage.kind, data) == key:
            return preimage
    return None
