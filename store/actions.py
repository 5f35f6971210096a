"""Requests to generations, action keys to entries. An entry of incomplete provenance is no hit.

It knows the tables execution and entry, and what `LocalCas` keeps. A row whose seal does not fit counts as not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from blake3 import blake3

from gsum.store.api import GenerationPut
from gsum.store.blobs import BlobFiles
from gsum.store.cas import LocalCas
from gsum.store.database import Database, Row, hex_name
from gsum.store.digests import Digest, Key, RecordKind
from gsum.store.faults import BlobMissing
from gsum.store.records import ENTRY_SCHEMA, ActionEntry, How

_ENTRY = "key, result, request, generation, sources, label, how, status, invocation, created, schema, seal"
_EXECUTION = "request, number, generation, observation, seal"
_DIGEST_BYTES = 32
_SEAL_BYTES = 16
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
        with self._db.together():
            kind = (bytes.fromhex(request), RecordKind.REQUEST.value)
            if self._db.one("SELECT 1 FROM record WHERE key = ? AND kind = ?", kind) is None:
                raise BlobMissing(request, "request")
            digest = self.put_blob(generation)
            executions = self._executions([request])
            if (digest, observation) not in [(done.generation, done.observation) for done in executions]:
                self._put_execution(request, digest, observation)
            if not executions:
                return GenerationPut(digest, digest, equivocation=False)
            served = self.generation_for(request) or digest
            return GenerationPut(digest, served, equivocation=executions[0].generation != digest)

    def generation_for(self, request: Key) -> Digest | None:
        """Return the served generation of a request: the earliest that is kept with its blob."""
        generations = self.generations(request)
        missing = self.missing_blobs(generations) if generations else ()
        return next((digest for digest in generations if digest not in missing), None)

    def generations(self, request: Key) -> list[Digest]:
        """Return all generations of a request, in the order in which they first came."""
        return list(dict.fromkeys(done.generation for done in self._executions([request])))

    def observations(self, request: Key) -> list[bytes]:
        """Return the observations of a request, oldest first."""
        return [done.observation for done in self._executions([request])]

    def put_entry(self, entry: ActionEntry) -> bool:
        """Keep an entry; return False when one is already there, which then stays.

        One that is there but incomplete, because something it refers to was lost, gives way to a complete one.
        """
        insert = f"INSERT INTO entry ({_ENTRY}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING"
        row = _to_row(entry)
        with self._db.together():
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
        sql = f"SELECT {_ENTRY} FROM entry WHERE key IN ({{}})"
        rows = self._db.query_in(sql, map(bytes.fromhex, keys))
        found = [entry for entry in map(_from_row, rows) if entry is not None]
        return {entry.key: entry for entry in self._complete(found)}

    def _complete(self, entries: Sequence[ActionEntry]) -> list[ActionEntry]:
        requests = {entry.request for entry in entries if entry.request is not None}
        lost_records = self.missing_records(requests.union(entry.key for entry in entries))
        blobs = {digest for entry in entries for digest in (entry.result, *entry.sources)}
        lost_blobs = self.missing_blobs(blobs.union(e.generation for e in entries if e.generation is not None))
        executed = {(done.request, done.generation) for done in self._executions(requests)}

        def complete(entry: ActionEntry) -> bool:
            if entry.key in lost_records or not lost_blobs.isdisjoint((entry.result, *entry.sources)):
                return False
            if entry.request is None or entry.generation is None:
                return entry.request is None and entry.generation is None
            if entry.request in lost_records or entry.generation in lost_blobs:
                return False
            return (entry.request, entry.generation) in executed

        return [entry for entry in entries if complete(entry)]

    def _executions(self, requests: Iterable[Key]) -> list[_Execution]:
        """Return the intact executions of requests, each request's in their order."""
        sql = f"SELECT {_EXECUTION} FROM execution WHERE request IN ({{}}) ORDER BY request, number"
        return [
            _Execution(Key(hex_name(request)), Digest(hex_name(generation)), observation)
            for request, number, generation, observation, seal in self._db.query_in(sql, map(bytes.fromhex, requests))
            if seal == _seal(request, number, generation, observation)
        ]

    def _put_execution(self, request: Key, generation: Digest, observation: bytes) -> None:
        name = bytes.fromhex(request)
        last = self._db.one("SELECT coalesce(max(number), 0) FROM execution WHERE request = ?", (name,))
        number = 1 + (last[0] if last else 0)
        row = (name, number, bytes.fromhex(generation), observation)
        self._db.write(f"INSERT INTO execution ({_EXECUTION}) VALUES (?, ?, ?, ?, ?)", (*row, _seal(*row)))

    def _move_entry(self, name: bytes) -> None:
        """Keep what a lost entry referred to, as `damaged`, and free its key."""
        self._db.write(
            "INSERT INTO damaged (what, name, data) SELECT 'entry', key, result || coalesce(request, x'')"
            " || coalesce(generation, x'') || sources FROM entry WHERE key = ?",
            (name,),
        )
        self._db.write("DELETE FROM entry WHERE key = ?", (name,))


class _Execution(NamedTuple):
    request: Key
    generation: Digest
    observation: bytes


def _seal(*values: bytes | str | int | None) -> bytes:
    """Hash the columns of a row that no digest names."""
    return blake3(msgspec.msgpack.encode(values)).digest(_SEAL_BYTES)


def _to_row(entry: ActionEntry) -> Row:
    row = (
        bytes.fromhex(entry.key),
        bytes.fromhex(entry.result),
        None if entry.request is None else bytes.fromhex(entry.request),
        None if entry.generation is None else bytes.fromhex(entry.generation),
        b"".join(map(bytes.fromhex, entry.sources)),
        entry.label,
        entry.how.value,
        entry.status,
        entry.invocation,
        entry.created,
        entry.schema,
    )
    return (*row, _seal(*row))


def _from_row(row: Row) -> ActionEntry | None:
    """Decode a row; None for a damaged one or one of a newer schema: neither is a hit."""
    key, result, request, generation, sources, label, how, status, invocation, created, schema, seal = row
    if seal != _seal(*row[:-1]) or how not in _HOWS or schema != ENTRY_SCHEMA:
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
        status=status,
        invocation=invocation,
        created=created,
        schema=schema,
    )
