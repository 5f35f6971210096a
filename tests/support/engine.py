"""Builds in process, for tests that assert what ran: the event log is the assertion."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from support.fake_executor import FakeExecutor

from gsum.engine.build import Build
from gsum.engine.clock import Clock
from gsum.engine.documents import Documents
from gsum.engine.events import AnyEvent, Event
from gsum.engine.executors.protocol import Executor
from gsum.engine.index.consulting import consult
from gsum.engine.index.quick import Looked, NothingToDo, candidate, look_quickly
from gsum.engine.inputs import decode_result
from gsum.engine.reading import OneReading
from gsum.engine.report import BuildOptions, BuildReport
from gsum.engine.universe import Universe, WorkspaceDocuments, load_universe
from gsum.rules.claims import Result
from gsum.rules.loader import load_workspace
from gsum.store.api import Store
from gsum.store.local import LocalStore


class TickingClock:
    """A clock that moves on by one second whenever it is asked."""

    def __init__(self) -> None:
        self._ticks = 0

    def monotonic(self) -> float:
        self._ticks += 1
        return float(self._ticks)

    def now(self) -> str:
        self._ticks += 1
        minutes, seconds = divmod(self._ticks, 60)
        return f"2026-01-01T{minutes // 60:02}:{minutes % 60:02}:{seconds:02}Z"

    @property
    def clock(self) -> Clock:
        return Clock(self.now, self.monotonic)


class Built:
    """A finished build: its universe, report and events."""

    def __init__(self, universe: Universe, report: BuildReport, events: list[Event]) -> None:
        self.universe, self.report, self.events = universe, report, events

    def ran(self) -> tuple[str, ...]:
        """The parts that were recomputed, in order, without package and dossier when there is one of each."""
        return tuple(label.rsplit("/", 1)[-1] for label in self.report.recomputed)

    def of(self, kind: type[AnyEvent]) -> list[AnyEvent]:
        return [event for event in self.events if isinstance(event, kind)]


def run_build(
    root: Path,
    store: Store,
    *patterns: str,
    executor: Executor | None = None,
    principal: str | None = None,
    toolchain: str | None = None,
    full: bool = False,
    keep_going: bool = False,
    fail_fast: bool = False,
    jobs: int | None = None,
    draft: bool = False,
    interrupted: Callable[[], bool] = lambda: False,
    index: Path | None = None,
    looked: Looked | None = None,
) -> Built:
    """Build patterns (default: the dossier package's parts) of the workspace at `root`, on an index if given."""
    asked: Sequence[str] = patterns or ("//dossier:...",)
    consultation = None
    documents: Documents
    if index is None:
        universe = load_universe(root, asked, principal=principal, toolchain=toolchain)
        documents = WorkspaceDocuments(universe.workspace)
    else:
        since = time.time_ns()
        workspace = load_workspace(root)
        documents = OneReading(workspace, let_go=True)
        consultation, universe = consult(
            workspace,
            asked,
            principal=principal,
            toolchain=toolchain,
            folder=index,
            store=store,
            since_ns=since,
            files=documents,
            looked=looked,
        )
    events: list[Event] = []
    chosen = executor or FakeExecutor()
    build = Build(
        workspace=universe.workspace,
        graph=universe.graph,
        keys=universe.keys,
        store=store,
        documents=documents,
        executor_for=lambda _: chosen,
        emit=events.append,
        interrupted=interrupted,
        clock=TickingClock().clock,
        options=BuildOptions(
            patterns=tuple(asked),
            principal=universe.principal,
            toolchain=toolchain or universe.workspace.section.default_toolchain,
            keep_going=keep_going,
            fail_fast=fail_fast,
            jobs=jobs,
            full=full,
            draft=draft,
        ),
        standing=consultation.standing if consultation else (),
    )
    report = build.run()
    if consultation is not None:
        consultation.tell(universe.graph, build.served(report), report.invocation)
    return Built(universe, report, events)


def results(built: Built, store: Store) -> dict[str, Result]:
    """Return the stored result of every action of a build's graph that has one for its current key."""
    keys = {label: keyed.key for label, keyed in built.universe.keys.actions.items()}
    entries = store.entries(list(keys.values()))
    return {label: decode_result(store.get_blob(entries[key].result)) for label, key in keys.items() if key in entries}


def first_look(
    root: Path,
    store: LocalStore,
    index: Path,
    *patterns: str,
    principal: str | None = None,
    toolchain: str | None = None,
) -> NothingToDo | Looked | None:
    """Return what a build sees first, by the index alone."""
    found = candidate(root, index, principal)
    return None if found is None else look_quickly(found, patterns, toolchain, store._db)


def quick_look(
    root: Path,
    store: LocalStore,
    index: Path,
    *patterns: str,
    principal: str | None = None,
    toolchain: str | None = None,
) -> NothingToDo | None:
    """Return what a null build finds by the index alone."""
    found = first_look(root, store, index, *patterns, principal=principal, toolchain=toolchain)
    return found if isinstance(found, NothingToDo) else None


def labels_of(done: NothingToDo) -> list[str]:
    """Return the labels that stand."""
    return [f"//{package}:{dossier}/{part}" for package, dossier, parts in done.dossiers() for part in parts]
