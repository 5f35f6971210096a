"""Runs a scenario in a folder: stage after stage over a scratch copy; stopped anywhere, it goes on where it was."""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gsum.engine.clock import Clock
from gsum.engine.executors.protocol import Executor
from gsum.engine.experiment.budget import Budget, BudgetedExecutor
from gsum.engine.experiment.progress import Progress, Work
from gsum.engine.experiment.records import (
    DECLARATION,
    RECORD,
    RunDeclaration,
    RunError,
    StageRecord,
    read_record,
    stage_folder,
    write_record,
)
from gsum.engine.experiment.scratch import apply_step, copy_workspace
from gsum.engine.experiment.setup import Scenario, Setup, Stage
from gsum.engine.experiment.stages import Host, StageRunner
from gsum.rules.analysis import analyse
from gsum.rules.config import Workspace
from gsum.rules.loader import load_workspace
from gsum.store.canonical import canonical_json
from gsum.store.digests import blob_digest
from gsum.store.errors import ExitCode

WORKSPACE, STORE, REHEARSAL = "workspace", "store", ".rehearsal"


def run_folder(out: Path, scenario: Scenario) -> Path:
    """Return the folder of a scenario's run."""
    return out / scenario.value


def run(
    setup: Setup,
    out: Path,
    *,
    executor_for: Callable[[str], Executor],
    clock: Clock,
    interrupted: Callable[[], bool],
    budget: Budget,
    report: Callable[[Progress], None],
) -> tuple[StageRecord, ...]:
    """Run every stage that is not finished, and return the records of all.

    Executors are the caller's to close. A run in `out` that was stopped goes on.

    Raises:
        RunError: if the folder holds another run, or another process runs there.
        BudgetSpent, Stopped: when the run ends before its end; it goes on when it is called again.
        BuildFailed: when an action failed; nothing is recorded of it.
    """
    folder = run_folder(out, Scenario(setup.declaration.scenario))
    with _alone(folder):
        _open(setup, folder)
        work = Work(setup.stages, clock.monotonic, report)
        digest = functools.partial(main_digest, out, setup)
        host = Host(_budgeted(executor_for, budget), clock, interrupted, work, digest)
        return tuple(_stage(setup, stage, folder, host) for stage in setup.stages)


def _budgeted(executor_for: Callable[[str], Executor], budget: Budget) -> Callable[[str], Executor]:
    """Return executors by name that keep to a budget, each made once."""
    made: dict[str, BudgetedExecutor] = {}

    def executor(name: str) -> Executor:
        if name not in made:
            made[name] = BudgetedExecutor(executor_for(name), budget)
        return made[name]

    return executor


def main_digest(out: Path, setup: Setup) -> str | None:
    """Return one digest of the main evaluation's files, for an exercise; null where there is none beside it."""
    if setup.declaration.scenario != Scenario.EXERCISE.value:
        return None
    main = run_folder(out, Scenario.MUTATIONS)
    files = sorted([*main.glob(DECLARATION), *main.glob(f"stages/*/{RECORD}")])
    if not files:
        return None
    return blob_digest(canonical_json({str(file.relative_to(main)): blob_digest(file.read_bytes()) for file in files}))


def _stage(setup: Setup, stage: Stage, folder: Path, host: Host) -> StageRecord:
    place = stage_folder(folder, stage.number, stage.name)
    record = read_record(place / RECORD, StageRecord)
    if record is None:
        scratch = folder / WORKSPACE
        if stage.step is not None:
            apply_step(scratch, setup.source_folder, stage.step, stage.dossiers)
        record = StageRunner(setup, stage, place, scratch=scratch, store=folder / STORE, host=host).run()
        write_record(place / RECORD, record)
    return record


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes out of a run's folder. The lock ends with the process that holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        hint = "wait for it, or run into another folder with `--out`"
        raise RunError("another process runs in this folder", facts={"folder": folder}, hint=hint) from None
    try:
        yield
    finally:
        os.close(descriptor)


def _open(setup: Setup, folder: Path) -> None:
    """Make the folder of a run, or hold it to what the run is of."""
    wanted = setup.declaration
    declared = read_record(folder / DECLARATION, RunDeclaration)
    if declared is not None and declared != wanted:
        changed = [name for name in wanted.__struct_fields__ if getattr(wanted, name) != getattr(declared, name)]
        error = RunError(
            "this folder holds another run",
            facts={"folder": folder, "differs in": ", ".join(changed)},
            hint="run into another folder with `--out`, or put things back as they were",
        )
        error.exit_code = ExitCode.STALE
        raise error
    if not (folder / WORKSPACE).is_dir():
        _analyse(setup, setup.workspace, setup.stages[0])
        copy_workspace(setup.workspace, setup.files, folder / WORKSPACE)
    if declared is None:
        _rehearse(setup, folder / REHEARSAL)
        write_record(folder / DECLARATION, wanted)


def _rehearse(setup: Setup, scratch: Path) -> None:
    """Put all edits in force in a copy and analyse each stage: what is missing later stops a run before any model call.

    Raises:
        DeclarationError, GoldError, ManifestEditError, VisibilityError: for the first stage that can't be analysed.
    """
    shutil.rmtree(scratch, ignore_errors=True)
    copy_workspace(setup.workspace, setup.files, scratch)
    for stage in setup.stages:
        if stage.step is not None:
            apply_step(scratch, setup.source_folder, stage.step, stage.dossiers)
        _analyse(setup, load_workspace(scratch), stage)
    shutil.rmtree(scratch)


def _analyse(setup: Setup, workspace: Workspace, stage: Stage) -> None:
    declared = setup.declaration
    for package in (declared.audit, declared.baseline):
        patterns = [] if package is None else [f"//{package}:{dossier}/root" for dossier in stage.dossiers]
        analyse(workspace, patterns, declared.principal, declared.toolchain)
