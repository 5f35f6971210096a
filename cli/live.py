"""The bar of a build on a terminal: done of total, hits, tokens a second, time left. The only user of rich."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from gsum.cli.config import Config
from gsum.cli.render import duration, emit
from gsum.cli.reporting import event_line
from gsum.engine.events import (
    ActionFailed,
    ActionFinished,
    ActionSkipped,
    ActionStarted,
    BuildFinished,
    BuildStarted,
    Event,
)


class Live:
    """A bar on standard error, and the lines of finished actions above it.

    `lines` says where those go: to the same terminal, to a standard output that is elsewhere, or null: nowhere.
    """

    def __init__(self, config: Config, lines: bool | None) -> None:
        self._config = config
        self._lines = lines
        self._bar = Progress(
            TextColumn("building"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f}", markup=False),
            TextColumn("{task.fields[facts]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.description}", style="dim", markup=False),
            console=Console(stderr=True, no_color=config.colored is False, highlight=False),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("", total=None, facts="", start=False, visible=False)
        self._to_run = self._ran = self._tokens = self._hits = 0
        self._began = time.monotonic()

    def event(self, event: Event) -> None:
        """Move the bar, and print the line of what finished."""
        line = event_line(event)
        if line is not None and self._lines is not None:
            if self._lines:
                self._bar.console.print(Text.from_ansi(line))
            else:
                emit(self._config, line)
        if isinstance(event, BuildStarted):
            self._start(event)
        elif isinstance(event, ActionStarted):
            self._bar.update(self._task, description=event.label, facts=self._facts())
        elif isinstance(event, ActionFinished | ActionFailed | ActionSkipped):
            self._ran += 1
            self._tokens += event.new_tokens if isinstance(event, ActionFinished) else 0
            self._bar.update(self._task, advance=1, facts=self._facts())
        elif isinstance(event, BuildFinished):
            self.close()

    def close(self) -> None:
        """Take the bar away."""
        self._bar.stop()

    def _start(self, event: BuildStarted) -> None:
        self._began = time.monotonic()
        self._to_run, self._hits = event.to_run, event.targets - event.to_run
        if not event.to_run:
            return
        self._bar.update(self._task, total=event.targets, completed=self._hits, facts=self._facts(), visible=True)
        self._bar.start_task(self._task)
        self._bar.start()

    def _facts(self) -> str:
        """Hits, tokens a second and the time left, as far as they are known: at the pace of this build so far."""
        seconds = time.monotonic() - self._began
        facts = [f"{self._hits} cached"]
        if self._tokens and seconds > 0:
            facts.append(f"{self._tokens / seconds:.0f} tokens/s")
        if self._ran and self._ran < self._to_run:
            facts.append(f"{duration(seconds / self._ran * (self._to_run - self._ran))} left")
        return " · ".join(facts)
