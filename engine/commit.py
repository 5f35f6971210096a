"""The commit of an action: source, request, generation, result and entry in one transaction, then the event.

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
from gsum.store.api import Built, GenerationPut, Made, Store
from gsum.store.canonical import canonical_json
from gsum.store.digests import Digest, Key, Preimage, RecordKind, blob_digest, preimage_of
from gsum.store.records import ActionEntry, Generation, How, Observation, TargetRef

_GENERATIONS = msgspec.json.Decoder(Generation)


def request_preimage(request: Request) -> Preimage:
    """Return the request's key with its preimage."""
    return preimage_of(RecordKind.REQUEST, request)


class Done(msgspec.Struct, frozen=True):
    """An action that is ready to be committed; `text` is what it read of its document, null if it read none."""

    action: Action
    result: Result
    how: How
    text: str | None = None
    request: Key | None = None
    generation: Digest | None = None


class Committer:
    """Writes what a build finishes to the store."""

    def __init__(self, store: Store, keys: KeySet, invocation: str) -> None:
        self._store = store
        self._keys = keys
        self._invocation = invocation
        self._records_put: set[Key] = set()

    def generations(self, made: Sequence[tuple[Preimage, Generated, str]]) -> list[GenerationPut]:
        """Keep requests, their generations, and the observations of their executions, each started at a time."""
        return self._store.put_generations([self._made(*one) for one in made])

    def _made(self, request: Preimage, outcome: Generated, started: str) -> Made:
        data = canonical_json(outcome.generation)
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
            drafted=outcome.drafted,
        )
        return Made(request, data, msgspec.json.encode(observation))

    def events(self, events: Sequence[Event]) -> None:
        """Append events to the invocation's journal."""
        self._store.append_events(self._invocation, [encode_event(event) for event in events])

    def rolled_back(self) -> None:
        """Note that a transaction was given up: what it was to keep may have to be put again."""
        self._records_put.clear()

    def load_generation(self, digest: Digest) -> Generation:
        """Return a kept generation."""
        return _GENERATIONS.decode(self._store.get_blob(digest))

    def previous(self, actions: Sequence[Action]) -> dict[str, Key]:
        """Return the keys that the labels of actions were last built as, for those that were ever built."""
        names: dict[tuple[str, str], list[str]] = {}
        for action in actions:
            names.setdefault((action.principal, action.toolchain or ""), []).append(action.label)
        return {
            label: ref.key
            for whose, labels in names.items()
            for label, ref in self._store.latest_of(labels, *whose).items()
        }

    def entries(self, done: Sequence[Done], now: str) -> None:
        """Keep the sources, preimages, results and entries of actions, and what their labels were built as."""
        sources = self._sources(done)
        self._put_named(done)
        results = self._store.put_blobs([canonical_json(one.result) for one in done])
        self._store.put_built(
            [
                self._built(one, result, sources.get(one.action.label, ()), now)
                for one, result in zip(done, results, strict=True)
            ]
        )

    def _built(self, done: Done, result: Digest, sources: tuple[Digest, ...], now: str) -> Built:
        action, keyed = done.action, self._keys.actions[done.action.label]
        entry = ActionEntry(
            key=keyed.key,
            label=action.label,
            result=result,
            request=done.request,
            generation=done.generation,
            sources=sources,
            how=done.how,
            status=done.result.status.value,
            invocation=self._invocation,
            created=now,
        )
        perimeter = self._keys.records[keyed.perimeter]
        return Built(entry, keyed.action, perimeter, action.principal, action.toolchain or "")

    def targets(self, actions: Sequence[Action], now: str) -> None:
        """Record what labels are now built as."""
        self._store.put_targets(
            [
                TargetRef(
                    label=action.label,
                    principal=action.principal,
                    toolchain=action.toolchain or "",
                    key=self._keys.actions[action.label].key,
                    invocation=self._invocation,
                    created=now,
                )
                for action in actions
            ]
        )

    def _sources(self, done: Sequence[Done]) -> dict[str, tuple[Digest, ...]]:
        """Keep the documents that were read: a text is the strict decoding of its bytes, so these are they."""
        read = [(one.action.label, one.text.encode()) for one in done if one.text is not None]
        digests = self._store.put_blobs([data for _, data in read])
        return {label: (digest,) for (label, _), digest in zip(read, digests, strict=True)}

    def _put_named(self, done: Sequence[Done]) -> None:
        """Keep the records of toolchains, prompts and schemas, which many actions share."""
        preimages = []
        for one in done:
            for key in self._keys.refs[one.action.label]:
                if key not in self._records_put:
                    preimages.append(self._keys.records[key])
                    self._records_put.add(key)
        self._store.put_records(preimages)
