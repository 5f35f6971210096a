"""The end of a build as text and as JSON: counts, failures once each, differences, what to type next. Prints."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import click
import msgspec

from gsum.cli.config import Config
from gsum.cli.light import counted, counts_line
from gsum.cli.render import emit, error_lines, safe
from gsum.cli.reporting import Tally
from gsum.engine.events import ActionFailed
from gsum.engine.plan import Plan
from gsum.engine.report import BuildReport
from gsum.rules.graph import ActionGraph
from gsum.store.records import ActionEntry, InvocationStatus

NAMED_LABELS = 3
"""How many labels a failure that many actions share is shown with."""

DIFFERING = (
    "what is served stays as it was; a program whose answers may differ is declared `reproducible = false` with an "
    "`epoch`, a local model whose numbers changed gets another `numerics` profile"
)
"""What can be done about differences that a full build found."""

_STATUS_COLORS = {"ok": "green", "failed": "red", "interrupted": "yellow"}


def build_document(report: BuildReport, tally: Tally) -> dict[str, Any]:
    """Return the JSON document of a build: the report, and why what failed failed."""
    document: dict[str, Any] = {"dry_run": False, **msgspec.to_builtins(report)}
    document["cached"] = list(report.cached)
    document["differences"] = [{"label": found.label, "what": list(found.what)} for found in report.differences]
    document["failures"] = [
        {
            "label": event.label,
            "reason": event.reason,
            "message": event.message,
            "facts": event.facts,
            "hint": event.hint,
            "exit_code": event.exit_code,
        }
        for event in tally.failures
    ]
    document["equivocations"] = [
        {"label": event.label, "request": event.request, "first": event.first, "second": event.second}
        for event in tally.equivocations
    ]
    return document


def dry_run_document(graph: ActionGraph, plan: Plan[ActionEntry]) -> dict[str, Any]:
    """Return the JSON document of a dry run; `would_run` is an upper bound."""
    running = set(plan.to_run)
    return {
        "dry_run": True,
        "targets": len(graph.actions),
        "cached": [label for label in graph.actions if label not in running],
        "would_run": list(plan.to_run),
    }


def print_dry_run(config: Config, graph: ActionGraph, plan: Plan[ActionEntry]) -> None:
    """Print what would run."""
    for label in plan.to_run:
        emit(config, f"  would run   {label}")
    cached = len(graph.actions) - len(plan.to_run)
    at_most = "at most " if plan.to_run else ""
    emit(
        config, f"dry run: {counted(len(graph.actions), 'target')}, {cached} cached, {at_most}{len(plan.to_run)} to run"
    )
    if plan.to_run:
        emit(config, "An action whose inputs come out as before is cut off: it and what is above it may not run")


def print_summary(config: Config, requested: tuple[str, ...], report: BuildReport, tally: Tally) -> None:
    """Print differences, the failures once each, the counts, and what to type next."""
    for difference in report.differences:
        emit(config, f"  differs     {difference.label}  ({', '.join(difference.what)})")
    for event in tally.equivocations:
        emit(config, f"  second output for one request, kept beside the first: {event.label}  ({event.second[:16]})")
    for line in _failure_lines(tally.failures):
        emit(config, line, err=True)
    emit(config, summary_line(report))
    for line in _next_lines(config, requested, report):
        emit(config, line)


def summary_line(report: BuildReport) -> str:
    """Return the counts of a build in one line."""
    named = ("ineligible", "pure", "failed", "skipped")
    rest = [f"{len(labels)} {name}" for name in named if (labels := getattr(report, name))]
    cut_off, generated = len(report.cut_off), len(report.generated)
    counts = counts_line(
        report.targets, len(report.cached), cut_off, generated, rest, report.new_tokens, report.seconds
    )
    status = click.style(report.status.value, fg=_STATUS_COLORS[report.status.value], bold=True)
    return f"{status}: {counts}"


def _failure_lines(failures: list[ActionFailed]) -> list[str]:
    """Return the failures as errors; those that say the same are said once, with the labels they befell."""
    alike: dict[tuple[str, tuple[tuple[str, str], ...], str | None], list[str]] = defaultdict(list)
    for event in failures:
        alike[event.message, tuple(event.facts.items()), event.hint].append(event.label)
    lines = []
    for (message, facts, hint), labels in alike.items():
        shown = labels[:NAMED_LABELS]
        if len(labels) > len(shown):
            shown.append(f"and {len(labels) - len(shown)} more")
        lines += error_lines(message, {"target": "\n".join(shown), **dict(facts)}, hint)
    return lines


def _next_lines(config: Config, requested: tuple[str, ...], report: BuildReport) -> list[str]:
    """Return what to type next: show the one target asked for, see why one is invalid, go on after an interruption."""
    if report.status is InvocationStatus.INTERRUPTED:
        return ["what is finished is kept; the same command goes on from there"]
    lines = [f"INVALID: {label}" for label in report.invalid]
    if report.differences:
        lines.append(f"{click.style('hint:', fg='cyan', bold=True)} {DIFFERING}")
    if len(requested) == 1 and not report.failed and not report.differences:
        lines.append(f"next: {safe(config.typed('show', requested[0]))}")
    elif report.invalid:
        lines.append(f"next: {safe(config.typed('show', report.invalid[0]))}")
    return lines
