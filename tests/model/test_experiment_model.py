"""The experiment with the embedded model, on one small dossier: two documents of S-010, a new version, a revocation.

One claim a generation: what is asserted of generations holds of short ones, in a fraction of the time.
"""

from __future__ import annotations

import json
import re

import pytest
from support import embedded
from support.control import control
from support.experiments import Corpus

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]

KEPT = ("00", "08")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    embedded.require_model()
    gsum = Corpus(tmp_path_factory.mktemp("model") / "w", ["S-010"])
    _cut(gsum.root / "corpus/dossiers/S-010/dossier.toml")
    declarations = gsum.root / "BUILD.toml"
    fewer, count = re.subn(r"^max_claims = \d+$", "max_claims = 1", declarations.read_text(), flags=re.MULTILINE)
    assert count == 1
    declarations.write_text(fewer)
    edits = gsum.root / "corpus/edits.toml"
    text = re.sub(r'"reduce-0\d", ', "", edits.read_text()).replace("leaf-08", "leaf-01")
    first, _, *others = text.split("[[mutations.steps]]")[1:]
    edits.write_text("[[mutations.steps]]".join([text.partition("[[mutations.steps]]")[0], first, *others]))
    ran = gsum.experiment("run", "mutations", "--toolchain", "smollm2", "--out", "out", "--json")
    assert ran.code == 0, ran.err
    reported = gsum.experiment("report", "out", "--json")
    assert reported.code == 0, reported.err
    return gsum, reported.document["report"]


def _cut(manifest):
    head, *entries = manifest.read_text().split("[[documents]]")
    kept = [entry for entry in entries if re.search(r'id = "D-10-(\d\d)"', entry)[1] in KEPT]
    manifest.write_text("[[documents]]".join([head, *kept]))


def test_counters_pairs_and_token_ids_are_as_with_the_fake(finished):
    _, report = finished
    section = report["mutations"]
    incremental, full = section["counters"]["incremental"], section["counters"]["full"]
    assert (incremental["recomputed"], incremental["hits"], incremental["ineligible"]) == (4, 2, 1)
    assert incremental["model_calls"] + incremental["cut_off"] == 3
    assert (full["recomputed"], full["model_calls"], full["ineligible"]) == (6, 5, 1)
    assert (report["pairs"], report["equal_pairs"], report["equal_token_pairs"]) == (2, 2, 2)
    assert section["compared"]["generations_compared"] == 5
    assert [stage["refused_stale"] for stage in section["stages"]] == [0, 1, 1]


def test_every_reference_is_valid_and_the_control_agrees(finished):
    gsum, report = finished
    totals = {(g["group"], g["system"]): g["total"] for g in report["mutations"]["groups"]}
    for total in totals.values():
        assert total["counts"]["reference_valid"] == total["counts"]["claims"]
    found = control(gsum.root / "out/mutations")
    assert found["incremental"] == [stage["incremental"] for stage in report["mutations"]["stages"]]
    counts = sum((part[1] for part in found["quality"][1::2]), type(found["quality"][0][1])())
    assert {name: totals["mutations-test", "incremental"]["counts"][name] for name in counts} == counts


def test_times_are_observed_and_apart_from_the_record(finished):
    gsum, report = finished
    took = report["mutations"]["took"]["full"]
    assert took["executions"] == 5
    assert took["model_seconds"] > 0
    assert took["forced"] + took["sampled"] == report["mutations"]["counters"]["full"]["new_tokens"]
    for file in (gsum.root / "out").rglob("record.json"):
        assert "seconds" not in json.dumps(json.loads(file.read_bytes()))
