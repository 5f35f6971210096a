"""`gsum build`: what patterns name is made, from the store where it can be.

Whether there is anything to do is looked at first, by the index; only then is what builds imported.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from pathlib import Path
from types import ModuleType

import click

from gsum.cli.asked import Asked
from gsum.cli.config import Config, GivenPath, current_config, options
from gsum.cli.interrupts import Interrupts
from gsum.cli.nothing import NullBuild, null_build
from gsum.cli.render import emit_json, on_terminal
from gsum.cli.reporting import Tally, reporter_for
from gsum.cli.summary import build_document, print_summary
from gsum.engine.index.quick import Looked
from gsum.engine.report import null_report
from gsum.engine.standing import StandingDossier

STANDARD_ERROR = 2
_FILE = GivenPath(path_type=Path, dir_okay=False)


@click.command("build")
@click.argument("patterns", nargs=-1, required=True, metavar="PATTERN…")
@click.option("--dry-run", is_flag=True, help="Say what would run; run and write nothing.")
@click.option("-k", "--keep-going", is_flag=True, help="After a failure, build all that does not need it.")
@click.option("--fail-fast", is_flag=True, help="After a failure, give up what is being generated too.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Ask for at most N generations at a time.")
@click.option("--full", is_flag=True, help="Generate everything again, reading no cache, and report differences.")
@click.option("--draft", is_flag=True, help="Offer each target's last answer as a draft: fewer passes, same tokens.")
@click.option("-q", "--quiet", is_flag=True, help="Print the summary only.")
@click.option("--events", type=_FILE, metavar="FILE", help="Write every event to FILE, one JSON object a line.")
@click.option("--profile", type=_FILE, metavar="FILE", help="Write a Chrome trace of the build to FILE.")
@options(principal=True, toolchain=True)
def command(
    patterns: tuple[str, ...],
    dry_run: bool,
    keep_going: bool,
    fail_fast: bool,
    jobs: int | None,
    full: bool,
    draft: bool,
    quiet: bool,
    events: Path | None,
    profile: Path | None,
) -> int:
    """Build the targets that PATTERNs name, and all they are made from.

    After a failure nothing more is started; what is being generated is waited for and kept.
    """
    if keep_going and fail_fast:
        raise click.UsageError("`--keep-going` and `--fail-fast` exclude each other")
    config = current_config()
    asked = Asked(patterns, keep_going, full, events, profile, draft, fail_fast, jobs)
    if dry_run:
        code: int = _building().dry_run(config, patterns, full=full)
        return code
    reporter = reporter_for(config, quiet=quiet)
    tally = Tally()
    with Interrupts(_say_stopping) as interrupts:
        found = None if full or asked.watched else _look(config, patterns)
        if isinstance(found, NullBuild):
            standing = [StandingDossier(*one) for one in found.done.dossiers()]
            report, requested = null_report(found.invocation, standing, found.seconds), found.done.alone
        else:
            report, requested = _building().build(config, asked, (reporter, tally), interrupts.asked, found)
    if config.json:
        emit_json("build", build_document(report, tally))
    else:
        print_summary(config, requested, report, tally)
    return report.exit_code


def _look(config: Config, patterns: tuple[str, ...]) -> NullBuild | Looked | None:
    """Look whether there is anything to do, unless that was done just before: see `gsum.cli.main`."""
    seen = click.get_current_context().find_root().obj
    if isinstance(seen, Looked):
        return seen
    start = config.cwd if config.workspace is None else config.cwd / config.workspace
    store = None if config.store is None else config.cwd / config.store
    return null_build(start, patterns, store=store, principal=config.principal, toolchain=config.toolchain)


def _building() -> ModuleType:
    return importlib.import_module("gsum.cli.building")


def _say_stopping() -> None:
    """Write past every buffer: the signal may have come in the middle of a print."""
    line = "stopping: what is finished is kept; once more stops at once\n"
    clear = "\r\x1b[2K" if on_terminal() else ""
    with contextlib.suppress(OSError):
        os.write(STANDARD_ERROR, f"{clear}{line}".encode())
