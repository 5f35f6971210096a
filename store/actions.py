"""Requests to generations, action keys to entries. An entry of incomplete provenance is no hit.

It knows the tables execution and entry, and what `LocalCas` and `LocalTargets` keep. A row whose seal does not fit
counts as not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import msgspec
from blake3 import blake3

from gsum.store.api import Built, GenerationPut, Made
from gsum.store.blobs import BlobFiles
from gsum.store.cas import LocalCas
from gsum.store.database import Database, Row, hex_name, marks
from gsum.store.digests import Digest, Key, RecordKind
from gsum.store.faults import BlobCorrupt, BlobMissing
from gsum.store.preimages import KEEP_AS_RECORDS, require_right
from gsum.store.records import ENTRY_SCHEMA, ActionEntry, How, TargetRef
from gsum.store.targets import KEEP_AS_TARGET, LocalTargets

_ENTRY = (
    "key, result, request, generation, sources, label, how, status, invocation, created, schema,"
    " principal, toolchain, whole, seal"
)
_KEPT = f"{_ENTRY}, perimeter, preimage, perimeter_preimage"
_EXECUTION = "request, number, generation, observation, seal"
_INSERT_ENTRY = f"INSERT INTO entry ({_KEPT}) VALUES ({marks(_KEPT.split(','))})"
_INSERT_AS = f"INSERT INTO entry (number, {_KEPT}) VALUES (?, {marks(_KEPT.split(','))})"
_REQUEST_KEPT = (
    f"SELECT 1 FROM record WHERE key = ?1 AND CAST(kind AS TEXT) = '{RecordKind.REQUEST.value}'"
    " UNION ALL SELECT 1 FROM execution WHERE request = ?1 AND preimage IS NOT NULL"
)
_DIGEST_BYTES = 32
_SEAL_BYTES = 16
_HOWS = {how.value: how for how in How}


class LocalActions(LocalCas, LocalTargets):
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
            if self._db.one(_REQUEST_KEPT, (bytes.fromhex(request),)) is None:
                raise BlobMissing(request, "request")
            return self._put_generations([_Output(request, None, generation, observation)])[0]

    def put_generations(self, made: Sequence[Made]) -> list[GenerationPut]:
        """Keep several generations as `put_generation` does, with their requests, in a few statements: all or none.

        Raises:
            BlobCorrupt: naming the first request that does not hash to its key; nothing is kept.
        """
        requests = [one.request for one in made]
        require_right(requests)
        for request in requests:
            if request.kind is not RecordKind.REQUEST:
                raise BlobCorrupt(request.key, "request", set_aside=False)
        with self._db.together():
            return self._put_generations(
                [_Output(one.request.key, one.request.data, one.generation, one.observation) for one in made]
            )

    def _put_generations(self, made: Sequence[_Output]) -> list[GenerationPut]:
        digests = self.put_blobs([one.generation for one in made])
        rows = self._execution_rows(one.request for one in made)
        intact = _intact(rows)
        last = {Key(hex_name(row[0])): row[1] for row in rows if isinstance(row[1], int)}
        bare = self._without_preimage(made, last)
        puts, new = [], []
        for one, digest in zip(made, digests, strict=True):
            before = intact.setdefault(one.request, [])
            first = before[0].generation if before else digest
            if (digest, one.observation) not in [(done.generation, done.observation) for done in before]:
                number = last[one.request] = last.get(one.request, 0) + 1
                new.append((*_execution_row(one.request, number, digest, one.observation), bare.pop(one.request, None)))
                before.append(_Execution(one.request, digest, one.observation))
            puts.append(GenerationPut(digest, first, equivocation=first != digest))
        self._db.write_many(f"INSERT INTO execution ({_EXECUTION}, preimage) VALUES (?, ?, ?, ?, ?, ?)", new)
        for request, preimage in bare.items():  # it was lost, and nothing else is new
            name = bytes.fromhex(request)
            self._db.write(
                "UPDATE execution SET preimage = ?2 WHERE request = ?1"
                " AND number = (SELECT min(number) FROM execution WHERE request = ?1)",
                (name, preimage),
            )
        return [self._served(one.request, put) for one, put in zip(made, puts, strict=True)]

    def _without_preimage(self, made: Sequence[_Output], known: Mapping[Key, int]) -> dict[Key, bytes]:
        """Return the preimages that came with requests and are not kept yet."""
        came = {one.request: one.preimage for one in made if one.preimage is not None}
        executed = [request for request in came if request in known]
        lost = self.missing_records(executed) if executed else set()
        return {request: data for request, data in came.items() if request not in known or request in lost}

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
        with self._db.together():
            rows = [_to_row(entry) for entry in entries]
            there = self._there(entry.key for entry in entries)
            new: dict[Key, Row] = {}
            for entry, row in zip(entries, rows, strict=True):
                if entry.key not in there:
                    new.setdefault(entry.key, row)
            self._db.write_many(_INSERT_ENTRY, list(new.values()))
            return [
                new.get(entry.key) is row or self._put_again(entry, row)
                for entry, row in zip(entries, rows, strict=True)
            ]

    def put_built(self, built: Sequence[Built]) -> None:
        """Keep entries, in order, with their preimages and what their labels were built as: all or none.

        What `put_records`, `put_entries` and `put_targets` would keep, in fewer rows.

        Raises:
            BlobCorrupt: naming the first preimage that does not hash to its key; nothing is kept.
        """
        require_right(preimage for one in built for preimage in (one.action, one.perimeter))
        with self._db.together():
            there = self._there(one.entry.key for one in built)
            lacking = self._lacking([one.entry for one in built])
            known = []
            for one in built:
                known.append(one.entry.key in there)
                there.add(one.entry.key)
            for is_known, run in groupby(zip(known, built, strict=True), key=itemgetter(0)):
                ones = [one for _, one in run]
                rows = [_to_row(one.entry, one, whole=one.entry.key not in lacking) for one in ones]
                if is_known:
                    self._put_known(ones, rows)
                else:
                    self._db.write_many(_INSERT_ENTRY, rows)

    def _put_known(self, built: Sequence[Built], rows: Sequence[Row]) -> None:
        """Keep what comes with entries that are there already; one that is incomplete gives way."""
        self.put_records([preimage for one in built for preimage in (one.action, one.perimeter)])
        complete = self.entries([one.entry.key for one in built])
        if all(one.entry.key in complete for one in built):
            self.put_targets([_ref(one) for one in built])
            return
        for one, row in zip(built, rows, strict=True):
            if not self._put_again(one.entry, row):
                self.put_target(_ref(one))

    def _lacking(self, entries: Sequence[ActionEntry]) -> set[Key]:
        """Return the keys of entries that refer to something that is not kept in the database."""
        sql = "SELECT digest FROM blob WHERE digest IN ({}) AND data IS NOT NULL"
        blobs = {digest for entry in entries for digest in _blobs_of(entry)}
        inline = {hex_name(name) for (name,) in self._db.query_in(sql, map(bytes.fromhex, blobs))}
        sql = "SELECT request, generation, preimage IS NOT NULL FROM execution WHERE request IN ({})"
        requests = {entry.request for entry in entries if entry.request is not None}
        rows = list(self._db.query_in(sql, map(bytes.fromhex, requests)))
        executed = {(request, generation) for request, generation, _ in rows}
        unknown = self.missing_records(requests.difference(hex_name(request) for request, _, has in rows if has))

        def lacks(entry: ActionEntry) -> bool:
            if not inline.issuperset(_blobs_of(entry)):
                return True
            if entry.request is None or entry.generation is None:
                return (entry.request is None) != (entry.generation is None)
            row = (bytes.fromhex(entry.request), bytes.fromhex(entry.generation))
            return entry.request in unknown or row not in executed

        return {entry.key for entry in entries if lacks(entry)}

    def _there(self, keys: Iterable[Key]) -> set[Key]:
        """Return those of `keys` that have an entry, complete or not."""
        found = self._db.query_in("SELECT key FROM entry WHERE key IN ({})", map(bytes.fromhex, keys))
        return {Key(hex_name(name)) for (name,) in found}

    def _put_again(self, entry: ActionEntry, row: Row) -> bool:
        """Put an entry in the place of one that is incomplete."""
        if entry.key in self.entries([entry.key]) or not self._complete([entry]):
            return False
        # What labels were built as since the lost one came stands behind its number: this one comes behind them.
        [(latest,)] = self._db.query("SELECT max(number) FROM entry")
        self._move_entry(row[0])
        self._db.write(_INSERT_AS, (latest + 1, *row))
        return True

    def entries(self, keys: Sequence[Key]) -> dict[Key, ActionEntry]:
        """Return the complete entries of `keys`: those whose preimage, request, generation, sources and result
        are all kept. The cost is a statement per 500 keys, and a few more where something was ever lost.
        """
        sql = f"SELECT {_ENTRY} FROM entry WHERE key IN ({{}})"
        rows = list(self._db.query_in(sql, map(bytes.fromhex, keys)))
        decoded = [(_from_row(row), row) for row in rows]
        if not all(entry is not None or _is_sealed(row) for entry, row in decoded):
            self._note_loss()
        found = [(entry, _is_whole(row)) for entry, row in decoded if entry is not None]
        nothing_lost = self._db.one("SELECT 1 FROM identity WHERE losses = 0") is not None
        sure = [entry for entry, whole in found if whole and nothing_lost]
        doubtful = [entry for entry, whole in found if not (whole and nothing_lost)]
        return {entry.key: entry for entry in (*sure, *self._complete(doubtful))}

    def _complete(self, entries: Sequence[ActionEntry]) -> list[ActionEntry]:
        if not entries:
            return []
        requests = {entry.request for entry in entries if entry.request is not None}
        lost_records = self.missing_records(requests.union(entry.key for entry in entries))
        lost_blobs = self.missing_blobs({digest for entry in entries for digest in _blobs_of(entry)})
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

    def _served(self, request: Key, put: GenerationPut) -> GenerationPut:
        """Say of a second output which one is served: the first may be lost."""
        if not put.equivocation:
            return put
        return GenerationPut(put.digest, self.generation_for(request) or put.digest, put.equivocation)

    def _move_entry(self, name: bytes) -> None:
        """Keep what a lost entry referred to, as `damaged`, and what stood beside it, and free its key."""
        for keep in (KEEP_AS_TARGET, *KEEP_AS_RECORDS):
            self._db.write(keep, (name,))
        self._db.write(
            "INSERT INTO damaged (what, name, data) SELECT 'entry', key, coalesce(result, x'')"
            " || coalesce(request, x'') || coalesce(generation, x'') || coalesce(sources, x'')"
            " FROM entry WHERE key = ?",
            (name,),
        )
        self._db.write("DELETE FROM entry WHERE key = ?", (name,))


class _Output(NamedTuple):
    """What is to be put of an execution; `preimage` is the request's, null where it is kept."""

    request: Key
    preimage: bytes | None
    generation: bytes
    observation: bytes


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


def _to_row(entry: ActionEntry, built: Built | None = None, *, whole: bool = False) -> Row:
    """Return the row of an entry, with what came with it."""
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
    if built is None:
        return (*row, None, None, 0, _seal(*row), None, None, None)
    sealed = (*row, built.principal, built.toolchain, int(whole))
    perimeter = built.perimeter
    return (*sealed, _seal(*sealed), bytes.fromhex(perimeter.key), built.action.data, perimeter.data)


def _from_row(row: Row) -> ActionEntry | None:
    """Decode a row; None for a damaged one or one of a newer schema: neither is a hit."""
    key, result, request, generation, sources, label, how, status, invocation, created, schema = row[:11]
    if not _is_sealed(row) or how not in _HOWS or schema != ENTRY_SCHEMA:
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


def _is_sealed(row: Row) -> bool:
    """Whether a row is as it was written."""
    return bool(row[14] == _seal(*(row[:11] if row[11] is None else row[:14])))


def _is_whole(row: Row) -> bool:
    """Whether all that an entry refers to was in the database when it was put; its seal says so only with a label."""
    return row[11] is not None and bool(row[13])


def _blobs_of(entry: ActionEntry) -> tuple[Digest, ...]:
    if entry.generation is None:
        return entry.result, *entry.sources
    return entry.result, entry.generation, *entry.sources


def _ref(built: Built) -> TargetRef:
    entry = built.entry
    return TargetRef(entry.label, built.principal, built.toolchain, entry.key, entry.invocation, entry.created)
