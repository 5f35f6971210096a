"""A build that may have something to do: analysis, engine and executors put together, and the dry run of one."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from gsum.cli.asked import Asked, index_folder, system_clock
from gsum.cli.context import Config, open_universe, reading_store, writing_store
from gsum.cli.event_files import EventLines, Trace
from gsum.cli.executors import executors
from gsum.cli.forecasting import forecast_lines
from gsum.cli.render import emit, emit_json
from gsum.cli.reporting import Reporter, Tally
from gsum.cli.summary import dry_run_document, print_dry_run
from gsum.engine.build import Build, look_up
from gsum.engine.events import Event
from gsum.engine.forecast.account import Accountant
from gsum.engine.forecast.now import plan_forecast
from gsum.engine.index.consulting import Consultation, consult
from gsum.engine.index.quick import Looked
from gsum.engine.plan import Plan
from gsum.engine.reading import OneReading
from gsum.engine.report import BuildOptions, BuildReport
from gsum.engine.universe import Universe, universe_of
from gsum.rules.config import Workspace
from gsum.rules.loader import load_workspace
from gsum.store.api import Store
from gsum.store.records import ActionEntry

_COLLECTED_AT = 100_000
"""Objects made and not yet let go at which the collector looks among them for cycles."""


class Listener(Protocol):
    """Whatever takes note of events."""

    def event(self, event: Event) -> None:
        """Take note of an event."""


def build(
    config: Config,
    asked: Asked,
    listeners: tuple[Reporter, Tally],
    interrupted: Callable[[], bool],
    looked: Looked | None,
) -> tuple[BuildReport, tuple[str, ...]]:
    """Build, and return the report with the labels that were asked for (of a null build: none).

    `looked` is what a quick look has seen just before.
    """

    def emit_event(event: Event) -> None:
        for listener in observers:
            listener.event(event)

    root, since_ns = config.root, time.time_ns()
    workspace = load_workspace(root)
    files = _event_files(config, asked)
    documents = OneReading(workspace, let_go=True)
    with writing_store(config, root) as store, _collecting_little():
        consultation, universe = _universe(config, workspace, asked, store, documents, since_ns, looked)
        gc.freeze()  # graph and keys stay until the end: the collector need not look at them again and again
        accountant = Accountant(store, universe.graph.actions, universe.principal, full=asked.full)
        observers: list[Listener] = [*listeners, *files, accountant]
        with executors(config, workspace, jobs=asked.jobs, emit=emit_event) as executor_for:
            build = Build(
                workspace=workspace,
                graph=universe.graph,
                keys=universe.keys,
                store=store,
                documents=documents,
                executor_for=executor_for,
                emit=emit_event,
                interrupted=interrupted,
                clock=system_clock(),
                options=_options(config, asked, universe),
                standing=consultation.standing if consultation else (),
            )
            try:
                report = build.run()
            finally:
                for listener in (listeners[0], *files):
                    listener.close()
        if consultation is not None:
            consultation.tell(universe.graph, build.served(report), report.invocation)
        return report, universe.graph.requested or (consultation.alone if consultation else ())


def _options(config: Config, asked: Asked, universe: Universe) -> BuildOptions:
    return BuildOptions(
        patterns=asked.patterns,
        principal=universe.principal,
        toolchain=config.toolchain or universe.workspace.section.default_toolchain,
        keep_going=asked.keep_going,
        full=asked.full,
        draft=asked.draft,
        fail_fast=asked.fail_fast,
        jobs=asked.jobs,
    )


def _event_files(config: Config, asked: Asked) -> list[EventLines | Trace]:
    """Open the files that events are to be written to."""
    made: list[EventLines | Trace] = []
    if asked.events is not None:
        made.append(EventLines(config.cwd / asked.events, system_clock()))
    if asked.profile is not None:
        made.append(Trace(config.cwd / asked.profile, system_clock()))
    return made


@contextlib.contextmanager
def _collecting_little() -> Iterator[None]:
    """Look for reference cycles seldom: of what a build makes by the million nothing is part of one."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_COLLECTED_AT, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _universe(
    config: Config,
    workspace: Workspace,
    asked: Asked,
    store: Store,
    documents: OneReading,
    since_ns: int,
    looked: Looked | None,
) -> tuple[Consultation | None, Universe]:
    """Analyse what is asked for: all of it for a full build, else what does not stand by the index."""
    if asked.full:
        return None, universe_of(
            workspace, asked.patterns, principal=config.principal, toolchain=config.toolchain, digests=documents
        )
    return consult(
        workspace,
        asked.patterns,
        principal=config.principal,
        toolchain=config.toolchain,
        folder=index_folder(config, config.root),
        store=store,
        since_ns=since_ns,
        files=documents,
        looked=looked,
    )


def dry_run(config: Config, patterns: tuple[str, ...], *, full: bool) -> int:
    """Plan and say what would run; the store is only read."""
    universe = open_universe(config, patterns)
    plan: Plan[ActionEntry] = Plan(universe.graph)
    with reading_store(config, config.root) as store:
        if full:
            while plan.unknown:
                plan.answer({})
        else:
            look_up(plan, universe.keys, store)
        expected = plan_forecast(universe, store, plan.to_run, full=full)
    if config.json:
        emit_json("build", {**dry_run_document(universe.graph, plan), "forecast": msgspec.to_builtins(expected)})
    else:
        print_dry_run(config, universe.graph, plan)
        for line in forecast_lines(expected):
            emit(config, line)
    return 0
