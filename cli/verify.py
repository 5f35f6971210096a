"""`gsum verify`: stored answers made again and compared, token by token. It prints no text of any of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import click

from gsum.cli.asked import system_clock
from gsum.cli.config import GivenPath
from gsum.cli.context import Config, current_config, options, reading_store
from gsum.cli.event_files import EventLines
from gsum.cli.executors import executors
from gsum.cli.interrupts import Interrupts
from gsum.cli.render import emit, emit_json
from gsum.cli.verified import document, print_verified, progress_line
from gsum.engine.events import Event
from gsum.engine.universe import Universe, surrounding_universe, universe_of
from gsum.engine.verifying.report import VerifyOptions, VerifyReport
from gsum.engine.verifying.run import Verification
from gsum.rules.loader import load_workspace

EVERYTHING = ("//...",)

_FILE = GivenPath(path_type=Path, dir_okay=False)


@click.command("verify")
@click.argument("patterns", nargs=-1, metavar="[PATTERN…]")
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Ask only N of the stored requests.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, metavar="S", show_default=True, help="Which, in what order."
)
@click.option(
    "--rounds", type=click.IntRange(min=1), default=3, metavar="R", show_default=True, help="How often to ask each."
)
@click.option("--opaque", is_flag=True, help="Ask toolchains too that promise nothing, and publish what differs.")
@click.option("-q", "--quiet", is_flag=True, help="Print the end only.")
@click.option("--events", type=_FILE, metavar="FILE", help="Write every event to FILE, one JSON object a line.")
@options(principal=True, toolchain=True)
def command(
    patterns: tuple[str, ...],
    sample: int | None,
    seed: int,
    rounds: int,
    opaque: bool,
    quiet: bool,
    events: Path | None,
) -> int:
    """Generate again what is stored below PATTERNs (all targets), and compare token by token.

    A worker of its own computes all anew. The first round asks each request alone, the others in shuffled batches of
    several widths. What differs is kept beside what is stored, which stays what is served, and the command exits 8.
    """
    config = current_config()
    asked = VerifyOptions(patterns or EVERYTHING, sample, seed, rounds, opaque)
    shown = quiet or config.json
    workspace = load_workspace(config.root)
    universe_for = universe_of if patterns else surrounding_universe
    universe = universe_for(workspace, asked.patterns, principal=config.principal, toolchain=config.toolchain)
    lines = None if events is None else EventLines(config.cwd / events, system_clock())

    def emit_event(event: Event) -> None:
        if lines is not None:
            lines.event(event)
        if not shown and (line := progress_line(event)) is not None:
            emit(config, line)

    with contextlib.closing(lines) if lines is not None else contextlib.nullcontext():
        report = _verify(config, universe, asked, emit_event)
    if config.json:
        emit_json("verify", document(report))
    else:
        print_verified(config, report)
    return report.exit_code


def _verify(
    config: Config, universe: Universe, asked: VerifyOptions, emit_event: Callable[[Event], None]
) -> VerifyReport:
    with (
        Interrupts(_say_stopping) as interrupts,
        reading_store(config, config.root) as store,
        executors(config, universe.workspace, workers=1, alone=True) as executor_for,
    ):
        return Verification(
            universe=universe,
            store=store,
            executor_for=executor_for,
            emit=emit_event,
            interrupted=interrupts.asked,
            clock=system_clock(),
            options=asked,
        ).run()


def _say_stopping() -> None:
    """Write past every buffer: the signal may have come in the middle of a print."""
    with contextlib.suppress(OSError):
        os.write(2, b"stopping: what was generated is kept; once more stops at once\n")
