"""Finished runs from their folders, whole or refused: a report of half a run would mislead. Reads, writes nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gsum.engine.experiment.records import (
    DECLARATION,
    RECORD,
    TIMES,
    RunDeclaration,
    RunError,
    StageRecord,
    StageTimes,
    read_record,
    stage_folder,
)
from gsum.engine.experiment.runner import STORE, run_folder
from gsum.engine.experiment.setup import Scenario
from gsum.store.errors import ExitCode


class Run(msgspec.Struct, frozen=True):
    """A finished run: what it declared, its records and times in order of stages."""

    folder: Path
    declaration: RunDeclaration
    stages: tuple[StageRecord, ...]
    times: tuple[StageTimes, ...]

    @property
    def store(self) -> Path:
        """The folder of the store of the incremental builds."""
        return self.folder / STORE


def load_run(out: Path, scenario: Scenario) -> Run | None:
    """Return a finished run, null where none was started.

    Raises:
        RunError: if it is not finished, saying what is missing; or of another schema.
    """
    folder = run_folder(out, scenario)
    declared = read_record(folder / DECLARATION, RunDeclaration)
    if declared is None:
        return None
    stages, times, missing = [], [], []
    for number, name in enumerate(declared.stages):
        place = stage_folder(folder, number, name)
        record, took = read_record(place / RECORD, StageRecord), read_record(place / TIMES, StageTimes)
        if record is None or took is None:
            missing.append(name)
        else:
            stages.append(record)
            times.append(took)
    if missing:
        error = RunError(
            f"the run of `{scenario.value}` is not finished",
            facts={"folder": folder, "missing stages": ", ".join(missing)},
            hint=f"`gsum experiment run {scenario.value} --out {out}` goes on where it was",
        )
        error.exit_code = ExitCode.STALE
        raise error
    return Run(folder, declared, tuple(stages), tuple(times))


def load_runs(out: Path) -> tuple[Run | None, Run | None]:
    """Return the finished runs of a folder: mutations and exercise.

    Raises:
        RunError: as `load_run`, and if there is none of either.
    """
    found = load_run(out, Scenario.MUTATIONS), load_run(out, Scenario.EXERCISE)
    if found == (None, None):
        error = RunError(
            "there is no run to report",
            facts={"folder": out, "missing": "mutations, exercise"},
            hint=f"gsum experiment run mutations --out {out}",
        )
        error.exit_code = ExitCode.STALE
        raise error
    return found
