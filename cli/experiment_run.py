"""`gsum experiment run`: a scenario over a scratch copy, with progress, a budget, and a table at the end."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from gsum.cli.asked import system_clock
from gsum.cli.config import GivenPath
from gsum.cli.context import Config, current_config, options
from gsum.cli.executors import executors
from gsum.cli.interrupts import Interrupts
from gsum.cli.render import counted, duration, emit, emit_json, on_terminal, safe, table
from gsum.engine.experiment.budget import Budget
from gsum.engine.experiment.edits import EDITS_FILE
from gsum.engine.experiment.progress import Progress
from gsum.engine.experiment.records import StageRecord
from gsum.engine.experiment.runner import run, run_folder
from gsum.engine.experiment.setup import Scenario, set_up
from gsum.rules.loader import load_workspace

OUT = "experiment"
"""The folder of runs below the store's folder, unless `--out` says otherwise."""

_SAY_EVERY = 5.0
_DIR = GivenPath(path_type=Path)


@click.command("run")
@click.argument("scenario", type=click.Choice([scenario.value for scenario in Scenario]))
@click.option("--dossiers", metavar="A,B", help="Only these dossiers; else all.")
@click.option("--out", type=_DIR, metavar="DIR", help="Where runs are kept; else `experiment` in the store's folder.")
@click.option("--edits", default=EDITS_FILE, metavar="FILE", show_default=True, help="The named edits.")
@click.option("--package", default="dossier", metavar="P", show_default=True, help="The package of summaries.")
@click.option("--max-generations", type=click.IntRange(min=0), metavar="N", help="End cleanly after N model calls.")
@click.option("--max-seconds", type=click.FloatRange(min=0), metavar="S", help="Start no model call after S seconds.")
@options(toolchain=True)
def command(
    scenario: str,
    dossiers: str | None,
    out: Path | None,
    edits: str,
    package: str,
    max_generations: int | None,
    max_seconds: float | None,
) -> int:
    """Run SCENARIO over a scratch copy: after each edit an incremental and an independent full build.

    Stopped anywhere, the same command goes on where it was. The workspace itself is not touched.
    """
    config = current_config()
    workspace = load_workspace(config.root)
    setup = set_up(
        workspace,
        Scenario(scenario),
        edits_path=edits,
        package=package,
        toolchain=config.toolchain,
        dossiers=[name for name in (dossiers or "").split(",") if name],
    )
    folder = out_folder(config, out)
    clock = system_clock()
    budget = Budget(generations=max_generations, seconds=max_seconds, monotonic=clock.monotonic)
    started = clock.monotonic()
    with Interrupts(_say_stopping) as interrupts, executors(config, workspace) as executor_for, _line_cleared():
        records = run(
            setup,
            folder,
            executor_for=executor_for,
            clock=clock,
            interrupted=interrupts.asked,
            budget=budget,
            report=_Progress(config).show,
        )
    where = run_folder(folder, Scenario(scenario))
    if config.json:
        emit_json("experiment run", _run_document(records, where, budget.made))
    else:
        _print_run(config, records, where, clock.monotonic() - started)
    return 0


def out_folder(config: Config, out: Path | None) -> Path:
    """Return the folder of runs: as given, else below the workspace's store."""
    return config.store_folder(config.root) / OUT if out is None else config.cwd / out


def _run_document(records: tuple[StageRecord, ...], folder: Path, calls: int) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "model_calls": calls,
        "stages": [
            {
                "stage": record.stage,
                "incremental": msgspec.to_builtins(record.incremental.counters),
                "full": None if record.full is None else msgspec.to_builtins(record.full.counters),
                "pairs": len(record.pairs),
                "equal": sum(pair.equal for pair in record.pairs),
                "equal_tokens": sum(pair.equal_tokens for pair in record.pairs),
                "refused": len(record.refusals),
                "unexpected": list(record.unexpected),
            }
            for record in records
        ],
    }


def _print_run(config: Config, records: tuple[StageRecord, ...], folder: Path, seconds: float) -> None:
    rows = [("stage", "recomputed", "calls", "hits", "full calls", "equal", "equal tokens", "refused")]
    for record in records:
        counters, pairs = record.incremental.counters, len(record.pairs)
        full = "-" if record.full is None else f"{record.full.counters.model_calls:,}"
        rows.append(
            (
                record.stage,
                f"{counters.recomputed:,}",
                f"{counters.model_calls:,}",
                f"{counters.hits:,}",
                full,
                f"{sum(pair.equal for pair in record.pairs)} of {pairs}",
                f"{sum(pair.equal_tokens for pair in record.pairs)} of {pairs}",
                f"{len(record.refusals)}",
            )
        )
    for line in table(rows):
        emit(config, line)
    emit(config, f"finished in {duration(seconds)}: {folder}")
    report = config.typed("experiment", "report", str(folder.parent), without=("toolchain", "principal"))
    emit(config, f"next: {safe(report)}")


class _Progress:
    """Shows how far a run is: a line on a terminal that rewrites itself, else one line in a while."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._live = on_terminal()
        self._last: tuple[int, str] | None = None
        self._said = 0.0

    def show(self, progress: Progress) -> None:
        """Show a report, unless the last one was shown a moment ago."""
        now, at = time.monotonic(), (progress.stage, progress.build)
        if at == self._last and now - self._said < (0.2 if self._live else _SAY_EVERY):
            return
        self._last, self._said = at, now
        left = "" if progress.seconds_left is None else f", at most {duration(progress.seconds_left)} left"
        text = (
            f"stage {progress.stage} of {progress.stages}, {progress.build}: {progress.done} of "
            f"{counted(progress.to_run, 'target')}{left}  ({progress.title})"
        )
        if self._live:
            click.echo(f"\r\x1b[2K{text[:110]}", nl=False, err=True)
        else:
            emit(self._config, text, err=True)


@contextlib.contextmanager
def _line_cleared() -> Iterator[None]:
    """Leave no progress line behind on a terminal."""
    try:
        yield
    finally:
        if on_terminal():
            click.echo("\r\x1b[2K", nl=False, err=True)


def _say_stopping() -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"stopping: what is finished is kept; once more stops at once\n")
