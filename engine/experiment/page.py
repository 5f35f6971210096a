"""The report as one self-contained HTML page: no script, no network, nothing but what it says. Pure.

What comes from documents or a model is escaped; claims stand under the snapshot they were made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from gsum.engine.experiment import reference
from gsum.engine.experiment.report import Group, Report, Section, StageReport
from gsum.engine.experiment.sample import Sample, SampleClaim, SampleItem
from gsum.engine.experiment.style import STYLE

Row = Sequence[object]
_NONE = "–"
_FIGURE = '<td class="n">'
_NUMBER = re.compile(r"[0-9.,]+( of [0-9,]+)?")
_COUNTERS = (
    ("recomputed", "recomputed targets"),
    ("hits", "cache hits"),
    ("model_calls", "model calls"),
    ("cut_off", "cut off (known request, no call)"),
    ("ineligible", "ineligible (no text sent)"),
    ("new_tokens", "new tokens"),
)


def render(report: Report, sample: Sample | None) -> str:
    """Return the page of a report and the sample that is set aside for a reader."""
    parts = [_head(report)]
    if report.mutations is not None:
        parts += [_mutations(report.mutations), _quality(report.mutations), _stages(report.mutations, "Stages")]
    if report.exercise is not None:
        parts.append(_exercise(report.exercise))
    parts += [_not_run(scenario) for scenario in report.not_run]
    parts.append(_comparison(report))
    if sample is not None:
        parts.append(_sample(sample, report.sample or "", report.unread))
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>gsum: the reference experiment</title>\n<style>\n{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _head(report: Report) -> str:
    section = report.mutations or report.exercise
    assert section is not None
    declared = section.declaration
    facts = [
        ("toolchain", f"{declared.toolchain} ({declared.toolchain_key[:16]})"),
        ("observed on", ", ".join(section.devices) or _NONE),
        ("versions", ", ".join(f"{name} {version}" for name, version in section.versions.items()) or _NONE),
        ("dossiers", f"{len(declared.dossiers)}, of which {len(declared.mutated)} are mutated"),
        ("principal", declared.principal),
        ("model calls in all builds", f"{report.generations:,} (reference: {reference.GENERATIONS:,})"),
        ("gsum", report.gsum),
    ]
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return (
        f"<h1>The reference experiment</h1>\n<dl>{items}</dl>\n<p>Reference: {escape(reference.TOOLCHAIN)}. Its "
        "quality figures were made with other prompts and another model and are context; its counters are not. An "
        "exercise has a store of its own here, so its dossier is built once more than there.</p>"
    )


def _mutations(section: Section) -> str:
    """Return the table of counters: reference and ours, incremental and full."""
    number = len(section.declaration.mutated)
    events = section.compared.pairs
    ours = section.counters
    rows: list[Row] = []
    for name, title in _COUNTERS:
        row: list[object] = [title]
        for build in ("incremental", "full"):
            known = reference.COUNTERS[build].get(name)
            row += [_scaled(known, number, name), getattr(ours[build], name)]
        rows.append(row)
    seconds: list[object] = ["seconds"]
    for build in ("incremental", "full"):
        known_seconds = f"{reference.SECONDS[build]:,.2f}" if number == reference.DOSSIERS else None
        seconds += [known_seconds, f"{section.took[build].seconds:,.2f}"]
    rows.append(seconds)
    unfinished = sum(took.unfinished for took in section.took.values())
    note = "" if not unfinished else f" {unfinished} builds were killed on the way; their time is not in it."
    scaled = (
        ""
        if number == reference.DOSSIERS
        else f" The reference's counters are scaled to {number} dossiers; its tokens are not."
    )
    head = ("", "incremental, reference", "incremental, ours", "full, reference", "full, ours")
    return f"<h2>{events} mutations</h2>\n{_table(head, rows)}\n<p>{escape((scaled + note).strip())}</p>"


def _scaled(value: int | None, dossiers: int, name: str) -> object:
    if value is None or (name == "new_tokens" and dossiers != reference.DOSSIERS):
        return None
    return reference.scaled(value, dossiers)


def _quality(section: Section) -> str:
    head = (
        "group", "system", "", "summaries", "statuses", "claims", "reference-valid", "supported", "unsupported",
        "unique", "duplicates", "correct", "expected", "precision", "recall",
    )  # fmt: skip
    rows = [row for group in section.groups for row in _group_rows(group)]
    return (
        f"<h2>Quality</h2>\n{_table(head, rows)}\n<p>Reference validity and support are two measures: a claim may "
        "cite a real line that says something else. Precision = correct / unique, recall = correct / expected, of "
        f"sums; {_NONE} where there is nothing to divide or no figure. With four claims a root, recall can't pass 4/48 "
        "at first; the extractive baseline keeps every fact.</p>"
    )


def _group_rows(group: Group) -> Iterable[Row]:
    system, given, total = group.system, group.reference, group.total
    if given is not None:
        yield (
            group.group, system, "reference", given.summaries, _statuses(given.statuses), given.claims,
            given.reference_valid, given.supported, given.unsupported, given.predicted, given.duplicates, given.correct,
            given.expected, given.precision, given.recall,
        )  # fmt: skip
    counts = total.counts
    yield (
        group.group, system, "ours", total.summaries, _statuses(total.statuses), counts.claims, counts.reference_valid,
        counts.supported, total.unsupported, counts.predicted, total.duplicates, counts.correct, counts.expected,
        total.ratios.precision, total.ratios.recall,
    )  # fmt: skip


def _statuses(statuses: Mapping[str, int]) -> str:
    return ", ".join(f"{count}\N{NO-BREAK SPACE}{status}" for status, count in statuses.items())


def _stages(section: Section, title: str) -> str:
    head = (
        "stage", "edit", "dossiers", "recomputed", "hits", "calls", "cut off", "ineligible", "tokens", "s",
        "full: calls", "full: tokens", "full: s", "old refused as STALE",
    )  # fmt: skip
    rows = [_stage_row(stage) for stage in section.stages]
    cut = [label for stage in section.stages for label in stage.cut_off]
    unexpected = [f"{stage.stage}: {', '.join(stage.unexpected)}" for stage in section.stages if stage.unexpected]
    text = f"<h2>{escape(title)}</h2>\n{_table(head, rows)}"
    text += _listed("targets cut off", cut)
    text += _listed("stages in which other parts were recomputed than the edit declares", unexpected)
    return text


def _stage_row(stage: StageReport) -> Row:
    ours, full = stage.incremental, stage.full
    refused = None if full is None else f"{stage.refused_stale} of {stage.roots}"
    return (
        stage.stage, stage.title, stage.dossiers, ours.recomputed, ours.hits, ours.model_calls, ours.cut_off,
        ours.ineligible, ours.new_tokens, f"{stage.seconds:,.2f}", None if full is None else full.model_calls,
        None if full is None else full.new_tokens, None if stage.full_seconds is None else f"{stage.full_seconds:,.2f}",
        refused,
    )  # fmt: skip


def _exercise(section: Section) -> str:
    words = {True: "unchanged, byte for byte", False: "CHANGED", None: "no main evaluation stands beside it"}
    dossier = section.declaration.mutated[0]
    text = _stages(section, f"Exercise {dossier}")
    return f"{text}\n<p>The main evaluation's records: {words[section.main_unchanged]}.</p>"


def _not_run(scenario: str) -> str:
    return (
        f"<h2>{escape(scenario.capitalize())}</h2>\n<p><b>Not run</b>: no figure of ours on this page counts it. "
        f"<code>gsum experiment run {escape(scenario)}</code> runs it.</p>"
    )


def _comparison(report: Report) -> str:
    sections = [part for part in (report.mutations, report.exercise) if part is not None]
    differences = [
        f"{found.stage} {found.label}: {', '.join(found.what)}" for part in sections for found in part.differences
    ]
    compared = [part.compared for part in sections]
    generations = sum(one.generations_compared for one in compared)
    rows: list[Row] = [
        (
            "pairs with equal keys, statuses and claims",
            f"{reference.PAIRS} of {reference.PAIRS}, mutations and exercise",
            f"{report.equal_pairs} of {report.pairs}",
        ),
        ("pairs with equal token ids", None, f"{report.equal_token_pairs} of {report.pairs}"),
        (
            "generations with equal token ids",
            None,
            f"{sum(one.generations_equal for one in compared):,} of {generations:,}",
        ),
    ]
    return (
        f"<h2>Incremental against full</h2>\n{_table(('', 'reference', 'ours'), rows)}"
        f"{_listed('nodes that differ', differences)}"
    )


def _sample(sample: Sample, digest: str, unread: int) -> str:
    items = "\n".join(_item(item) for item in sample.items)
    return (
        f"<h2>Set aside for a reader: {escape(sample.dossier)}</h2>\n<p><b class=pending>{sample.status}</b> Nobody "
        f"has read these {unread} claims for this report. Sample {escape(digest[:16])}; all root claims of every "
        f"stage, each under the snapshot of its stage.</p>\n{items}"
    )


def _item(item: SampleItem) -> str:
    claims = "".join(_claim(claim) for claim in item.claims) or "<li>no claims are served</li>"
    withheld = f"<p>{item.withheld} withheld: their sources may not be read now</p>" if item.withheld else ""
    return (
        f'<section><h3>{escape(item.stage)} <span class="when">{escape(item.when)}</span> {escape(item.status)}</h3>'
        f"<p>{escape(item.title)}; {escape(item.label)}, key {escape(item.key[:16])}</p>"
        f"<ol>{claims}</ol>{withheld}</section>"
    )


def _claim(claim: SampleClaim) -> str:
    values = " · ".join(f"{escape(name)}: {escape(value)}" for name, value in claim.values.items())
    quotes = "".join(
        f"<blockquote>{escape(one.quote)}<cite>{escape(one.document)}, version {escape(one.version)}, "
        f"[{one.start}:{one.end})</cite></blockquote>"
        for one in claim.evidence
    )
    return f"<li><b>{values}</b>{quotes}</li>"


def _listed(title: str, lines: Sequence[str]) -> str:
    if not lines:
        return f"<p>{escape(title)}: none</p>"
    items = "".join(f"<li><code>{escape(line)}</code></li>" for line in lines)
    return f"<details><summary>{escape(title)}: {len(lines)}</summary><ul>{items}</ul></details>"


def _table(head: Sequence[str], rows: Iterable[Row]) -> str:
    """Return a table; the head of a column of figures stands above its figures."""
    written = [[_cell(value) for value in row] for row in rows]
    figures = [all(cell.startswith(_FIGURE) for cell in column) for column in zip(*written, strict=True)]
    cells = "".join(
        f'<th class="n">{escape(name)}</th>' if right else f"<th>{escape(name)}</th>"
        for name, right in zip(head, figures, strict=True)
    )
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in written)
    return f'<div class="wide"><table>\n<thead><tr>{cells}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>'


def _cell(value: object) -> str:
    if value is None:
        return f"{_FIGURE}{_NONE}</td>"
    if isinstance(value, int):
        return f"{_FIGURE}{value:,}</td>"
    text = escape(str(value))
    return f"{_FIGURE}{text}</td>" if _NUMBER.fullmatch(text) else f"<td>{text}</td>"
