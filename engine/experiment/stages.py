"""One stage of a run: the edit, the refusals of what is old, an incremental and a full build, audits, the comparison.

All that a stage found before its build is written before it: stopped and called again, it ends with the same record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from gsum.engine.build import Build, look_up
from gsum.engine.clock import Clock
from gsum.engine.events import ActionFailed, Event
from gsum.engine.executors.protocol import Executor
from gsum.engine.experiment.budget import BudgetSpent
from gsum.engine.experiment.progress import Work
from gsum.engine.experiment.records import (
    ATTEMPTS,
    BEFORE,
    CACHED,
    TIMES,
    Before,
    Node,
    NodeDifference,
    Pair,
    Refusal,
    Side,
    SideTimes,
    StageRecord,
    StageTimes,
    read_record,
    write_record,
)
from gsum.engine.experiment.setup import Setup, Stage
from gsum.engine.experiment.trees import audits_of, compare, counters_of, nodes_of, times_of
from gsum.engine.plan import Plan
from gsum.engine.report import BuildOptions
from gsum.engine.serving import NotServed, serve
from gsum.engine.universe import Universe, WorkspaceDocuments, load_universe
from gsum.rules.audit import Audit
from gsum.rules.labels import parse_label
from gsum.store.api import Store
from gsum.store.errors import ExitCode, GsumError
from gsum.store.local import open_store
from gsum.store.records import ActionEntry

INCREMENTAL, FULL = "incremental", "full"
_PARTS = "/..."
_ROOT = "/root"


class Stopped(GsumError):
    """A run was interrupted; what is finished is kept."""

    exit_code = ExitCode.INTERRUPTED


class BuildFailed(GsumError):
    """A build of a run failed: an executor that is down stops the run, and is no result of it."""


class Host(msgspec.Struct, frozen=True):
    """What a run needs of the process that it is in. `main_digest` digests the main evaluation's records, if any."""

    executor_for: Callable[[str], Executor]
    clock: Clock
    interrupted: Callable[[], bool]
    work: Work
    main_digest: Callable[[], str | None]


class StageRunner:
    """Runs one stage in its folder. `scratch` is the edited workspace, `store` keeps the incremental builds of all."""

    def __init__(self, setup: Setup, stage: Stage, folder: Path, *, scratch: Path, store: Path, host: Host) -> None:
        self._declared, self._stage, self._folder = setup.declaration, stage, folder
        self._scratch, self._store, self._host = scratch, store, host

    def run(self) -> StageRecord:
        """Run the stage, whose step is in force in the scratch copy; its times are written beside.

        Raises:
            BudgetSpent, Stopped, BuildFailed: as `Runner.run`.
        """
        declared, stage = self._declared, self._stage
        universe = self._universe(declared.package, _PARTS)
        full, full_times = None, None
        compared: tuple[tuple[Pair, ...], tuple[NodeDifference, ...]] = ((), ())
        with open_store(self._store) as store:
            before = self._before(universe, store)
            incremental, times = self._side(INCREMENTAL, universe, store, before.to_run)
            extractive = {} if declared.baseline is None else self._audits(declared.baseline, store)[0]
            if stage.step is not None:
                with open_store(self._folder / "store") as own:
                    full, full_times = self._side(FULL, universe, own, tuple(universe.graph.actions))
                    compared = compare(incremental, store, full, own)
        write_record(self._folder / TIMES, StageTimes(stage.name, times, full_times))
        return StageRecord(
            scenario=declared.scenario,
            stage=stage.name,
            title=stage.title,
            dossiers=stage.dossiers,
            incremental=incremental,
            full=full,
            extractive=extractive,
            refusals=before.refusals,
            pairs=compared[0],
            differences=compared[1],
            unexpected=_unexpected(stage, incremental.nodes),
            main_before=before.main,
            main_after=self._host.main_digest(),
        )

    def _universe(self, package: str, part: str) -> Universe:
        patterns = [f"//{package}:{dossier}{part}" for dossier in self._stage.dossiers]
        return load_universe(
            self._scratch, patterns, principal=self._declared.principal, toolchain=self._declared.toolchain
        )

    def _before(self, universe: Universe, store: Store) -> Before:
        """Ask for the old summaries and look what has no result: once, before anything of the stage is built."""
        known = read_record(self._folder / BEFORE, Before)
        if known is not None:
            return known
        refusals = () if self._stage.step is None else self._refusals(universe, store)
        plan: Plan[ActionEntry] = Plan(universe.graph)
        look_up(plan, universe.keys, store)
        before = Before(refusals, plan.to_run, self._host.main_digest())
        write_record(self._folder / BEFORE, before)
        return before

    def _refusals(self, universe: Universe, store: Store) -> tuple[Refusal, ...]:
        documents = WorkspaceDocuments(universe.workspace)
        refusals = []
        for label in universe.graph.requested:
            if not label.endswith(_ROOT):
                continue
            try:
                serve(universe, store, documents, label)
            except NotServed as refused:
                target = refused.target
                previous = None if target.previous is None else target.previous.key
                refusals.append(Refusal(label, target.state.value, int(refused.exit_code), target.key, previous))
        return tuple(refusals)

    def _side(self, name: str, universe: Universe, store: Store, to_run: Sequence[str]) -> tuple[Side, SideTimes]:
        """Build every part of every dossier, then audit the roots; a full build has a store of its own."""
        self._host.work.begin(self._stage, name, len(universe.graph.actions), len(to_run))
        self._build(name, universe, store, self._host.work.event)
        nodes = nodes_of(universe, store, frozenset(to_run))
        times = times_of(store, self._attempts(name), nodes)
        return Side(counters_of(nodes), nodes, *self._audits(self._declared.audit, store)), times

    def _audits(self, package: str, store: Store) -> tuple[dict[str, Audit], dict[str, str]]:
        universe = self._universe(package, _ROOT)
        self._build("audit", universe, store, lambda _: None)
        return audits_of(universe, store, package)

    def _build(self, name: str, universe: Universe, store: Store, emit: Callable[[Event], None]) -> None:
        host = self._host
        failures: list[ActionFailed] = []

        def heard(event: Event) -> None:
            if isinstance(event, ActionFailed):
                failures.append(event)
            emit(event)

        build = Build(
            workspace=universe.workspace,
            graph=universe.graph,
            keys=universe.keys,
            store=store,
            documents=WorkspaceDocuments(universe.workspace),
            executor_for=host.executor_for,
            emit=heard,
            interrupted=host.interrupted,
            clock=host.clock,
            options=BuildOptions(universe.graph.requested, universe.principal, self._declared.toolchain),
        )
        self._note_attempt(name, build.invocation)
        report = build.run()
        if failures:
            raise _failed(failures)
        if host.interrupted():
            raise Stopped("the run was stopped", hint="the same command goes on from there")
        if report.skipped:
            raise BudgetSpent(
                "the budget is reached",
                facts={"stage": self._stage.name, "build": name, "not built yet": len(report.skipped)},
                hint="what is finished is kept; the same command goes on from there",
            )

    def _note_attempt(self, name: str, invocation: str) -> None:
        """Keep which invocations were of which build, so that times are told apart from others in the same store."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / ATTEMPTS).open("a", encoding="utf-8") as file:
            file.write(f"{name} {invocation}\n")

    def _attempts(self, name: str) -> list[str]:
        pairs = [line.split() for line in (self._folder / ATTEMPTS).read_text("utf-8").splitlines()]
        return [pair[1] for pair in pairs if len(pair) == 2 and pair[0] == name]


def _failed(failures: Sequence[ActionFailed]) -> BuildFailed:
    first = failures[0]
    facts: dict[str, object] = {"target": first.label, **first.facts}
    if len(failures) > 1:
        facts["failed"] = len(failures)
    error = BuildFailed(first.message, facts=facts, hint=first.hint or "the same command goes on from there")
    error.exit_code = ExitCode(first.exit_code)
    return error


def _unexpected(stage: Stage, nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return the dossiers in which other parts were recomputed than the stage's step declares."""
    if stage.step is None:
        return ()
    found: dict[str, set[str]] = {dossier: set() for dossier in stage.dossiers}
    for node in nodes:
        label = parse_label(node.label)
        if node.how != CACHED:
            found[label.name].add(label.part)
    return tuple(dossier for dossier, parts in found.items() if parts != set(stage.step.recomputed))
