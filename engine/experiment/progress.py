"""How far a run is, and how long it may still take: an upper bound of model calls, at the pace seen. Prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from gsum.engine.events import ActionFinished, Event
from gsum.engine.experiment.setup import Stage
from gsum.store.records import How


class Progress(msgspec.Struct, frozen=True):
    """Where a run is. `calls_left` and `seconds_left` are upper bounds; null until a model call has been timed."""

    stage: int
    stages: int
    title: str
    build: str
    done: int
    to_run: int
    calls: int
    calls_left: int
    seconds_left: float | None


class Work:
    """Counts what a run does and reports it. Stages are counted by what their steps declare, until they are planned."""

    def __init__(
        self, stages: Sequence[Stage], monotonic: Callable[[], float], report: Callable[[Progress], None]
    ) -> None:
        self._stages, self._monotonic, self._report = tuple(stages), monotonic, report
        self._nodes = 0
        self._calls = 0
        self._started: float | None = None
        self._at: tuple[Stage, str] | None = None
        self._done = self._to_run = 0

    def begin(self, stage: Stage, build: str, nodes: int, to_run: int) -> None:
        """Note that a build of a stage starts, over `nodes` targets, of which `to_run` have no result."""
        self._nodes = max(self._nodes, nodes // max(1, len(stage.dossiers)))
        self._at, self._done, self._to_run = (stage, build), 0, to_run
        if self._started is None:
            self._started = self._monotonic()
        self._say()

    def event(self, event: Event) -> None:
        """Note what a build says."""
        if isinstance(event, ActionFinished):
            self._done += 1
            self._calls += event.how == How.GENERATED.value
            self._say()

    def _left(self) -> int:
        assert self._at is not None
        stage, build = self._at
        left = self._to_run - self._done
        if build == "incremental" and stage.step is not None:
            left += self._nodes * len(stage.dossiers)
        for later in self._stages[stage.number + 1 :]:
            edited = 0 if later.step is None else len(later.step.recomputed)
            left += (edited + self._nodes) * len(later.dossiers)
        return left

    def _say(self) -> None:
        assert self._at is not None and self._started is not None
        stage, build = self._at
        left = self._left()
        pace = (self._monotonic() - self._started) / self._calls if self._calls else None
        seconds = None if pace is None else pace * left
        self._report(
            Progress(
                stage.number + 1,
                len(self._stages),
                stage.title,
                build,
                self._done,
                self._to_run,
                self._calls,
                left,
                seconds,
            )
        )
