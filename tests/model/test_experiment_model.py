"""The experiment with the embedded model on two whole test dossiers: 32 first generations, 14 after edits, 90 full."""

from __future__ import annotations

import json

import pytest
from support import embedded
from support.control import control
from support.experiments import Corpus

pytestmark = [pytest.mark.model, pytest.mark.timeout(1500)]

TEST = ("S-010", "S-011")
N = len(TEST)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    embedded.require_model()
    gsum = Corpus(tmp_path_factory.mktemp("model") / "w", TEST)
    ran = gsum.experiment("run", "mutations", "--toolchain", "smollm2", "--out", "out", "--json")
    assert ran.code == 0, ran.err
    reported = gsum.experiment("report", "out", "--json")
    assert reported.code == 0, reported.err
    return gsum, reported.document["report"]


def test_counters_are_those_of_the_reference(finished):
    _, report = finished
    section = report["mutations"]
    incremental, full = section["counters"]["incremental"], section["counters"]["full"]
    assert (incremental["recomputed"], incremental["hits"], incremental["ineligible"]) == (9 * N, 39 * N, 2 * N)
    assert (full["recomputed"], full["hits"], full["ineligible"]) == (48 * N, 0, 3 * N)
    cut_off = [label for stage in section["stages"] for label in stage["cut_off"]]
    assert incremental["cut_off"] == len(cut_off)
    assert incremental["model_calls"] == 7 * N - len(cut_off)
    assert (full["model_calls"], full["cut_off"]) == (45 * N, 0)
    assert section["initial"]["model_calls"] == 16 * N


def test_incremental_and_full_are_equal_to_the_token(finished):
    _, report = finished
    assert (report["pairs"], report["equal_pairs"], report["equal_token_pairs"]) == (3 * N, 3 * N, 3 * N)
    compared = report["mutations"]["compared"]
    assert compared["generations_compared"] == compared["generations_equal"] == 45 * N
    assert report["mutations"]["differences"] == []
    assert [stage["refused_stale"] for stage in report["mutations"]["stages"]] == [0, N, N, N]


def test_roots_are_as_faithful_as_the_grammar_promises(finished):
    _, report = finished
    totals = {(g["group"], g["system"]): g["total"] for g in report["mutations"]["groups"]}
    edited = totals["mutations-test", "incremental"]
    assert edited["statuses"] == {"VALID": 3 * N}
    assert edited["counts"]["claims"] == edited["counts"]["supported"] == edited["counts"]["correct"] == 12 * N
    extractive = totals["mutations-test", "extractive"]["counts"]
    assert extractive["supported"] == extractive["correct"] == extractive["expected"] == 132 * N


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
    assert took["executions"] == 45 * N
    assert took["model_seconds"] > 0
    assert took["forced"] + took["sampled"] == report["mutations"]["counters"]["full"]["new_tokens"]
    for file in (gsum.root / "out").rglob("record.json"):
        assert "seconds" not in json.dumps(json.loads(file.read_bytes()))
