"""What the engine may ask of a store, as Protocols with their obligations. Pure: no implementation here.

Obligations: puts are idempotent and put-if-absent; nothing is ever overwritten; reads verify content
against its digest or key; many processes may use one store at once; a kill loses no finished transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from gsum.store.digests import Digest, Key, Preimage
from gsum.store.records import ActionEntry, InvocationRecord, TargetRef


class GenerationPut(msgspec.Struct, frozen=True):
    """What became of a put generation: `equivocation` when another output was there first for this request."""

    digest: Digest
    first: Digest
    equivocation: bool


class Made(msgspec.Struct, frozen=True):
    """A request, a generation (canonical bytes) of it, and the observation of its execution."""

    request: Preimage
    generation: bytes
    observation: bytes


class Built(msgspec.Struct, frozen=True):
    """An entry with the preimages of its key and its perimeter, and for whom and with which toolchain (by name) its
    label was built as that.
    """

    entry: ActionEntry
    action: Preimage
    perimeter: Preimage
    principal: str
    toolchain: str


class Cas(Protocol):
    """Content-addressed blobs and keyed records."""

    def put_blob(self, data: bytes) -> Digest:
        """Keep a blob and return its digest."""

    def put_blobs(self, contents: Sequence[bytes]) -> list[Digest]:
        """Keep blobs and return their digests, in order."""

    def get_blob(self, digest: Digest) -> bytes:
        """Return a blob whose bytes hash to `digest`; raise `BlobMissing` or `BlobCorrupt` otherwise."""

    def get_blobs(self, digests: Iterable[Digest]) -> dict[Digest, bytes]:
        """Return several blobs, each as `get_blob` does."""

    def missing_blobs(self, digests: Iterable[Digest]) -> set[Digest]:
        """Return those of `digests` that are not kept."""

    def put_record(self, preimage: Preimage) -> Key:
        """Keep a key's preimage."""

    def put_records(self, preimages: Sequence[Preimage]) -> None:
        """Keep the preimages of several keys, or none if one does not hash to its key."""

    def get_record(self, key: Key) -> Preimage:
        """Return a preimage that hashes to `key`; raise `BlobMissing` or `BlobCorrupt` otherwise."""

    def find(self, prefix: str) -> list[str]:
        """Return the digests and keys that start with `prefix` (hex), sorted, at most 16."""


class ActionCache(Protocol):
    """Requests to generations, action keys to entries."""

    def put_generation(self, request: Key, generation: bytes, observation: bytes) -> GenerationPut:
        """Keep a generation (canonical bytes) of a kept request, and the observation of its execution.

        The first generation of a request is the one that is served; a different one is kept beside it.
        """

    def put_generations(self, made: Sequence[Made]) -> list[GenerationPut]:
        """Keep requests and what came of them, in order, as `put_record` and `put_generation` do: all or none."""

    def generation_for(self, request: Key) -> Digest | None:
        """Return the served generation of a request, if one is kept with its blob."""

    def generations_for(self, requests: Sequence[Key]) -> dict[Key, Digest]:
        """Return the served generations of those of `requests` that have one."""

    def generations(self, request: Key) -> list[Digest]:
        """Return all generations of a request, in the order in which they first came."""

    def observations(self, request: Key) -> list[bytes]:
        """Return the observations of a request, oldest first."""

    def put_entry(self, entry: ActionEntry) -> bool:
        """Keep an entry; return False when one is already there (which then stays)."""

    def put_entries(self, entries: Sequence[ActionEntry]) -> list[bool]:
        """Keep several, in order, as `put_entry` does: all or none."""

    def put_built(self, built: Sequence[Built]) -> None:
        """Keep entries, in order, with their preimages, and that their labels were built as them: all or none.

        What `put_records`, `put_entries` and `put_targets` would keep, in fewer rows. A label of a new entry was built
        by its invocation, even if it had been built as its key before.
        """

    def entries(self, keys: Sequence[Key]) -> dict[Key, ActionEntry]:
        """Return the complete entries of `keys`: those whose preimage, request, generation, sources and result
        are all kept. An incomplete entry is not a hit.
        """


class Journal(Protocol):
    """What was built as what, and by which invocation."""

    def put_target(self, ref: TargetRef) -> None:
        """Record that a label has been built as a key; the newest is the last put."""

    def put_targets(self, refs: Sequence[TargetRef]) -> None:
        """Record several, in order."""

    def latest(self, label: str, principal: str, toolchain: str) -> TargetRef | None:
        """Return what a label was last built as."""

    def latest_of(self, labels: Sequence[str], principal: str, toolchain: str) -> dict[str, TargetRef]:
        """Return what those of `labels` that were ever built were last built as."""

    def target_history(self, label: str, principal: str) -> list[TargetRef]:
        """Return all a label was built as, newest first."""

    def begin(self, record: InvocationRecord) -> None:
        """Record that an invocation started."""

    def finish(self, record: InvocationRecord) -> None:
        """Record how an invocation ended (the one record that replaces its RUNNING form)."""

    def append_events(self, invocation: str, events: Sequence[bytes]) -> None:
        """Append encoded events of an invocation, in order."""

    def events(self, invocation: str) -> list[bytes]:
        """Return an invocation's events in order."""

    def events_holding(self, invocation: str, part: bytes) -> list[bytes]:
        """Return those of an invocation's encoded events that hold `part`, in order."""

    def last_events(self, invocation: str) -> list[bytes]:
        """Return the events of the last append, without reading those before."""

    def has_invocation(self, invocation: str) -> bool:
        """Tell whether an invocation was recorded here to its end."""

    def invocations(self, limit: int) -> list[InvocationRecord]:
        """Return the newest invocations, newest first."""


class Store(Cas, ActionCache, Journal, Protocol):
    """One store: blobs, action cache and journal, with transactions."""

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[None]:
        """Group puts: all of them are kept or none. `durable` ones survive power loss when the block ends."""

    def epoch(self) -> str:
        """Return what names this store and changes whenever something kept is lost: an index may lean on it."""

    def close(self) -> None:
        """Release the store."""
