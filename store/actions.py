"""Requests to generations, action keys to entries. An entry of incomplete provenance is no hit.

It knows the tables execution and entry, and what `LocalCas` keeps. A row whose seal does not fit counts as not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from blake3 import blake3

from gsum.store.api import GenerationPut, Made
from gsum.store.blobs import BlobFiles
from gsum.store.cas import LocalCas
from gsum.store.database import Database, Row, hex_name
from gsum.store.digests import Digest, Key, RecordKind
from gsum.store.faults import BlobMissing
from gsum.store.records import ENTRY_SCHEMA, ActionEntry, How

_ENTRY = "key, result, request, generation, sources, label, how, status, invocation, created, schema, seal"
_EXECUTION = "request, number, generation, observation, seal"
_INSERT_ENTRY = f"INSERT INTO entry ({_ENTRY}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
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
        return self.put_generations([Made(request, generation, observation)])[0]

    def put_generations(self, made: Sequence[Made]) -> list[GenerationPut]:
        """Keep several generations as `put_generation` does, in a few statements; all are kept or none.

        Raises:
            BlobMissing: naming the first request that is not kept.
        """
        with self._db.together():
            self._require_requests([one.request for one in made])
            digests = self.put_blobs([one.generation for one in made])
            rows = self._execution_rows(one.request for one in made)
            intact = _intact(rows)
            last = {Key(hex_name(row[0])): row[1] for row in rows if isinstance(row[1], int)}
            puts, new = [], []
            for one, digest in zip(made, digests, strict=True):
                before = intact.setdefault(one.request, [])
                first = before[0].generation if before else digest
                if (digest, one.observation) not in [(done.generation, done.observation) for done in before]:
                    number = last[one.request] = last.get(one.request, 0) + 1
                    new.append(_execution_row(one.request, number, digest, one.observation))
                    before.append(_Execution(one.request, digest, one.observation))
                puts.append(GenerationPut(digest, first, equivocation=first != digest))
            self._db.write_many(f"INSERT INTO execution ({_EXECUTION}) VALUES (?, ?, ?, ?, ?)", new)
            return [self._served(one.request, put) for one, put in zip(made, puts, strict=True)]

    def generation_for(self, request: Key) -> Digest | None:
        """Return the served generation of a request: the earliest that is kept with its blob."""
        return self.generations_for([request]).get(request)

    def generations_for(self, requests: Sequence[Key]) -> dict[Key, Digest]:
        """Return the served generations of those of `requests` that have one, for a few statements per 500."""
        made = _intact(self._execution_rows(requests))
        lost = self.missing_blobs(done.generation for executions in made.values() for done in executions)
        kept = {
            request: [done.generation for done in executions if done.generation not in lost]
            for request, executions in made.items()
        }
        return {request: generations[0] for request, generations in kept.items() if generations}

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
        return self.put_entries([entry])[0]

    def put_entries(self, entries: Sequence[ActionEntry]) -> list[bool]:
        """Keep several entries as `put_entry` does; those that are new cost one statement together."""
        rows = {row[0]: row for row in map(_to_row, reversed(entries))}
        with self._db.together():
            found = self._db.query_in("SELECT key FROM entry WHERE key IN ({})", rows)
            there = {name for (name,) in found}
            self._db.write_many(_INSERT_ENTRY, [row for name, row in sorted(rows.items()) if name not in there])
            kept = []
            for entry in entries:
                name = bytes.fromhex(entry.key)
                kept.append(name not in there or self._put_again(entry))
                there.add(name)
            return kept

    def _put_again(self, entry: ActionEntry) -> bool:
        """Put an entry in the place of one that is incomplete."""
        if entry.key in self.entries([entry.key]) or not self._complete([entry]):
            return False
        row = _to_row(entry)
        self._move_entry(row[0])
        self._db.write(_INSERT_ENTRY, row)
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
        return [done for executions in _intact(self._execution_rows(requests)).values() for done in executions]

    def _execution_rows(self, requests: Iterable[Key]) -> list[Row]:
        """Return the rows of requests, damaged ones too, each request's in their order."""
        sql = f"SELECT {_EXECUTION} FROM execution WHERE request IN ({{}}) ORDER BY request, number"
        return list(self._db.query_in(sql, map(bytes.fromhex, requests)))

    def _require_requests(self, requests: Sequence[Key]) -> None:
        sql = f"SELECT key FROM record WHERE kind = '{RecordKind.REQUEST.value}' AND key IN ({{}})"
        kept = {name for (name,) in self._db.query_in(sql, map(bytes.fromhex, requests))}
        for request in requests:
            if bytes.fromhex(request) not in kept:
                raise BlobMissing(request, "request")

    def _served(self, request: Key, put: GenerationPut) -> GenerationPut:
        """Say of a second output which one is served: the first may be lost."""
        if not put.equivocation:
            return put
        return GenerationPut(put.digest, self.generation_for(request) or put.digest, put.equivocation)

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


def _intact(rows: Iterable[Row]) -> dict[Key, list[_Execution]]:
    """Return the executions whose seals fit, by request, each request's in their order."""
    found: dict[Key, list[_Execution]] = {}
    for request, number, generation, observation, seal in rows:
        if seal == _seal(request, number, generation, observation):
            key = Key(hex_name(request))
            found.setdefault(key, []).append(_Execution(key, Digest(hex_name(generation)), observation))
    return found


def _execution_row(request: Key, number: int, generation: Digest, observation: bytes) -> Row:
    row = (bytes.fromhex(request), number, bytes.fromhex(generation), observation)
    return (*row, _seal(*row))


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
