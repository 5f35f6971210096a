"""Drives a plan: renders what is ready, serves known requests, sends the others to executors, commits, emits events.

One thread; executors return outcome values. What comes together is committed together, and events are emitted after
their commit. A failed action skips its ancestors and, unless told to keep going, ends the build: once what is in
flight has come back, or at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec

from gsum.engine.clock import Clock
from gsum.engine.commit import Committer, Done, request_preimage
from gsum.engine.drafts import find_drafts
from gsum.engine.events import (
    ActionFailed,
    ActionFinished,
    ActionSkipped,
    ActionStarted,
    Equivocation,
    Event,
    Miss,
    miss_of,
)
from gsum.engine.executors.protocol import ExecRequest, Executor, Failed, FailureReason, Generated
from gsum.engine.frontier import Frontier
from gsum.engine.inputs import InputReader
from gsum.engine.keys import KeySet
from gsum.engine.report import BuildOptions
from gsum.rules.claims import Result, Status
from gsum.rules.config import Workspace
from gsum.rules.graph import Action, ActionGraph
from gsum.rules.ingest import SourceChanged
from gsum.rules.kinds import RULES
from gsum.rules.rendering import shared_by_reductions
from gsum.rules.requests import Request
from gsum.rules.rule import Finished, Inputs
from gsum.store.api import GenerationPut, Store
from gsum.store.digests import Digest, Key, Preimage
from gsum.store.faults import BlobCorrupt, BlobMissing
from gsum.store.records import Generation, How

POLL_SECONDS = 0.1
GROUP = 256
"""Most actions of one commit: what a kill may cost that was ready and not yet finished."""

GROUP_CHARACTERS = 8 * 1024 * 1024
"""Text that the actions of one commit and those in flight may hold before no more start: what bounds memory."""


class Waiting(msgspec.Struct):
    """A request in flight and every action that waits for its generation."""

    request: Preimage
    started: str
    actions: list[tuple[Action, Inputs]]


class Outcome(msgspec.Struct, frozen=True):
    """What became of one action that ran. `result` is kept by a full build alone, which compares it."""

    status: Status
    how: How
    generation: Digest | None
    new_tokens: int = 0
    result: Result | None = None


class Scheduler:
    """Runs the actions of a plan. After `run`, `done`, `failed` and `skipped` say what became of each."""

    def __init__(
        self,
        *,
        workspace: Workspace,
        graph: ActionGraph,
        keys: KeySet,
        store: Store,
        reader: InputReader,
        committer: Committer,
        executor_for: Callable[[str], Executor],
        report: Callable[[Event], None],
        interrupted: Callable[[], bool],
        clock: Clock,
        options: BuildOptions,
    ) -> None:
        self._workspace, self._graph, self._keys, self._store = workspace, graph, keys, store
        self._reader, self._committer, self._options = reader, committer, options
        self._executor_for, self._report, self._interrupted, self._clock = executor_for, report, interrupted, clock
        self._results: dict[str, Result] = {}
        """Of actions that some other action still has to read."""
        self._previous: dict[str, Key] = {}
        self._in_flight: dict[Key, Waiting] = {}
        self._held = 0
        """Characters of the texts that actions in flight hold."""
        self._executors: dict[str, Executor] = {}
        self._then = shared_by_reductions(workspace)
        self._started: list[Event] = []
        """Said, and written with the next commit: a start is worth no commit of its own."""
        self._done: list[Done] = []
        self._said: list[Event] = []
        self._apart: set[str] = set()
        """Labels of a full build whose results differ from what is served: they get no entry."""
        self.equivocal: set[str] = set()
        """Those of them whose own request gave another output than before."""
        self.done: dict[str, Outcome] = {}
        self.failed: dict[str, ActionFailed] = {}
        self.skipped: dict[str, str | None] = {}

    def run(self, to_run: tuple[str, ...], hits: dict[str, Digest]) -> None:
        """Run `to_run` (children before parents); `hits` maps served labels to their result blobs."""
        self._hits = hits
        self._frontier = Frontier(self._graph, to_run)
        try:
            while not self._interrupted() and not (self._options.fail_fast and self.failed):
                if self._room(0):
                    self._start_some()
                elif self._in_flight:
                    self._collect()
                else:
                    break
        finally:
            self._drain()
        with self._group():
            for label in to_run:
                if label not in self.done and label not in self.failed and label not in self.skipped:
                    self._skip(label, None)

    @contextmanager
    def _group(self, *, durable: bool = False) -> Iterator[None]:
        """Commit all that the block finishes, then emit its events: an action whose event is out is kept."""
        self._said, self._done = [], []
        try:
            with self._store.transaction(durable=durable):
                yield
                if self._done:
                    self._committer.entries(self._done, self._clock.now())
                if self._started or self._said:
                    self._committer.events([*self._started, *self._said])
        except BaseException:
            self._committer.rolled_back()
            raise
        said, self._started, self._said, self._done = self._said, [], [], []
        for event in said:
            self._report(event)

    @property
    def _stopping(self) -> bool:
        return bool(self.failed) and not self._options.keep_going

    def _room(self, taken: int, held: int = 0) -> bool:
        """Whether the most urgent ready action can start beside `taken` others, which hold so many characters: its
        executor wants more, or it may need none.
        """
        label = self._frontier.next
        if label is None or self._stopping or self._held + held >= GROUP_CHARACTERS:
            return False
        action = self._graph.actions[label]
        if action.toolchain is None or action.prompt is None:
            return True
        jobs, capacity = self._options.jobs, self._executor(action.toolchain).capacity
        return len(self._in_flight) + taken < (capacity if jobs is None else min(jobs, capacity))

    def _start_some(self) -> None:
        """Start ready actions, most urgent first, as one commit; then send what needs a model."""
        given, changed = self._ready()
        self._previous.update(self._committer.previous([action for action, _ in (*given, *changed)]))
        to_submit: dict[str, list[ExecRequest]] = {}
        alone = self._start(given, to_submit)
        for toolchain, requests in to_submit.items():
            self._executor(toolchain).submit(requests)
        if alone or changed:
            with self._group():
                for done in alone:
                    self._finish(done)
                for action, failed in changed:
                    self._fail(action.label, failed)

    def _ready(self) -> tuple[list[tuple[Action, Inputs]], list[tuple[Action, Failed]]]:
        """Take ready actions with what they read, and those that can't read it: no document is as it was for ever."""
        taken: list[tuple[Action, str | None]] = []
        changed: list[tuple[Action, Failed]] = []
        asking = held = 0
        while len(taken) < GROUP and self._room(asking, held):
            action = self._graph.actions[self._frontier.pop()]
            try:
                readable = action.scope is not None and action.scope.readable
                text = self._reader.text(action).text if readable else None
            except SourceChanged as error:
                self._let_go(action.label)
                changed.append((action, _source_changed(self._keys.actions[action.label].key, error)))
                if self._options.keep_going:
                    continue
                break
            taken.append((action, text))
            asking += action.prompt is not None
            held += len(text or "")
        return self._with_inputs(taken), changed

    def _with_inputs(self, taken: Sequence[tuple[Action, str | None]]) -> list[tuple[Action, Inputs]]:
        """Gather what actions read beside their texts; results that no other action wants are let go."""
        children = [child for action, _ in taken for child in action.children if child not in self._results]
        self._results |= self._reader.load_hits({child: self._hits[child] for child in children})
        given = []
        for action, text in taken:
            given.append((action, self._reader.inputs(action, self._results, text)))
            self._let_go(action.label)
        return given

    def _executor(self, toolchain: str) -> Executor:
        if toolchain not in self._executors:
            self._executors[toolchain] = self._executor_for(toolchain)
        return self._executors[toolchain]

    def _start(self, given: Sequence[tuple[Action, Inputs]], to_submit: dict[str, list[ExecRequest]]) -> list[Done]:
        """Return what needs no model, note who waits for a request in flight, and add new requests to `to_submit`."""
        rendered = [(action, inputs, RULES[action.rule].render(action, inputs)) for action, inputs in given]
        preimages = [None if isinstance(what, Finished) else request_preimage(what) for _, _, what in rendered]
        asked = [preimage.key for preimage in preimages if preimage is not None]
        known = {} if self._options.full else self._store.generations_for(asked)
        drafts = self._drafts([(action, what) for action, _, what in rendered])
        now = self._clock.now()
        alone: list[Done] = []
        for (action, inputs, what), preimage in zip(rendered, preimages, strict=True):
            if isinstance(what, Finished):
                how = How.INELIGIBLE if what.ineligible else How.PURE
                alone.append(Done(action, what.result, how, inputs.text))
                continue
            assert preimage is not None
            if preimage.key in self._in_flight:
                self._in_flight[preimage.key].actions.append((action, inputs))
                self._held += len(inputs.text or "")
            elif preimage.key in known:
                digest = known[preimage.key]
                generation = self._committer.load_generation(digest)
                alone.append(_cut_off(action, inputs, preimage.key, digest, generation))
            else:
                assert action.toolchain is not None
                self._in_flight[preimage.key] = Waiting(preimage, now, [(action, inputs)])
                self._held += len(inputs.text or "")
                key = self._keys.actions[action.label].key
                started = ActionStarted(action.label, key, preimage.key, self._miss(action.label, key))
                self._started.append(started)
                self._report(started)
                timeout = self._workspace.toolchains[action.toolchain].timeout_seconds
                draft, then = drafts.get(action.label, ()), self._then.get(action.prompt or "", ())
                request = ExecRequest(preimage.key, what, timeout, draft, then)
                to_submit.setdefault(action.toolchain, []).append(request)
        return alone

    def _drafts(self, rendered: Sequence[tuple[Action, Request | Finished]]) -> dict[str, tuple[int, ...]]:
        """Return what labels last said, if drafts are wanted."""
        if not self._options.draft or self._options.full:
            return {}
        wanted = {
            self._previous[action.label]: (action.label, what)
            for action, what in rendered
            if isinstance(what, Request) and action.label in self._previous
        }
        found = find_drafts(self._store, {key: request for key, (_, request) in wanted.items()})
        return {wanted[key][0]: tokens for key, tokens in found.items()}

    def _let_go(self, label: str) -> None:
        for child in self._frontier.read(label):
            self._results.pop(child, None)

    def _collect(self) -> None:
        """Take what executors have finished; wait a moment when nothing is there."""
        executors = list(self._executors.values())
        outcomes = [outcome for executor in executors for outcome in executor.wait(POLL_SECONDS / len(executors))]
        if outcomes:
            self._take_all(outcomes)

    def _take_all(self, outcomes: Sequence[Generated | Failed]) -> None:
        """Commit outcomes that came together: durably, if a model call would be lost with them."""
        landed = [(self._in_flight.pop(outcome.key), outcome) for outcome in outcomes if outcome.key in self._in_flight]
        self._held -= sum(len(inputs.text or "") for waiting, _ in landed for _, inputs in waiting.actions)
        generated = [(waiting, outcome) for waiting, outcome in landed if isinstance(outcome, Generated)]
        with self._group(durable=bool(generated)):
            kept = [(waiting.request, outcome, waiting.started) for waiting, outcome in generated]
            puts = iter(self._committer.generations(kept))
            for waiting, outcome in landed:
                if isinstance(outcome, Generated):
                    self._take(waiting, outcome, next(puts))
                else:
                    for action, _ in waiting.actions:
                        self._fail(action.label, outcome)

    def _take(self, waiting: Waiting, outcome: Generated, put: GenerationPut) -> None:
        generation, digest = outcome.generation, put.digest
        if put.equivocation:
            first_label = waiting.actions[0][0].label
            self._say(Equivocation(first_label, outcome.key, put.first, put.digest))
            if self._options.full:
                self.equivocal.update(action.label for action, _ in waiting.actions)
                self._apart |= self.equivocal
            else:
                # Where the first is damaged, this one is served from now on; the damage is no reason to lose it.
                with suppress(BlobCorrupt, BlobMissing):
                    generation, digest = self._committer.load_generation(put.first), put.first
        (action, inputs), *others = waiting.actions
        result = RULES[action.rule].resolve(action, inputs, generation)
        done = Done(action, result, How.GENERATED, inputs.text, waiting.request.key, digest)
        self._finish(done, outcome)
        for other, other_inputs in others:
            self._finish(_cut_off(other, other_inputs, waiting.request.key, digest, generation))

    def _finish(self, done: Done, outcome: Generated | None = None) -> None:
        label, result = done.action.label, done.result
        if self._options.full and any(child in self._apart for child in done.action.children):
            self._apart.add(label)
        if label not in self._apart:
            self._done.append(done)
        if self._frontier.wanted(label):
            self._results[label] = result
        new_tokens = outcome.forced + outcome.sampled if outcome else 0
        kept = result if self._options.full else None
        self.done[label] = Outcome(result.status, done.how, done.generation, new_tokens, kept)
        key = self._keys.actions[label].key
        reason = self._miss(label, key)
        self._say(
            ActionFinished(
                label=label,
                key=key,
                how=done.how.value,
                status=result.status.value,
                previous=self._previous.pop(label, None),
                seconds=outcome.seconds if outcome else 0.0,
                prompt_tokens=outcome.prompt_tokens if outcome else 0,
                reused_tokens=outcome.reused if outcome else 0,
                new_tokens=new_tokens,
                sampled_tokens=outcome.sampled if outcome else 0,
                drafted_tokens=outcome.drafted if outcome else 0,
                reason=reason,
            )
        )
        self._frontier.finished(label)

    def _miss(self, label: str, key: Key) -> Miss:
        return miss_of(key, self._previous.get(label), full=self._options.full)

    def _fail(self, label: str, outcome: Failed) -> None:
        event = ActionFailed(
            label=label,
            key=self._keys.actions[label].key,
            previous=self._previous.pop(label, None),
            reason=outcome.reason.value,
            message=outcome.message,
            exit_code=int(outcome.exit_code),
            facts=outcome.facts,
            hint=outcome.hint,
        )
        self.failed[label] = event
        self._say(event)
        for parent in self._frontier.above(label):
            if parent not in self.skipped:
                self._skip(parent, label)
                self._let_go(parent)

    def _skip(self, label: str, because: str | None) -> None:
        self.skipped[label] = because
        self._say(ActionSkipped(label, self._keys.actions[label].key, because))

    def _say(self, event: Event) -> None:
        self._said.append(event)

    def _drain(self) -> None:
        """Keep what executors have already finished, give up the rest."""
        if not self._in_flight:
            return
        for executor in self._executors.values():
            executor.cancel()
            finished = [outcome for outcome in executor.wait(0) if isinstance(outcome, Generated)]
            if finished:
                self._take_all(finished)
        self._in_flight.clear()
        self._held = 0


def _source_changed(key: Key, error: SourceChanged) -> Failed:
    facts = {name: str(value) for name, value in error.facts.items()}
    return Failed(key, FailureReason.SOURCE_CHANGED, error.message, facts, error.hint)


def _cut_off(action: Action, inputs: Inputs, request: Key, digest: Digest, generation: Generation) -> Done:
    """Return what becomes of an action whose request was answered before."""
    return Done(
        action, RULES[action.rule].resolve(action, inputs, generation), How.CUT_OFF, inputs.text, request, digest
    )
