"""A store in dictionaries: the reference model of the conformance suite, and a fast one for tests of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy

from gsum.store.api import Built, GenerationPut, Made, Store
from gsum.store.digests import Digest, Key, Preimage, RecordKind, blob_digest, derive_key
from gsum.store.faults import BlobCorrupt, BlobMissing
from gsum.store.records import ActionEntry, InvocationRecord, InvocationStatus, TargetRef


class MemoryStore:
    """Says in the plainest way what each call of `Store` means."""

    def __init__(self) -> None:
        self.blobs: dict[Digest, bytes] = {}
        self.records: dict[Key, Preimage] = {}
        self.executions: dict[Key, list[tuple[Digest, bytes]]] = {}
        self.kept_entries: dict[Key, ActionEntry] = {}
        self.targets: list[TargetRef] = []
        self.records_of: dict[str, InvocationRecord] = {}
        self.logged: dict[str, list[bytes]] = {}
        self.last_logged: dict[str, list[bytes]] = {}

    def put_blob(self, data: bytes) -> Digest:
        digest = blob_digest(data)
        self.blobs[digest] = data
        return digest

    def put_blobs(self, contents: Sequence[bytes]) -> list[Digest]:
        return [self.put_blob(data) for data in contents]

    def get_blob(self, digest: Digest) -> bytes:
        if digest not in self.blobs:
            raise BlobMissing(digest, "blob")
        return self.blobs[digest]

    def get_blobs(self, digests: Iterable[Digest]) -> dict[Digest, bytes]:
        return {digest: self.get_blob(digest) for digest in digests}

    def missing_blobs(self, digests: Iterable[Digest]) -> set[Digest]:
        return set(digests) - self.blobs.keys()

    def put_record(self, preimage: Preimage) -> Key:
        if derive_key(preimage.kind, preimage.data) != preimage.key:
            raise BlobCorrupt(preimage.key, "record", set_aside=False)
        self.records[preimage.key] = preimage
        return preimage.key

    def put_records(self, preimages: Sequence[Preimage]) -> None:
        with self.transaction():
            for preimage in preimages:
                self.put_record(preimage)

    def get_record(self, key: Key) -> Preimage:
        if key not in self.records:
            raise BlobMissing(key, "record")
        return self.records[key]

    def find(self, prefix: str) -> list[str]:
        names = {*self.blobs, *self.records}
        return sorted(name for name in names if name.startswith(prefix.lower()))[:16]

    def put_generation(self, request: Key, generation: bytes, observation: bytes) -> GenerationPut:
        record = self.records.get(request)
        if record is None or record.kind is not RecordKind.REQUEST:
            raise BlobMissing(request, "request")
        digest = self.put_blob(generation)
        executions = self.executions.setdefault(request, [])
        if (digest, observation) not in executions:
            executions.append((digest, observation))
        return GenerationPut(digest, executions[0][0], executions[0][0] != digest)

    def put_generations(self, made: Sequence[Made]) -> list[GenerationPut]:
        with self.transaction():
            for one in made:
                if one.request.kind is not RecordKind.REQUEST:
                    raise BlobCorrupt(one.request.key, "request", set_aside=False)
            return [self.put_generation(self.put_record(one.request), one.generation, one.observation) for one in made]

    def generations_for(self, requests: Sequence[Key]) -> dict[Key, Digest]:
        found = {request: self.generation_for(request) for request in requests}
        return {request: digest for request, digest in found.items() if digest is not None}

    def generation_for(self, request: Key) -> Digest | None:
        return next(iter(self.generations(request)), None)

    def generations(self, request: Key) -> list[Digest]:
        return list(dict.fromkeys(digest for digest, _ in self.executions.get(request, [])))

    def observations(self, request: Key) -> list[bytes]:
        return [observation for _, observation in self.executions.get(request, [])]

    def put_entry(self, entry: ActionEntry) -> bool:
        kept = self.kept_entries.get(entry.key)
        if kept is None or (not self._complete(kept) and self._complete(entry)):
            self.kept_entries[entry.key] = entry
            return True
        return False

    def put_entries(self, entries: Sequence[ActionEntry]) -> list[bool]:
        return [self.put_entry(entry) for entry in entries]

    def put_built(self, built: Sequence[Built]) -> None:
        with self.transaction():
            for one in built:
                entry = one.entry
                self.put_records([one.action, one.perimeter])
                put = self.put_entry(entry)
                ref = TargetRef(entry.label, one.principal, one.toolchain, entry.key, entry.invocation, entry.created)
                if put:
                    self.targets = [old for old in self.targets if _of(old) != _of(ref)]
                self.put_target(ref)

    def entries(self, keys: Sequence[Key]) -> dict[Key, ActionEntry]:
        kept = [self.kept_entries[key] for key in keys if key in self.kept_entries]
        return {entry.key: entry for entry in kept if self._complete(entry)}

    def _complete(self, entry: ActionEntry) -> bool:
        if entry.key not in self.records or self.missing_blobs((entry.result, *entry.sources)):
            return False
        if entry.request is None or entry.generation is None:
            return entry.request is None and entry.generation is None
        return (
            entry.request in self.records
            and entry.generation in self.blobs
            and entry.generation in self.generations(entry.request)
        )

    def epoch(self) -> str:
        return f"memory-{id(self)}"

    def has_invocation(self, invocation: str) -> bool:
        record = self.records_of.get(invocation)
        return record is not None and record.status is not InvocationStatus.RUNNING

    def put_target(self, ref: TargetRef) -> None:
        latest = self.latest(ref.label, ref.principal, ref.toolchain)
        if latest is None or latest.key != ref.key:
            self.targets = [old for old in self.targets if _of(old) != _of(ref)]
            self.targets.append(ref)

    def put_targets(self, refs: Sequence[TargetRef]) -> None:
        for ref in refs:
            self.put_target(ref)

    def latest_of(self, labels: Sequence[str], principal: str, toolchain: str) -> dict[str, TargetRef]:
        found = {label: self.latest(label, principal, toolchain) for label in labels}
        return {label: ref for label, ref in found.items() if ref is not None}

    def latest(self, label: str, principal: str, toolchain: str) -> TargetRef | None:
        return next((ref for ref in self.target_history(label, principal) if ref.toolchain == toolchain), None)

    def target_history(self, label: str, principal: str) -> list[TargetRef]:
        return [ref for ref in reversed(self.targets) if (ref.label, ref.principal) == (label, principal)]

    def begin(self, record: InvocationRecord) -> None:
        self.records_of.setdefault(record.id, record)

    def finish(self, record: InvocationRecord) -> None:
        if self.records_of.setdefault(record.id, record).status is InvocationStatus.RUNNING:
            self.records_of[record.id] = record

    def append_events(self, invocation: str, events: Sequence[bytes]) -> None:
        self.logged.setdefault(invocation, []).extend(events)
        if events:
            self.last_logged[invocation] = list(events)

    def events(self, invocation: str) -> list[bytes]:
        return list(self.logged.get(invocation, []))

    def events_holding(self, invocation: str, part: bytes) -> list[bytes]:
        return [event for event in self.logged.get(invocation, []) if part in event]

    def last_events(self, invocation: str) -> list[bytes]:
        return list(self.last_logged.get(invocation, []))

    def invocations(self, limit: int) -> list[InvocationRecord]:
        return list(reversed(self.records_of.values()))[: max(limit, 0)]

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[None]:
        before = deepcopy(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.update(before)
            raise

    def close(self) -> None:
        pass


def _of(ref: TargetRef) -> tuple[str, ...]:
    return ref.label, ref.principal, ref.toolchain, ref.key


_implements: type[Store] = MemoryStore
