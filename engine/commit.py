"""The commit of an action, in this order: source → request → generation → result → entry, then the event.

The caller groups what comes together into one transaction, durable when a generation is in it: they cost a model call.
A kill cannot tear it, and what it loses had no event yet.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gsum.engine.events import Event, encode_event
from gsum.engine.executors.protocol import Generated
from gsum.engine.keys import KeySet
from gsum.rules.claims import Result
from gsum.rules.graph import Action
from gsum.rules.requests import Request
from gsum.store.api import GenerationPut, Store
from gsum.store.canonical import canonical_json
from gsum.store.digests import Digest, Key, Preimage, RecordKind, blob_digest, preimage_of
from gsum.store.records import ActionEntry, Generation, How, Observation, TargetRef

_GENERATIONS = msgspec.json.Decoder(Generation)


def request_preimage(request: Request) -> Preimage:
    """Return the request's key with its preimage."""
    return preimage_of(RecordKind.REQUEST, request)


class Done(msgspec.Struct, frozen=True):
    """An action that is ready to be committed."""

    action: Action
    result: Result
    how: How
    request: Key | None = None
    generation: Digest | None = None
    source: bytes | None = None


class Committer:
    """Writes what a build finishes to the store."""

    def __init__(self, store: Store, keys: KeySet, invocation: str) -> None:
        self._store = store
        self._keys = keys
        self._invocation = invocation
        self._records_put: set[Key] = set()

    def generation(self, request: Preimage, outcome: Generated, started: str) -> GenerationPut:
        """Keep a request, its generation, and the observation of its execution."""
        data = canonical_json(outcome.generation)
        self._store.put_record(request)
        observation = Observation(
            request=request.key,
            generation=blob_digest(data),
            invocation=self._invocation,
            started=started,
            seconds=outcome.seconds,
            device=outcome.device,
            dtype=outcome.dtype,
            versions=outcome.versions,
            settings=outcome.settings,
            prompt_tokens=outcome.prompt_tokens,
            prefilled=outcome.prefilled,
            reused=outcome.reused,
            forced=outcome.forced,
            sampled=outcome.sampled,
        )
        return self._store.put_generation(request.key, data, msgspec.json.encode(observation))

    def events(self, events: Sequence[Event]) -> None:
        """Append events to the invocation's journal."""
        self._store.append_events(self._invocation, [encode_event(event) for event in events])

    def load_generation(self, digest: Digest) -> Generation:
        """Return a kept generation."""
        return _GENERATIONS.decode(self._store.get_blob(digest))

    def entry(self, done: Done, now: str) -> None:
        """Keep an action's sources, preimages, result and entry, and what its label was built as."""
        keyed = self._keys.actions[done.action.label]
        sources = () if done.source is None else (self._store.put_blob(done.source),)
        self._put_records(done.action, keyed.action)
        result = self._store.put_blob(canonical_json(done.result))
        self._store.put_entry(
            ActionEntry(
                key=keyed.key,
                label=done.action.label,
                result=result,
                request=done.request,
                generation=done.generation,
                sources=sources,
                how=done.how,
                status=done.result.status.value,
                invocation=self._invocation,
                created=now,
            )
        )
        self.target(done.action, now)

    def target(self, action: Action, now: str) -> None:
        """Record what a label is now built as."""
        self._store.put_target(
            TargetRef(
                label=action.label,
                principal=action.principal,
                toolchain=action.toolchain or "",
                key=self._keys.actions[action.label].key,
                invocation=self._invocation,
                created=now,
            )
        )

    def _put_records(self, action: Action, preimage: Preimage) -> None:
        self._store.put_record(preimage)
        for key in self._keys.refs[action.label]:
            if key not in self._records_put:
                self._store.put_record(self._keys.records[key])
                self._records_put.add(key)
