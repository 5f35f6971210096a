"""Requests to generations, action keys to entries. An entry of incomplete provenance is no hit.

It knows the tables execution and entry, and what `LocalCas` keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gsum.store.api import GenerationPut
from gsum.store.blobs import BlobFiles
from gsum.store.cas import LocalCas
from gsum.store.database import Database, Row
from gsum.store.digests import Digest, Key, RecordKind
from gsum.store.faults import BlobMissing
from gsum.store.records import ENTRY_SCHEMA, ActionEntry, How

_COLUMNS = "key, result, request, generation, sources, label, how, invocation, created, schema"
_DIGEST_BYTES = 32
_HOWS = {how.value: how for how in How}


class LocalActions(LocalCas):
    """The `Cas` and `ActionCache` of a local store."""

    def __init__(self, database: Database, files: BlobFiles) -> None:
        super().__init__(database, files)

    def put_generation(self, request: Key, generation: bytes, observation: bytes) -> GenerationPut:
        """Keep a generation (canonical bytes) of a kept request, and the observation of its execution.

        The first generation of a request is the one that is served; a different one is kept beside it. Should the
        first be lost to damage, the earliest that is kept stands in for it. An execution put twice is kept once.

        Raises:
            BlobMissing: if the request is not kept.
        """
        name = bytes.fromhex(request)
        with self._db.transaction():
            kind = (name, RecordKind.REQUEST.value)
            if self._db.one("SELECT 1 FROM record WHERE key = ? AND kind = ?", kind) is None:
                raise BlobMissing(request, "request")
            digest = self.put_blob(generation)
            row = (name, bytes.fromhex(digest), observation)
            same = "SELECT 1 FROM execution WHERE request = ? AND generation = ? AND observation = ?"
            if self._db.one(same, row) is None:
                self._db.write("INSERT INTO execution (request, generation, observation) VALUES (?, ?, ?)", row)
            first = self.generations(request)[0]
            return GenerationPut(digest, self.generation_for(request) or digest, equivocation=first != digest)

    def generation_for(self, request: Key) -> Digest | None:
        """Return the served generation of a request: the earliest that is kept with its blob."""
        generations = self.generations(request)
        missing = self.missing_blobs(generations)
        return next((digest for digest in generations if digest not in missing), None)

    def generations(self, request: Key) -> list[Digest]:
        """Return all generations of a request, in the order in which they first came."""
        rows = self._db.query(
            "SELECT generation FROM execution WHERE request = ? GROUP BY generation ORDER BY min(id)",
            (bytes.fromhex(request),),
        )
        return [Digest(name.hex()) for (name,) in rows]

    def observations(self, request: Key) -> list[bytes]:
        """Return the observations of a request, oldest first."""
        sql = "SELECT CAST(observation AS BLOB) FROM execution WHERE request = ? ORDER BY id"
        return [data for (data,) in self._db.query(sql, (bytes.fromhex(request),))]

    def put_entry(self, entry: ActionEntry) -> bool:
        """Keep an entry; return False when one is already there, which then stays.

        One that is there but incomplete, because something it refers to was lost, gives way to a complete one.
        """
        insert = f"INSERT INTO entry ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING"
        row = _to_row(entry)
        with self._db.transaction():
            if self._db.write(insert, row):
                return True
            if entry.key in self.entries([entry.key]) or not self._complete([entry]):
                return False
            self._move_entry(row[0])
            self._db.write(insert, row)
            return True

    def entries(self, keys: Sequence[Key]) -> dict[Key, ActionEntry]:
        """Return the complete entries of `keys`: those whose preimage, request, generation, sources and result
        are all kept. The cost is a few statements per 500 keys.
        """
        sql = f"SELECT {_COLUMNS} FROM entry WHERE key IN ({{}})"
        rows = self._db.query_in(sql, map(bytes.fromhex, keys))
        found = [entry for entry in map(_from_row, rows) if entry is not None]
        return {entry.key: entry for entry in self._complete(found)}

    def _complete(self, entries: Sequence[ActionEntry]) -> list[ActionEntry]:
        requests = {entry.request for entry in entries if entry.request is not None}
        lost_records = self.missing_records(requests.union(entry.key for entry in entries))
        blobs = {digest for entry in entries for digest in (entry.result, *entry.sources)}
        lost_blobs = self.missing_blobs(blobs.union(e.generation for e in entries if e.generation is not None))
        executed = self._executed(requests)

        def complete(entry: ActionEntry) -> bool:
            if entry.key in lost_records or not lost_blobs.isdisjoint((entry.result, *entry.sources)):
                return False
            if entry.request is None or entry.generation is None:
                return entry.request is None and entry.generation is None
            if entry.request in lost_records or entry.generation in lost_blobs:
                return False
            return (entry.request, entry.generation) in executed

        return [entry for entry in entries if complete(entry)]

    def _executed(self, requests: Iterable[Key]) -> set[tuple[Key, Digest]]:
        sql = "SELECT DISTINCT request, generation FROM execution WHERE request IN ({})"
        rows = self._db.query_in(sql, map(bytes.fromhex, requests))
        return {(Key(request.hex()), Digest(generation.hex())) for request, generation in rows}

    def _move_entry(self, name: bytes) -> None:
        """Keep what a lost entry referred to, as `damaged`, and free its key."""
        self._db.write(
            "INSERT INTO damaged (what, name, data) SELECT 'entry', key, result || coalesce(request, x'')"
            " || coalesce(generation, x'') || sources FROM entry WHERE key = ?",
            (name,),
        )
        self._db.write("DELETE FROM entry WHERE key = ?", (name,))


def _to_row(entry: ActionEntry) -> Row:
    return (
        bytes.fromhex(entry.key),
        bytes.fromhex(entry.result),
        None if entry.request is None else bytes.fromhex(entry.request),
        None if entry.generation is None else bytes.fromhex(entry.generation),
        b"".join(map(bytes.fromhex, entry.sources)),
        entry.label,
        entry.how.value,
        entry.invocation,
        entry.created,
        entry.schema,
    )


def _from_row(row: Row) -> ActionEntry | None:
    """Decode a row; None for a damaged one or one of a newer schema: neither is a hit."""
    key, result, request, generation, sources, label, how, invocation, created, schema = row
    digests = [value for value in (key, result, request, generation, sources) if value is not None]
    if not all(isinstance(value, bytes) for value in digests) or how not in _HOWS or schema != ENTRY_SCHEMA:
        return None
    cuts = range(0, len(sources), _DIGEST_BYTES)
    return ActionEntry(
        key=Key(key.hex()),
        label=label,
        result=Digest(result.hex()),
        request=None if request is None else Key(request.hex()),
        generation=None if generation is None else Digest(generation.hex()),
        sources=tuple(Digest(sources[start : start + _DIGEST_BYTES].hex()) for start in cuts),
        how=_HOWS[how],
        invocation=invocation,
        created=created,
        schema=schema,
    )
