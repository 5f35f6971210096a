"""The store of a workspace that nothing was built in yet: it can be looked into and holds nothing.

It exists so that commands which only look make no store. It touches no file.
"""

# ruff: noqa: ARG002 - the signatures are those of the protocol
from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn

from gsum.store.api import Built, GenerationPut, Made, Store
from gsum.store.digests import Digest, Key, Preimage
from gsum.store.errors import StoreError
from gsum.store.records import ActionEntry, InvocationRecord, TargetRef


class EmptyStore:
    """A `Store` that holds nothing and takes nothing."""

    def put_blob(self, data: bytes) -> Digest:
        """Refuse."""
        _refuse()

    def put_blobs(self, contents: Sequence[bytes]) -> list[Digest]:
        """Refuse."""
        _refuse()

    def get_blob(self, digest: Digest) -> bytes:
        """Raise: there is none."""
        raise StoreError(f"the store holds nothing, so no blob `{digest[:16]}`", hint="gsum build PATTERN")

    def get_blobs(self, digests: Iterable[Digest]) -> dict[Digest, bytes]:
        """Raise unless none is asked for: there is none."""
        return {digest: self.get_blob(digest) for digest in digests}

    def missing_blobs(self, digests: Iterable[Digest]) -> set[Digest]:
        """Return all of them."""
        return set(digests)

    def put_record(self, preimage: Preimage) -> Key:
        """Refuse."""
        _refuse()

    def put_records(self, preimages: Sequence[Preimage]) -> None:
        """Refuse."""
        _refuse()

    def get_record(self, key: Key) -> Preimage:
        """Raise: there is none."""
        raise StoreError(f"the store holds nothing, so no record `{key[:16]}`", hint="gsum build PATTERN")

    def find(self, prefix: str) -> list[str]:
        """Return nothing."""
        return []

    def put_generation(self, request: Key, generation: bytes, observation: bytes) -> GenerationPut:
        """Refuse."""
        _refuse()

    def put_generations(self, made: Sequence[Made]) -> list[GenerationPut]:
        """Refuse."""
        _refuse()

    def epoch(self) -> str:
        """Return the name of nothing."""
        return "empty"

    def has_invocation(self, invocation: str) -> bool:
        """Tell that it was not."""
        return False

    def generation_for(self, request: Key) -> Digest | None:
        """Return none."""
        return None

    def generations_for(self, requests: Sequence[Key]) -> dict[Key, Digest]:
        """Return nothing."""
        return {}

    def generations(self, request: Key) -> list[Digest]:
        """Return nothing."""
        return []

    def observations(self, request: Key) -> list[bytes]:
        """Return nothing."""
        return []

    def put_entry(self, entry: ActionEntry) -> bool:
        """Refuse."""
        _refuse()

    def put_entries(self, entries: Sequence[ActionEntry]) -> list[bool]:
        """Refuse."""
        _refuse()

    def put_built(self, built: Sequence[Built]) -> None:
        """Refuse."""
        _refuse()

    def entries(self, keys: Sequence[Key]) -> dict[Key, ActionEntry]:
        """Return nothing."""
        return {}

    def put_target(self, ref: TargetRef) -> None:
        """Refuse."""
        _refuse()

    def put_targets(self, refs: Sequence[TargetRef]) -> None:
        """Refuse."""
        _refuse()

    def latest_of(self, labels: Sequence[str], principal: str, toolchain: str) -> dict[str, TargetRef]:
        """Return nothing."""
        return {}

    def latest(self, label: str, principal: str, toolchain: str) -> TargetRef | None:
        """Return none."""
        return None

    def target_history(self, label: str, principal: str) -> list[TargetRef]:
        """Return nothing."""
        return []

    def begin(self, record: InvocationRecord) -> None:
        """Refuse."""
        _refuse()

    def finish(self, record: InvocationRecord) -> None:
        """Refuse."""
        _refuse()

    def append_events(self, invocation: str, events: Sequence[bytes]) -> None:
        """Refuse."""
        _refuse()

    def events(self, invocation: str) -> list[bytes]:
        """Return nothing."""
        return []

    def events_holding(self, invocation: str, part: bytes) -> list[bytes]:
        """Return nothing."""
        return []

    def last_events(self, invocation: str) -> list[bytes]:
        """Return nothing."""
        return []

    def invocations(self, limit: int) -> list[InvocationRecord]:
        """Return nothing."""
        return []

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[None]:
        """Return a block in which nothing can be put."""
        return nullcontext()

    def close(self) -> None:
        """Release nothing."""


def _refuse() -> NoReturn:
    raise StoreError("nothing can be put into a store that was not made")


_implements: type[Store] = EmptyStore
