"""Builders of what a store keeps: complete actions, generations, invocations. Deterministic in their number."""

from __future__ import annotations

from typing import NamedTuple

from gsum.store.api import Built, Made, Store
from gsum.store.digests import Digest, Key, Preimage, RecordKind, preimage_of
from gsum.store.records import ActionEntry, How, InvocationRecord, TargetRef


class Example(NamedTuple):
    """One action with all that its entry refers to."""

    action: Preimage
    perimeter: Preimage
    request: Preimage
    source: bytes
    generation: bytes
    observation: bytes
    result: bytes

    def entry(self, result: Digest, generation: Digest, source: Digest) -> ActionEntry:
        return ActionEntry(
            key=self.action.key,
            label=f"//dossier:S-010/{self.action.key[:4]}",
            result=result,
            request=self.request.key,
            generation=generation,
            sources=(source,),
            how=How.GENERATED,
            status="VALID",
            invocation="i-1",
            created="2026-11-30T12:00:00Z",
        )


def example(number: int, *, size: int = 40) -> Example:
    """Return the action with a number; `size` is about that of its source text."""
    return Example(
        action=preimage_of(RecordKind.ACTION, {"number": number}),
        perimeter=preimage_of(RecordKind.PERIMETER, {"reader": number % 2}),
        request=preimage_of(RecordKind.REQUEST, {"prompt": number}),
        source=b"source %d " % number * (size // 10 + 1),
        generation=b'{"claims":[],"number":%d}' % number,
        observation=b'{"seconds":%d}' % number,
        result=b'{"status":"VALID","number":%d}' % number,
    )


def keep(store: Store, example: Example) -> ActionEntry:
    """Put an action and all that it refers to, as a build does."""
    source = store.put_blob(example.source)
    (put,) = store.put_generations([Made(example.request, example.generation, example.observation)])
    entry = example.entry(store.put_blob(example.result), put.digest, source)
    store.put_built([Built(entry, example.action, example.perimeter, "reader-demo", "fake")])
    return entry


def keep_apart(store: Store, example: Example) -> ActionEntry:
    """Put an action and all that it refers to one by one, its preimages as records."""
    store.put_record(example.action)
    store.put_record(example.request)
    source = store.put_blob(example.source)
    put = store.put_generation(example.request.key, example.generation, example.observation)
    entry = example.entry(store.put_blob(example.result), put.digest, source)
    store.put_entry(entry)
    return entry


def target(
    label: str, key: Key, *, principal: str = "reader-demo", toolchain: str = "fake", invocation: str = "i-1"
) -> TargetRef:
    return TargetRef(label, principal, toolchain, key, invocation, "2026-11-30T12:00:00Z")


def invocation(name: str) -> InvocationRecord:
    return InvocationRecord(
        id=name,
        started="2026-11-30T12:00:00Z",
        patterns=("//dossier:S-010/root",),
        principal="reader-demo",
        toolchain="fake",
        full=False,
        version="0.1.0",
    )
