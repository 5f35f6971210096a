"""What the experiment's commands print as JSON, the schema of the report, and what a page does with hostile text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from support.cli import fake_toolchain
from support.documented import check
from support.experiments import Corpus

from gsum.engine.experiment.page import render
from gsum.engine.experiment.report import REPORT_SCHEMA, Report
from gsum.engine.experiment.sample import Sample, SampleClaim, SampleEvidence
from gsum.engine.experiment.schema import report_schema
from gsum.store.canonical import canonical_json
from gsum.store.digests import blob_digest

GOLDEN = Path(__file__).parents[1] / "golden/experiment_report.json"


@pytest.fixture(scope="module")
def gsum(tmp_path_factory):
    gsum = Corpus(tmp_path_factory.mktemp("json") / "w", ["S-010"])
    other = fake_toolchain(gsum.log, "--max-claims", "1").replace("toolchain.fake", "toolchain.fewer")
    with (gsum.root / "BUILD.toml").open("a") as file:
        file.write(other.replace("fake-1", "fewer-1"))
    for name in ("fake", "fewer"):
        gsum.ran = gsum.experiment("run", "mutations", "--toolchain", name, "--out", name, "--json").document
    gsum.reported = gsum.experiment("report", "fake", "--json").document
    return gsum


def test_every_document_holds_what_is_documented(gsum):
    check("experiment run", gsum.ran)
    check("experiment report", gsum.reported)
    reviewed = gsum.experiment("review", "fake/sample.json", "--by", "human", "--note", "read", "--json").document
    check("experiment review", reviewed)
    assert gsum.ran["model_calls"] > 0
    check("experiment compare", gsum.experiment("compare", "fake", "fewer", "--json").document)


def test_the_schema_of_the_report_and_its_version_change_together():
    """Bump REPORT_SCHEMA when a key changes its meaning or goes; pin the digest again, with a reason, for a new one."""
    pinned = json.loads(GOLDEN.read_bytes())
    now = {"version": REPORT_SCHEMA, "digest": blob_digest(canonical_json(report_schema()))}
    assert now == {name: pinned[name] for name in now}
    assert pinned["reason"].strip()


def test_a_report_is_read_back_by_its_type(gsum):
    report = msgspec.convert(gsum.reported["report"], Report)
    assert json.loads(msgspec.json.encode(report)) == gsum.reported["report"]
    printed = gsum.experiment("report", "--schema")
    assert printed.code == 0
    assert json.loads(printed.out) == report_schema()


def test_what_documents_say_is_text_on_the_page_and_never_markup(gsum):
    report = msgspec.convert(gsum.reported["report"], Report)
    sample = msgspec.json.decode((gsum.root / "fake/sample.json").read_bytes(), type=Sample)
    hostile = "<script>alert(1)</script><img src=x onerror=y>&\"'"
    evidence = SampleEvidence("D@1:0:1", hostile, hostile, 0, 1, hostile)
    claim = SampleClaim({"subject": hostile}, (evidence,))
    item = msgspec.structs.replace(sample.items[0], claims=(claim,), title=hostile)
    page = render(report, msgspec.structs.replace(sample, items=(item,), dossier=hostile))
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 6


def test_the_head_of_a_column_of_figures_stands_above_its_figures(gsum):
    page = (gsum.root / "fake/report.html").read_text()
    tables = [re.findall(r"<tr>(.*?)</tr>", table) for table in re.findall(r"<table>(.*?)</table>", page, re.DOTALL)]
    assert len(tables) >= 3
    for head, *rows in tables:
        cells = [re.findall(r'<td( class="n")?>', row) for row in rows]
        assert re.findall(r'<th( class="n")?>', head) == [
            ' class="n"' if all(column) else "" for column in zip(*cells, strict=True)
        ]


def test_no_figure_is_shown_where_none_is_known(gsum):
    """The reference gives reference-valid claims for the mutations alone."""
    groups = {(g["group"], g["system"]): g["reference"] for g in gsum.reported["report"]["mutations"]["groups"]}
    assert groups["initial-test", "model"]["reference_valid"] is None
    assert groups["mutations-test", "incremental"]["reference_valid"] == 132
    assert groups["mutations-test", "full"] is None
    assert groups["mutations-test", "incremental"]["recall"] == "0.0246"
