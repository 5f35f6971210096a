"""Blobs, verified on every read; what does not hash to its name is set aside and no longer kept.

It knows the tables blob and damaged, and the blob files; of other tables, only which names stand in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gsum.store.blobs import BlobFiles
from gsum.store.database import Database, hex_name
from gsum.store.digests import HEX_LENGTH, Digest, blob_digest
from gsum.store.faults import BlobCorrupt, BlobMissing
from gsum.store.preimages import PREIMAGES_BETWEEN, LocalPreimages
from gsum.store.schema import INLINE_LIMIT

FIND_LIMIT = 16
_HEX = frozenset("0123456789abcdef")
# The casts keep a damaged row from turning up as a value of another type.
_SELECT_BLOB = "SELECT CAST(data AS BLOB) FROM blob WHERE digest = ?"


class LocalCas(LocalPreimages):
    """The `Cas` of a local store."""

    def __init__(self, database: Database, files: BlobFiles) -> None:
        super().__init__(database)
        self._files = files

    def put_blob(self, data: bytes) -> Digest:
        """Keep a blob and return its digest. Kept bytes that turn out damaged give way to these."""
        return self.put_blobs([data])[0]

    def put_blobs(self, contents: Sequence[bytes]) -> list[Digest]:
        """Keep blobs and return their digests, in order. The small ones cost one statement together."""
        digests = [blob_digest(data) for data in contents]
        small: dict[Digest, bytes] = {}
        for digest, data in zip(digests, contents, strict=True):
            if len(data) > INLINE_LIMIT:
                self._put_file(digest, data)
            else:
                small[digest] = data
        if small:
            self._put_inline(small)
        return digests

    def get_blob(self, digest: Digest) -> bytes:
        """Return a blob whose bytes hash to `digest`.

        Raises:
            BlobMissing: if it is not kept.
            BlobCorrupt: if its bytes don't hash to `digest`; they are set aside where the store is writable.
        """
        there, data = self._blob(digest)
        if data is None:
            if there:
                self._condemn_blob(digest)
            else:
                self._miss(digest)
            raise BlobMissing(digest, "blob")
        if blob_digest(data) != digest:
            raise BlobCorrupt(digest, "blob", set_aside=self._condemn_blob(digest))
        return data

    def get_blobs(self, digests: Iterable[Digest]) -> dict[Digest, bytes]:
        """Return several blobs, each as `get_blob` does, for a statement per 500.

        Raises:
            BlobMissing, BlobCorrupt: for one that is not kept or damaged.
        """
        found: dict[Digest, bytes] = {}
        wanted = list(dict.fromkeys(digests))
        sql = "SELECT digest, CAST(data AS BLOB) FROM blob WHERE digest IN ({}) AND data IS NOT NULL"
        for name, data in self._db.query_in(sql, map(bytes.fromhex, wanted)):
            digest = blob_digest(data)
            if digest == hex_name(name):
                found[digest] = data
        return {digest: found[digest] if digest in found else self.get_blob(digest) for digest in wanted}

    def missing_blobs(self, digests: Iterable[Digest]) -> set[Digest]:
        """Return those of `digests` that are not kept. A file blob that is gone or of the wrong size is not, and is set
        aside where the store is writable: what was believed to be kept is then known to be lost.
        """
        wanted = set(digests)
        sql = "SELECT digest, size, data IS NULL FROM blob WHERE digest IN ({})"
        lost = []
        for name, size, in_file in self._db.query_in(sql, map(bytes.fromhex, wanted)):
            digest = Digest(hex_name(name))
            if not in_file or self._files.holds(digest, size):
                wanted.discard(digest)
            elif digest in wanted:
                lost.append(digest)
        for digest in lost:
            self._condemn_blob(digest)
        return wanted

    def find(self, prefix: str) -> list[str]:
        """Return the digests and keys that start with `prefix` (hex), sorted, at most 16."""
        text = prefix.lower()
        if len(text) > HEX_LENGTH or not _HEX.issuperset(text):
            return []
        bounds = [bytes.fromhex(text.ljust(HEX_LENGTH, digit)) for digit in "0f"]
        rows = self._db.query(
            f"SELECT digest FROM blob WHERE digest BETWEEN ?1 AND ?2 UNION {PREIMAGES_BETWEEN}"
            f" ORDER BY 1 LIMIT {FIND_LIMIT}",
            bounds,
        )
        return [hex_name(name) for (name,) in rows]

    def _put_inline(self, blobs: Mapping[Digest, bytes]) -> None:
        rows = sorted((bytes.fromhex(digest), len(data), data) for digest, data in blobs.items())
        insert = "INSERT INTO blob (digest, size, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        with self._db.together():
            if self._db.write_many(insert, rows) == len(rows):
                return
            names = (row[0] for row in rows)
            found = self._db.query_in("SELECT digest, size, data FROM blob WHERE digest IN ({})", names)
            for row in set(rows).difference(found):
                self._move_blob(Digest(row[0].hex()))
                self._db.write(insert, row)

    def _put_file(self, digest: Digest, data: bytes) -> None:
        self._db.require_writable()
        # The bytes are written and synced outside the lock, and get their name inside it, so that no other process
        # sets the new file aside for the old one.
        name = bytes.fromhex(digest)
        staged = None if self._files.read(digest) == data else self._files.stage(digest, data)
        try:
            with self._db.transaction():
                if staged is not None and self._files.read(digest) != data:
                    self._move_blob(digest)
                    self._files.publish(staged, digest)
                    staged = None
                self._files.claim(digest)
                self._db.write(
                    "DELETE FROM blob WHERE digest = ? AND (data IS NOT NULL OR size <> ?)", (name, len(data))
                )
                insert = "INSERT INTO blob (digest, size, data) VALUES (?, ?, NULL) ON CONFLICT DO NOTHING"
                self._db.write(insert, (name, len(data)))
        finally:
            if staged is not None:
                self._files.discard(staged)

    def _blob(self, digest: Digest) -> tuple[bool, bytes | None]:
        """Tell whether a blob is said to be kept, and return what there is of it, unverified."""
        row = self._db.one(_SELECT_BLOB, (bytes.fromhex(digest),))
        if row is None:
            return False, None
        data: bytes | None = row[0]
        return True, self._files.read(digest) if data is None else data

    def _condemn_blob(self, digest: Digest) -> bool:
        """Set a damaged blob aside, and let go of one whose file is gone; at the end of the transaction if one is under
        way, since that may roll back.
        """

        def condemn() -> None:
            with self._db.transaction():
                there, data = self._blob(digest)  # another process may have put it right meanwhile
                if there and (data is None or blob_digest(data) != digest):
                    self._move_blob(digest)

        return self._set_aside(condemn)

    def _move_blob(self, digest: Digest) -> None:
        name = bytes.fromhex(digest)
        self._db.write(
            "INSERT INTO damaged (what, name, data) SELECT 'blob', digest, data FROM blob"
            " WHERE digest = ? AND data IS NOT NULL",
            (name,),
        )
        self._db.write("DELETE FROM blob WHERE digest = ?", (name,))
        self._files.set_aside(digest)
