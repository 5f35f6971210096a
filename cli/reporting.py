"""What a person sees of a build while it runs: one line per finished action, a bar on a terminal. Knows no store.

Lines go to standard output, so that a log holds them; the bar goes to standard error, where a person watches.
"""

from __future__ import annotations

import importlib
import sys
from typing import Protocol

import click
import msgspec

from gsum.cli.config import Config
from gsum.cli.render import counted, duration, emit, on_terminal, state_text
from gsum.engine.events import ActionFailed, ActionFinished, Equivocation, Event, WorkerReady, WorkerStarted

HOW_WIDTH = 10
STATE_WIDTH = 10
HOW_NAMES = {"cut_off": "cut off"}


class Reporter(Protocol):
    """Shows events as they come."""

    def event(self, event: Event) -> None:
        """Show an event."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class Silent:
    """Shows nothing."""

    def event(self, event: Event) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Close nothing."""


class Lines:
    """One line per action that finished or failed."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def event(self, event: Event) -> None:
        """Print a line, if the event is worth one."""
        line = event_line(event)
        if line is not None:
            emit(self._config, line)

    def close(self) -> None:
        """Close nothing."""


class Tally(msgspec.Struct):
    """What the summary needs of the events beside the report."""

    failures: list[ActionFailed] = []
    equivocations: list[Equivocation] = []
    statuses: dict[str, str] = {}

    def event(self, event: Event) -> None:
        """Keep what the summary needs."""
        if isinstance(event, ActionFailed):
            self.failures.append(event)
        elif isinstance(event, Equivocation):
            self.equivocations.append(event)
        elif isinstance(event, ActionFinished):
            self.statuses[event.label] = event.status


def event_line(event: Event) -> str | None:
    """Return the line of a finished or failed action or of a worker, null for other events."""
    if isinstance(event, ActionFinished):
        how = HOW_NAMES.get(event.how, event.how)
        facts = ""
        if event.how == "generated":
            facts = f"  ({counted(event.new_tokens, 'token')}, {duration(event.seconds)})"
        return f"  {how:<{HOW_WIDTH}}  {state_text(event.status, STATE_WIDTH)}  {event.label}{facts}"
    if isinstance(event, ActionFailed):
        failed = click.style("failed", fg="red") + " " * (HOW_WIDTH - len("failed"))
        return f"  {failed}  {'':{STATE_WIDTH}}  {event.label}  ({event.reason.replace('_', ' ')})"
    if isinstance(event, WorkerStarted) and not event.warm:
        return f"  {'starting':<{HOW_WIDTH}}  {'':{STATE_WIDTH}}  {_worker(event)}"
    if isinstance(event, WorkerReady):
        how = "warm" if event.warm else "ready"
        return f"  {how:<{HOW_WIDTH}}  {'':{STATE_WIDTH}}  {_worker(event)}  ({duration(event.seconds)})"
    return None


def _worker(event: WorkerStarted | WorkerReady) -> str:
    which = f", worker {event.worker + 1}" if event.worker else ""
    return f"the model of {event.toolchain}{which}"


def reporter_for(config: Config, *, quiet: bool) -> Reporter:
    """Return the reporter that the options and the terminal ask for."""
    if quiet:
        return Silent()
    if on_terminal():
        lines = None if config.json else sys.stdout.isatty()
        live: Reporter = importlib.import_module("gsum.cli.live").Live(config, lines)
        return live
    return Silent() if config.json else Lines(config)
