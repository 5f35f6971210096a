"""`gsum build`: what patterns name is made, from the store where it can be. Parses, calls the engine, reports."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import click
import msgspec

from gsum.cli.context import Config, current_config, open_universe, options, reading_store, writing_store
from gsum.cli.forecasting import forecast_lines
from gsum.cli.interrupts import Interrupts
from gsum.cli.render import emit, emit_json, on_terminal
from gsum.cli.reporting import Reporter, Tally, reporter_for
from gsum.cli.summary import build_document, dry_run_document, print_dry_run, print_summary
from gsum.engine.build import Build, BuildOptions, BuildReport, look_up
from gsum.engine.events import Event
from gsum.engine.executors.make import make_executor
from gsum.engine.executors.protocol import Executor
from gsum.engine.forecast.account import Accountant
from gsum.engine.forecast.now import plan_forecast
from gsum.engine.index.consulting import Consultation, consult
from gsum.engine.plan import Plan
from gsum.engine.scheduler import Clock
from gsum.engine.universe import Universe, WorkspaceDocuments, universe_of
from gsum.rules.config import LocalToolchain, Workspace
from gsum.rules.loader import load_workspace
from gsum.store.api import Store
from gsum.store.records import ActionEntry

STANDARD_ERROR = 2
INDEX_FOLDER = "index"


@click.command("build")
@click.argument("patterns", nargs=-1, required=True, metavar="PATTERN…")
@click.option("--dry-run", is_flag=True, help="Say what would run; run and write nothing.")
@click.option("-k", "--keep-going", is_flag=True, help="After a failure, build all that does not need it.")
@click.option("--full", is_flag=True, help="Generate everything again, reading no cache, and report differences.")
@click.option("-q", "--quiet", is_flag=True, help="Print the summary only.")
@options(principal=True, toolchain=True)
def command(patterns: tuple[str, ...], dry_run: bool, keep_going: bool, full: bool, quiet: bool) -> int:
    """Build the targets that PATTERNs name, and all they are made from."""
    config = current_config()
    if dry_run:
        return _dry_run(config, patterns, full=full)
    reporter = reporter_for(config, quiet=quiet)
    tally = Tally()
    with Interrupts(_say_stopping) as interrupts:
        options_asked = _Asked(patterns, keep_going, full)
        report, requested = _run(config, options_asked, (reporter, tally), interrupts.asked)
    if config.json:
        emit_json("build", build_document(report, tally))
    else:
        print_summary(config, requested, report, tally)
    return report.exit_code


class _Asked(msgspec.Struct, frozen=True):
    patterns: tuple[str, ...]
    keep_going: bool
    full: bool


def _run(
    config: Config, asked: _Asked, listeners: tuple[Reporter, Tally], interrupted: Callable[[], bool]
) -> tuple[BuildReport, tuple[str, ...]]:
    """Build, and return the report with the labels that were asked for (of a null build: none)."""

    def emit_event(event: Event) -> None:
        for listener in (*listeners, accountant):
            listener.event(event)

    root = config.root
    workspace = load_workspace(root)
    with writing_store(config, root) as store:
        consultation, universe = _universe(config, workspace, asked, store)
        options_given = BuildOptions(
            patterns=asked.patterns,
            principal=universe.principal,
            toolchain=config.toolchain or workspace.section.default_toolchain,
            keep_going=asked.keep_going,
            full=asked.full,
        )
        accountant = Accountant(store, universe.graph.actions, universe.principal, full=asked.full)
        with _executors(config, universe) as executor_for:
            build = Build(
                workspace=workspace,
                graph=universe.graph,
                keys=universe.keys,
                store=store,
                documents=WorkspaceDocuments(workspace),
                executor_for=executor_for,
                emit=emit_event,
                interrupted=interrupted,
                clock=system_clock(),
                options=options_given,
                standing=consultation.standing if consultation else (),
            )
            try:
                report = build.run()
            finally:
                listeners[0].close()
        if consultation is not None:
            consultation.tell(universe.graph, build.served(report), report.invocation)
        return report, universe.graph.requested or (consultation.alone if consultation else ())


def _universe(
    config: Config, workspace: Workspace, asked: _Asked, store: Store
) -> tuple[Consultation | None, Universe]:
    """Analyse what is asked for: all of it for a full build, else what does not stand by the index."""
    if asked.full:
        return None, universe_of(workspace, asked.patterns, principal=config.principal, toolchain=config.toolchain)
    return consult(
        workspace,
        asked.patterns,
        principal=config.principal,
        toolchain=config.toolchain,
        folder=config.store_folder(config.root) / INDEX_FOLDER,
        store=store,
    )


@contextlib.contextmanager
def _executors(config: Config, universe: Universe) -> Iterator[Callable[[str], Executor]]:
    """Give executors by toolchain name, each made once, all closed at the end."""
    made: dict[str, Executor] = {}
    workspace = universe.workspace

    def executor_for(name: str) -> Executor:
        if name not in made:
            toolchain = workspace.toolchains[name]
            numerics = workspace.numerics[toolchain.numerics] if isinstance(toolchain, LocalToolchain) else None
            made[name] = make_executor(
                toolchain,
                numerics,
                cache_dir=config.cache_dir,
                workspace_root=config.root,
                name=name,
                environ=config.environ,
            )
        return made[name]

    try:
        yield executor_for
    finally:
        for executor in made.values():
            executor.close()


def _dry_run(config: Config, patterns: tuple[str, ...], *, full: bool) -> int:
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


def system_clock() -> Clock:
    """Return the clock of this machine."""
    return Clock(lambda: datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"), time.monotonic)


def _say_stopping() -> None:
    """Write past every buffer: the signal may have come in the middle of a print."""
    line = "stopping: what is finished is kept; once more stops at once\n"
    clear = "\r\x1b[2K" if on_terminal() else ""
    with contextlib.suppress(OSError):
        os.write(STANDARD_ERROR, f"{clear}{line}".encode())
