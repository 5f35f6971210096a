"""`gsum experiment report`: finished runs as report.json, a page, and the sample that is set aside for a reader."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from gsum.cli.config import GivenPath
from gsum.cli.context import Config, current_config, options
from gsum.cli.experiment_run import out_folder
from gsum.cli.render import emit, emit_json, print_json, table
from gsum.engine.experiment.loading import Run, load_runs
from gsum.engine.experiment.page import render
from gsum.engine.experiment.records import encode_record, write_whole
from gsum.engine.experiment.report import Report, make_report
from gsum.engine.experiment.sample import Sample, readable_now, take_sample
from gsum.engine.experiment.schema import report_schema
from gsum.rules.labels import LabelError
from gsum.rules.loader import load_workspace
from gsum.store.digests import blob_digest
from gsum.store.local import open_store

REPORT, PAGE, SAMPLE = "report.json", "report.html", "sample.json"


@click.command("report")
@click.argument("folder", required=False, type=GivenPath(path_type=Path), metavar="[DIR]")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of report.json, and do nothing else.")
@options()
def command(folder: Path | None, schema: bool) -> int:
    """Write report.json, report.html and sample.json into DIR, where `gsum experiment run --out DIR` kept its runs.

    A run that is not finished is refused (exit 4), with what is missing.
    """
    config = current_config()
    if schema:
        print_json(report_schema())
        return 0
    out = out_folder(config, folder)
    mutations, exercise = load_runs(out)
    sample = None if mutations is None else _sample(config, mutations)
    encoded = None if sample is None else encode_record(sample)
    digest = None if encoded is None else blob_digest(encoded)
    report = make_report(mutations, exercise, digest, 0 if sample is None else sample.claims)
    if encoded is not None:
        write_whole(out / SAMPLE, encoded)
    write_whole(out / REPORT, encode_record(report))
    write_whole(out / PAGE, render(report, sample).encode())
    if config.json:
        emit_json("experiment report", {"folder": str(out), "report": msgspec.to_builtins(report)})
    else:
        _print(config, report, out, sample)
    return 0


def _sample(config: Config, run: Run) -> Sample:
    """Take the sample, with the claims whose sources the principal may read in the workspace as it stands now."""
    workspace = load_workspace(config.root)
    declared = run.declaration
    package = workspace.packages.get(declared.package)
    if package is None:
        raise LabelError(
            f"there is no package `{declared.package}` any more", hint="report from the workspace of the run"
        )
    readable = readable_now(workspace, package.sources, declared.principal)
    with open_store(run.store, read_only=True) as store:
        return take_sample(declared, run.stages, store, workspace.schemas[package.schema].fields, readable)


def _print(config: Config, report: Report, out: Path, sample: Sample | None) -> None:
    rows = [("group", "system", "summaries", "claims", "supported", "correct", "expected", "precision", "recall")]
    sections = [part for part in (report.mutations, report.exercise) if part is not None]
    for group in (group for section in sections for group in section.groups):
        counts, ratios = group.total.counts, group.total.ratios
        rows.append(
            (
                group.group,
                group.system,
                str(group.total.summaries),
                f"{counts.claims:,}",
                "-" if counts.supported is None else f"{counts.supported:,}",
                f"{counts.correct:,}",
                f"{counts.expected:,}",
                ratios.precision or "-",
                ratios.recall or "-",
            )
        )
    for line in table(rows):
        emit(config, line)
    equal = f"{report.equal_pairs} of {report.pairs} pairs equal"
    emit(config, f"{equal}, {report.equal_token_pairs} with equal token ids; {report.generations:,} model calls")
    for scenario in report.not_run:
        emit(config, f"{scenario}: not run, and in none of these figures")
    emit(config, f"written: {out / PAGE}, {REPORT}")
    if sample is not None:
        emit(config, f"set aside for a reader, {sample.status}, {report.unread} claims unread: {out / SAMPLE}")
