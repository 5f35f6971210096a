"""One `gsum build`: look up, plan, run, record the invocation, report."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import msgspec

from gsum.engine.clock import Clock
from gsum.engine.commit import Committer
from gsum.engine.documents import Documents
from gsum.engine.events import ActionCached, BuildFinished, BuildStarted, Difference, Event, hit_of
from gsum.engine.executors.protocol import Executor
from gsum.engine.inputs import InputReader, decode_result
from gsum.engine.keys import KeySet
from gsum.engine.plan import Plan
from gsum.engine.report import BuildOptions, BuildReport, closed, new_invocation, opened
from gsum.engine.scheduler import Scheduler
from gsum.engine.standing import Cached, StandingDossier
from gsum.rules.claims import Status
from gsum.rules.config import Workspace
from gsum.rules.graph import ActionGraph
from gsum.store.api import Store
from gsum.store.errors import ExitCode, StoreError
from gsum.store.records import ActionEntry, How, InvocationStatus


def look_up(plan: Plan[ActionEntry], keys: KeySet, store: Store) -> None:
    """Complete a plan with the complete entries of a store."""
    while plan.unknown:
        asked = {label: keys.actions[label].key for label in plan.unknown}
        entries = store.entries(list(dict.fromkeys(asked.values())))
        plan.answer({label: entries[key] for label, key in asked.items() if key in entries})


class Build:
    """A build of a graph against a store."""

    def __init__(
        self,
        *,
        workspace: Workspace,
        graph: ActionGraph,
        keys: KeySet,
        store: Store,
        documents: Documents,
        executor_for: Callable[[str], Executor],
        emit: Callable[[Event], None],
        interrupted: Callable[[], bool],
        clock: Clock,
        options: BuildOptions,
        standing: Sequence[StandingDossier] = (),
    ) -> None:
        self._standing = tuple(standing)
        self._targets = len(graph.actions) + sum(len(one.parts) for one in standing)
        self._graph, self._keys, self._store, self._options, self._clock = graph, keys, store, options, clock
        self._reporter = emit
        self._interrupted = interrupted
        self.invocation = new_invocation(clock)
        self._reader = InputReader(workspace, graph, keys, store, documents)
        self._committer = Committer(store, keys, self.invocation)
        self._scheduler = Scheduler(
            workspace=workspace,
            graph=graph,
            keys=keys,
            store=store,
            reader=self._reader,
            committer=self._committer,
            executor_for=executor_for,
            report=emit,
            interrupted=interrupted,
            clock=clock,
            options=options,
        )

    def served(self, report: BuildReport) -> set[str]:
        """Return the labels asked for whose results the store serves now, none of them INVALID."""
        missing = {*report.failed, *report.skipped, *report.invalid}
        return {label for label in self._graph.requested if label not in missing}

    def run(self) -> BuildReport:
        """Build, and record the invocation whatever happens to it."""
        started = self._clock.monotonic()
        record = opened(self.invocation, self._clock.now(), self._options, self._targets)
        self._store.begin(record)
        try:
            report = self._run(started)
        except BaseException as error:
            stopped = isinstance(error, KeyboardInterrupt)
            status = InvocationStatus.INTERRUPTED if stopped else InvocationStatus.FAILED
            with contextlib.suppress(StoreError):
                self._store.finish(msgspec.structs.replace(record, status=status))
            raise
        self._store.finish(closed(record, report))
        return report

    def _run(self, started: float) -> BuildReport:
        plan: Plan[ActionEntry] = Plan(self._graph)
        if self._options.full:
            while plan.unknown:
                plan.answer({})
        else:
            look_up(plan, self._keys, self._store)
        self._announce(plan)
        self._scheduler.run(plan.to_run, {label: entry.result for label, entry in plan.hits.items()})
        differences = self._differences() if self._options.full else ()
        report = self._report(plan, differences, self._clock.monotonic() - started)
        self._emit(BuildFinished(self.invocation, report.status.value, report.exit_code, report.seconds))
        return report

    def _emit(self, *events: Event) -> None:
        self._committer.events(events)
        for event in events:
            self._reporter(event)

    def _announce(self, plan: Plan[ActionEntry]) -> None:
        patterns = self._options.patterns
        self._emit(BuildStarted(self.invocation, patterns, self._targets, len(plan.to_run)))
        hits = [self._graph.actions[label] for label in plan.hits]
        latest = self._committer.previous(hits)
        moved = [action for action in hits if latest.get(action.label) != self._keys.actions[action.label].key]
        told = {action.label for action in moved} | self._beside(plan)
        keyed = [(action.label, self._keys.actions[action.label].key) for action in hits if action.label in told]
        events = [ActionCached(label, key, hit_of(key, latest.get(label))) for label, key in keyed]
        with self._store.transaction():
            self._committer.targets(moved, self._clock.now())
            self._committer.events(events)
        for event in events:
            self._reporter(event)

    def _beside(self, plan: Plan[ActionEntry]) -> set[str]:
        """Return the hits of dossiers in which something runs, and below what runs.

        Whether another one was analysed tells whether its manifest changed, which may be for what the principal may
        not read: of its hits nothing is told.
        """
        running = [self._graph.actions[label] for label in plan.to_run]
        dossiers = {(action.package, action.dossier) for action in running}
        below = {child for action in running for child in action.children}
        hits = (self._graph.actions[label] for label in plan.hits)
        return {
            action.label for action in hits if action.label in below or (action.package, action.dossier) in dossiers
        }

    def _differences(self) -> tuple[Difference, ...]:
        """Compare what ran with what the store serves for the same keys, or holds for the same requests."""
        found = []
        done = self._scheduler.done
        entries = self._store.entries([self._keys.actions[label].key for label in done])
        for label, outcome in done.items():
            key = self._keys.actions[label].key
            entry = entries.get(key)
            if entry is None:  # never served under this key, yet its request may have been answered before
                if label in self._scheduler.equivocal:
                    found.append(Difference(label, key, ("generation",)))
                continue
            served = decode_result(self._store.get_blob(entry.result))
            what = []
            if served.status is not outcome.status:
                what.append("status")
            if outcome.result is not None and served.claims != outcome.result.claims:
                what.append("claims")
            if (
                entry.generation is not None
                and outcome.generation is not None
                and entry.generation != outcome.generation
            ):
                what.append("generation")
            if what:
                found.append(Difference(label, key, tuple(what)))
        self._emit(*found)
        return tuple(found)

    def _report(self, plan: Plan[ActionEntry], differences: tuple[Difference, ...], seconds: float) -> BuildReport:
        scheduler = self._scheduler
        done = {label: scheduler.done[label] for label in plan.to_run if label in scheduler.done}

        def those(how: How) -> tuple[str, ...]:
            return tuple(label for label, outcome in done.items() if outcome.how is how)

        to_run = set(plan.to_run)
        invalid = self._invalid_requested(plan)
        status, exit_code = self._verdict(invalid, differences)
        return BuildReport(
            invocation=self.invocation,
            status=status,
            exit_code=exit_code,
            targets=self._targets,
            cached=Cached(tuple(label for label in self._graph.actions if label not in to_run), self._standing),
            recomputed=tuple(done),
            generated=those(How.GENERATED),
            cut_off=those(How.CUT_OFF),
            ineligible=those(How.INELIGIBLE),
            pure=those(How.PURE),
            failed=tuple(scheduler.failed),
            skipped=tuple(label for label in plan.to_run if label in scheduler.skipped),
            invalid=invalid,
            differences=differences,
            new_tokens=sum(outcome.new_tokens for outcome in done.values()),
            seconds=round(seconds, 3),
        )

    def _invalid_requested(self, plan: Plan[ActionEntry]) -> tuple[str, ...]:
        invalid = []
        for label in dict.fromkeys(self._graph.requested):
            if label in self._scheduler.done:
                status = self._scheduler.done[label].status.value
            elif label in plan.hits:
                status = plan.hits[label].status
            else:
                continue
            if status == Status.INVALID.value:
                invalid.append(label)
        return tuple(invalid)

    def _verdict(self, invalid: tuple[str, ...], differences: tuple[Difference, ...]) -> tuple[InvocationStatus, int]:
        if self._interrupted():
            return InvocationStatus.INTERRUPTED, int(ExitCode.INTERRUPTED)
        if self._scheduler.failed:
            codes = {event.exit_code for event in self._scheduler.failed.values()}
            return InvocationStatus.FAILED, codes.pop() if len(codes) == 1 else int(ExitCode.ACTION_FAILED)
        if differences:
            return InvocationStatus.FAILED, int(ExitCode.NOT_REPRODUCIBLE)
        if invalid:
            return InvocationStatus.FAILED, int(ExitCode.INVALID)
        return InvocationStatus.OK, int(ExitCode.OK)
