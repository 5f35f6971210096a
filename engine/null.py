"""The record of a build that had nothing to do: an invocation with its two events, and an empty report."""

from __future__ import annotations

from collections.abc import Sequence

from gsum.engine.clock import Clock
from gsum.engine.events import BuildFinished, BuildStarted, encode_event
from gsum.engine.report import BuildOptions, BuildReport, closed, new_invocation, opened
from gsum.engine.standing import Cached, StandingDossier
from gsum.store.api import Store
from gsum.store.records import InvocationStatus


def record_null_build(
    store: Store, standing: Sequence[StandingDossier], options: BuildOptions, clock: Clock, started: float
) -> BuildReport:
    """Record in one transaction that all that was asked for stands; `started` is the clock's monotonic start."""
    invocation = new_invocation(clock)
    cached = Cached((), tuple(standing))
    targets = len(cached)
    record = opened(invocation, clock.now(), options, targets)
    report = BuildReport(
        invocation=invocation,
        status=InvocationStatus.OK,
        exit_code=0,
        targets=targets,
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
        seconds=round(clock.monotonic() - started, 3),
    )
    events = [
        BuildStarted(invocation, options.patterns, targets, 0),
        BuildFinished(invocation, report.status.value, report.exit_code, report.seconds),
    ]
    with store.transaction():
        store.begin(record)
        store.append_events(invocation, [encode_event(event) for event in events])
        store.finish(closed(record, report))
    return report
