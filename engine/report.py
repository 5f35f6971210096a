"""What was asked of a build, what it did, and its record for the journal. Pure but for new ids."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gsum.engine.clock import Clock
from gsum.engine.events import Difference
from gsum.engine.null import invocation_id
from gsum.engine.standing import Cached, StandingDossier
from gsum.store.label_runs import pack_labels
from gsum.store.records import InvocationRecord, InvocationStatus
from gsum.store.version import VERSION

REPORT_LISTS = ("recomputed", "generated", "cut_off", "ineligible", "pure", "failed", "skipped", "invalid")


class BuildOptions(msgspec.Struct, frozen=True):
    """What was asked of a build. `full` reads no entry and no stored generation; `jobs` bounds the requests in flight.

    After a failure nothing starts, unless `keep_going`; what is in flight may land, unless `fail_fast`.
    With `draft`, executors are offered the last answers of the same labels; a full build offers none.
    """

    patterns: tuple[str, ...]
    principal: str
    toolchain: str
    keep_going: bool = False
    full: bool = False
    fail_fast: bool = False
    jobs: int | None = None
    draft: bool = False


class BuildReport(msgspec.Struct, frozen=True):
    """What a build did. Lists hold labels: closure = cached + recomputed + failed + skipped;
    recomputed = generated + cut_off + ineligible + pure. `differences` is set by a full build.
    """

    invocation: str
    status: InvocationStatus
    exit_code: int
    targets: int
    cached: Cached
    recomputed: tuple[str, ...]
    generated: tuple[str, ...]
    cut_off: tuple[str, ...]
    ineligible: tuple[str, ...]
    pure: tuple[str, ...]
    failed: tuple[str, ...]
    skipped: tuple[str, ...]
    invalid: tuple[str, ...]
    differences: tuple[Difference, ...]
    new_tokens: int
    seconds: float


def new_invocation(clock: Clock) -> str:
    """Return a fresh invocation id."""
    return invocation_id(clock.now())


def null_report(invocation: str, standing: Sequence[StandingDossier], seconds: float) -> BuildReport:
    """Return the report of a build that had nothing to do."""
    cached = Cached((), tuple(standing))
    return BuildReport(
        invocation=invocation,
        status=InvocationStatus.OK,
        exit_code=0,
        targets=len(cached),
        cached=cached,
        recomputed=(),
        generated=(),
        cut_off=(),
        ineligible=(),
        pure=(),
        failed=(),
        skipped=(),
        invalid=(),
        differences=(),
        new_tokens=0,
        seconds=seconds,
    )


def opened(invocation: str, started: str, options: BuildOptions, targets: int) -> InvocationRecord:
    """Return the record of an invocation that starts."""
    return InvocationRecord(
        id=invocation,
        started=started,
        patterns=options.patterns,
        principal=options.principal,
        toolchain=options.toolchain,
        full=options.full,
        version=VERSION,
        targets=targets,
    )


def closed(record: InvocationRecord, report: BuildReport) -> InvocationRecord:
    """Return the record of an invocation that ended with a report."""
    return msgspec.structs.replace(
        record,
        status=report.status,
        exit_code=report.exit_code,
        seconds=report.seconds,
        cached=len(report.cached),
        runs={name: pack_labels(getattr(report, name)) for name in REPORT_LISTS},
        new_tokens=report.new_tokens,
    )
