"""A verification as text and as JSON: what parted where, and in whose company. Prints; no text of an output."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import click

from gsum.cli.config import Config
from gsum.cli.render import counted, duration, emit, error_lines, safe, table
from gsum.cli.summary import DIFFERING, NAMED_LABELS
from gsum.engine.events import Event
from gsum.engine.verifying.report import (
    Failure,
    Finding,
    RoundFinished,
    VerifyReport,
    VerifyStarted,
    VerifyStatus,
)

SHOWN = 20
"""Most differing outputs that are listed; the JSON document has all."""

_COLORS = {
    VerifyStatus.OK: "green",
    VerifyStatus.DIFFERS: "red",
    VerifyStatus.FAILED: "red",
    VerifyStatus.INTERRUPTED: "yellow",
}


def document(report: VerifyReport) -> dict[str, Any]:
    """Return the JSON document of a verification."""
    return {
        "invocation": report.invocation,
        "status": report.status.value,
        "stored": report.stored,
        "requests": report.requests,
        "not_built": report.not_built,
        "left_out": report.left_out,
        "executions": report.executions,
        "same": report.same,
        "rounds": [
            {
                "toolchain": one.toolchain,
                "round": one.number,
                "widths": list(one.widths),
                "executions": one.executions,
                "same": one.same,
            }
            for one in report.rounds
        ],
        "differing": [_finding(found) for found in report.differing],
        "failures": [_failure(failed) for failed in report.failures],
        "new_tokens": report.new_tokens,
        "seconds": report.seconds,
        "exit_code": report.exit_code,
    }


def _finding(found: Finding) -> dict[str, Any]:
    return {
        "labels": list(found.stored.labels),
        "toolchain": found.stored.toolchain,
        "promised": found.promised,
        "request": found.stored.request,
        "round": found.round,
        "batch": list(found.batch),
        "what": list(found.divergence.what),
        "token": found.divergence.token,
        "stored_tokens": found.divergence.stored_tokens,
        "made_tokens": found.divergence.made_tokens,
        "first": found.stored.generation,
        "second": found.second,
    }


def _failure(failed: Failure) -> dict[str, Any]:
    return {
        "labels": list(failed.stored.labels),
        "request": failed.stored.request,
        "round": failed.round,
        "reason": failed.reason,
        "message": failed.message,
        "facts": failed.facts,
        "hint": failed.hint,
        "exit_code": failed.exit_code,
    }


def progress_line(event: Event) -> str | None:
    """Return the line that an event is worth while a verification runs."""
    match event:
        case VerifyStarted():
            return f"verifying {counted(event.requests, 'request')}, {counted(event.rounds, 'round')}"
        case RoundFinished():
            asked = "alone" if max(event.widths) == 1 else f"in batches of {_listed(event.widths)}"
            same = "all as stored" if event.same == event.executions else f"{event.same} as stored"
            return f"  round {event.round}: {event.executions} {asked}, {same}  ({safe(event.toolchain)})"
        case _:
            return None


def _listed(widths: tuple[int, ...]) -> str:
    *first, last = [str(width) for width in widths]
    return f"{', '.join(first)} and {last}" if first else last


def print_verified(config: Config, report: VerifyReport) -> None:
    """Print what differs, what failed, the counts, and what was left out."""
    if report.differing:
        for line in _differing_lines(report.differing):
            emit(config, line)
    for line in _failure_lines(report.failures):
        emit(config, line, err=True)
    status = click.style(report.status.value, fg=_COLORS[report.status], bold=True)
    counts = [
        f"{counted(report.requests, 'request')} of {report.stored:,} stored",
        counted(report.executions, "execution"),
        f"{report.same:,} as stored",
        *([f"{len(report.failures):,} failed"] if report.failures else []),
        counted(report.new_tokens, "token"),
        duration(report.seconds),
    ]
    emit(config, f"{status}: {', '.join(counts)}")
    if report.not_built:
        emit(config, f"not verified: {counted(report.not_built, 'target')} stale or not built")
    if report.left_out:
        left = counted(report.left_out, "request")
        emit(config, f"not verified: {left} of toolchains that promise nothing; `--opaque` asks them too")
    if any(found.promised for found in report.differing):
        emit(config, f"{click.style('hint:', fg='cyan', bold=True)} {DIFFERING}")
    elif report.differing:
        emit(config, "the toolchain promises nothing: what differs is kept beside what is stored, and is no fault")


def _differing_lines(differing: Sequence[Finding]) -> list[str]:
    """Return a table of outputs that are not what is stored: where they part, and in whose company."""
    rows = [("request", "token", "of", "now", "round", "asked", "target")]
    for found in differing[:SHOWN]:
        parts = found.divergence
        place = "-" if parts.token is None else str(parts.token)
        company = "alone" if len(found.batch) == 1 else f"with {len(found.batch) - 1} more"
        label = safe(found.stored.labels[0])
        more = f" and {len(found.stored.labels) - 1} more" if len(found.stored.labels) > 1 else ""
        rows.append(
            (
                found.stored.request[:16],
                place,
                str(parts.stored_tokens),
                str(parts.made_tokens),
                str(found.round),
                company,
                f"{label}{more}",
            )
        )
    lines = ["outputs that are not what is stored; `token` is the first that differs, from 0", *table(rows, "  ")]
    if len(differing) > SHOWN:
        lines.append(f"  and {len(differing) - SHOWN:,} more; `--json` lists all")
    return lines


def _failure_lines(failures: Sequence[Failure]) -> list[str]:
    """Return the failures as errors, those that say the same once."""
    alike: dict[tuple[str, tuple[tuple[str, str], ...], str | None], list[str]] = defaultdict(list)
    for failed in failures:
        alike[failed.message, tuple(failed.facts.items()), failed.hint].append(failed.stored.labels[0])
    lines = []
    for (message, facts, hint), labels in alike.items():
        shown = list(dict.fromkeys(labels))
        named = "\n".join(
            [*shown[:NAMED_LABELS], *([f"and {len(shown) - NAMED_LABELS} more"] if shown[NAMED_LABELS:] else [])]
        )
        lines += error_lines(message, {"target": named, **dict(facts)}, hint)
    return lines
