"""Drives a plan: renders what is ready, serves known requests, sends the others to executors, commits, emits events.

One thread; executors return outcome values. What comes together is committed together, and events are emitted after
their commit. A failed action skips its ancestors and, unless told to keep going, ends the build once what is in
flight has come back.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Callable, Iterator

import msgspec

from gsum.engine.clock import Clock
from gsum.engine.commit import Committer, Done, request_preimage
from gsum.engine.events import ActionFailed, ActionFinished, ActionSkipped, ActionStarted, Equivocation, Event
from gsum.engine.executors.protocol import ExecRequest, Executor, Failed, Generated
from gsum.engine.inputs import InputReader
from gsum.engine.keys import KeySet
from gsum.engine.plan import heights
from gsum.rules.claims import Result
from gsum.rules.config import Workspace
from gsum.rules.graph import Action, ActionGraph
from gsum.rules.kinds import RULES
from gsum.rules.rule import Finished, Inputs
from gsum.store.api import Store
from gsum.store.digests import Digest, Key, Preimage
from gsum.store.records import Generation, How

POLL_SECONDS = 0.1
GROUP = 256
"""Most actions of one commit: what a kill may cost that was ready and not yet finished."""


class Waiting(msgspec.Struct):
    """A request in flight and every action that waits for its generation."""

    request: Preimage
    started: str
    actions: list[tuple[Action, Inputs]]


class Outcome(msgspec.Struct, frozen=True):
    """What became of one action that ran."""

    result: Result
    how: How
    generation: Digest | None
    new_tokens: int = 0


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
        keep_going: bool,
        full: bool,
    ) -> None:
        self._workspace, self._graph, self._keys, self._store = workspace, graph, keys, store
        self._reader, self._committer = reader, committer
        self._executor_for, self._report, self._interrupted, self._clock = executor_for, report, interrupted, clock
        self._keep_going, self._full = keep_going, full
        self._results: dict[str, Result] = {}
        self._previous: dict[str, Key | None] = {}
        self._in_flight: dict[Key, Waiting] = {}
        self._executors: dict[str, Executor] = {}
        self._ready: list[tuple[int, int, str]] = []
        self._to_submit: dict[str, list[ExecRequest]] = {}
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
        self._prepare(to_run, hits)
        try:
            while not self._interrupted():
                if self._room():
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

    @contextlib.contextmanager
    def _group(self, *, durable: bool = False) -> Iterator[None]:
        """Commit all that the block finishes, then emit its events: an action whose event is out is kept."""
        self._said = []
        with self._store.transaction(durable=durable):
            yield
            if self._said:
                self._committer.events(self._said)
        said, self._said = self._said, []
        for event in said:
            self._report(event)

    @property
    def _stopping(self) -> bool:
        return bool(self.failed) and not self._keep_going

    def _prepare(self, to_run: tuple[str, ...], hits: dict[str, Digest]) -> None:
        self._hits = hits
        self._order = {label: position for position, label in enumerate(to_run)}
        self._heights = heights(self._graph, to_run)
        self._missing: dict[str, int] = {}
        self._parents: dict[str, list[str]] = {}
        for label in to_run:
            running = [child for child in self._graph.actions[label].children if child in self._order]
            self._missing[label] = len(running)
            for child in running:
                self._parents.setdefault(child, []).append(label)
            if not running:
                self._push(label)

    def _push(self, label: str) -> None:
        heapq.heappush(self._ready, (-self._heights[label], self._order[label], label))

    def _room(self) -> bool:
        """Whether the most urgent ready action can start now: its executor wants more, or it may need none."""
        if not self._ready or self._stopping:
            return False
        action = self._graph.actions[self._ready[0][2]]
        toolchain = action.toolchain if action.prompt is not None else None
        return toolchain is None or len(self._in_flight) < self._executor(toolchain).capacity

    def _start_some(self) -> None:
        """Start ready actions, most urgent first, as one commit; then send what needs a model."""
        with self._group():
            for _ in range(GROUP):
                if not self._room() or self._interrupted():
                    break
                self._start(self._graph.actions[heapq.heappop(self._ready)[2]])
        waiting, self._to_submit = self._to_submit, {}
        for toolchain, requests in waiting.items():
            self._executor(toolchain).submit(requests)

    def _executor(self, toolchain: str) -> Executor:
        if toolchain not in self._executors:
            self._executors[toolchain] = self._executor_for(toolchain)
        return self._executors[toolchain]

    def _start(self, action: Action) -> None:
        label = action.label
        for child in action.children:
            if child not in self._results:
                self._results[child] = self._reader.load_result(child, self._hits[child])
        latest = self._store.latest(label, action.principal, action.toolchain or "")
        self._previous[label] = latest.key if latest is not None else None
        inputs = self._reader.inputs(action, self._results)
        rendered = RULES[action.rule].render(action, inputs)
        if isinstance(rendered, Finished):
            how = How.INELIGIBLE if rendered.ineligible else How.PURE
            self._finish(action, rendered.result, how)
            return
        request = request_preimage(rendered)
        if request.key in self._in_flight:
            self._in_flight[request.key].actions.append((action, inputs))
            return
        known = None if self._full else self._store.generation_for(request.key)
        if known is not None:
            self._cut_off(action, inputs, request.key, known, self._committer.load_generation(known))
            return
        assert action.toolchain is not None
        timeout = self._workspace.toolchains[action.toolchain].timeout_seconds
        self._in_flight[request.key] = Waiting(request, self._clock.now(), [(action, inputs)])
        self._say(ActionStarted(label, self._keys.actions[label].key, request.key))
        self._to_submit.setdefault(action.toolchain, []).append(ExecRequest(request.key, rendered, timeout))

    def _collect(self) -> None:
        """Take what executors have finished; wait a moment when nothing is there."""
        executors = list(self._executors.values())
        outcomes = [outcome for executor in executors for outcome in executor.wait(POLL_SECONDS / len(executors))]
        if outcomes:
            self._take_all(outcomes)

    def _take_all(self, outcomes: list[Generated | Failed]) -> None:
        """Commit outcomes that came together: durably, if a model call would be lost with them."""
        with self._group(durable=any(isinstance(outcome, Generated) for outcome in outcomes)):
            for outcome in outcomes:
                self._take(outcome)

    def _take(self, outcome: Generated | Failed) -> None:
        waiting = self._in_flight.pop(outcome.key, None)
        if waiting is None:
            return
        if isinstance(outcome, Failed):
            for action, _ in waiting.actions:
                self._fail(action.label, outcome)
            return
        put = self._committer.generation(waiting.request, outcome, waiting.started)
        generation, digest = outcome.generation, put.digest
        if put.equivocation:
            first_label = waiting.actions[0][0].label
            self._say(Equivocation(first_label, outcome.key, put.first, put.digest))
            if self._full:
                self.equivocal.update(action.label for action, _ in waiting.actions)
                self._apart |= self.equivocal
            else:
                digest, generation = put.first, self._committer.load_generation(put.first)
        (action, inputs), *others = waiting.actions
        result = RULES[action.rule].resolve(action, inputs, generation)
        self._finish(action, result, How.GENERATED, waiting.request.key, digest, outcome)
        for other, other_inputs in others:
            self._cut_off(other, other_inputs, waiting.request.key, digest, generation)

    def _cut_off(self, action: Action, inputs: Inputs, request: Key, digest: Digest, generation: Generation) -> None:
        result = RULES[action.rule].resolve(action, inputs, generation)
        self._finish(action, result, How.CUT_OFF, request, digest)

    def _finish(
        self,
        action: Action,
        result: Result,
        how: How,
        request: Key | None = None,
        generation: Digest | None = None,
        outcome: Generated | None = None,
    ) -> None:
        label, scope = action.label, action.scope
        readable = scope is not None and scope.readable
        if self._full and any(child in self._apart for child in action.children):
            self._apart.add(label)
        if label not in self._apart:
            source = self._reader.text(action).data if readable else None
            self._committer.entry(Done(action, result, how, request, generation, source), self._clock.now())
        new_tokens = outcome.forced + outcome.sampled if outcome else 0
        self._results[label] = result
        self.done[label] = Outcome(result, how, generation, new_tokens)
        self._say(
            ActionFinished(
                label=label,
                key=self._keys.actions[label].key,
                how=how.value,
                status=result.status.value,
                previous=self._previous.get(label),
                seconds=outcome.seconds if outcome else 0.0,
                prompt_tokens=outcome.prompt_tokens if outcome else 0,
                reused_tokens=outcome.reused if outcome else 0,
                new_tokens=new_tokens,
                sampled_tokens=outcome.sampled if outcome else 0,
            )
        )
        for parent in self._parents.get(label, ()):
            self._missing[parent] -= 1
            if self._missing[parent] == 0 and parent not in self.skipped:
                self._push(parent)

    def _fail(self, label: str, outcome: Failed) -> None:
        event = ActionFailed(
            label=label,
            key=self._keys.actions[label].key,
            previous=self._previous.get(label),
            reason=outcome.reason.value,
            message=outcome.message,
            exit_code=int(outcome.exit_code),
            facts=outcome.facts,
            hint=outcome.hint,
        )
        self.failed[label] = event
        self._say(event)
        above = list(self._parents.get(label, ()))
        while above:
            parent = above.pop()
            if parent not in self.skipped:
                self._skip(parent, label)
                above.extend(self._parents.get(parent, ()))

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
                self._take_all(list(finished))
        self._in_flight.clear()
