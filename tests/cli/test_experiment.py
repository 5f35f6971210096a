"""The reference experiment on the fake toolchain: two test dossiers of the real corpus, one of development, S-037."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections import Counter

import pytest
from support.control import control
from support.experiments import Corpus

REPLACED = "CAST(replace(CAST({} AS TEXT), 'e', 'E') AS BLOB)"
TEST, DEVELOPMENT, EXERCISE = ("S-010", "S-011"), "S-030", "S-037"
ALL = ",".join((*TEST, DEVELOPMENT))
N = len(TEST)


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def declared(root):
    """The files of a workspace without its store."""
    return {name: data for name, data in tree(root).items() if not name.startswith(".gsum")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run of both scenarios, reported; tests must not change it."""
    gsum = Corpus(tmp_path_factory.mktemp("experiment") / "w", (*TEST, DEVELOPMENT, EXERCISE))
    before = declared(gsum.root)
    ran = gsum.experiment("run", "mutations", "--dossiers", ALL, "--out", "out", "--json")
    assert ran.code == 0, ran.err
    gsum.stages = ran.document["stages"]
    gsum.mutation_calls = gsum.calls
    exercise = gsum.experiment("run", "exercise", "--out", "out", "--json")
    assert exercise.code == 0, exercise.err
    gsum.exercise = exercise.document["stages"]
    reported = gsum.experiment("report", "out", "--json")
    assert reported.code == 0, reported.err
    gsum.report = reported.document["report"]
    gsum.before = before
    return gsum


def record(gsum, scenario, stage):
    (folder,) = (gsum.root / "out" / scenario / "stages").glob(f"*-{stage}")
    return json.loads((folder / "record.json").read_bytes())


# ---- what it must show, for two of the twenty dossiers ----


def test_counters_are_those_of_the_reference(finished):
    counters = finished.report["mutations"]["counters"]
    incremental, full = counters["incremental"], counters["full"]
    assert (incremental["recomputed"], incremental["hits"], incremental["ineligible"]) == (9 * N, 39 * N, 2 * N)
    assert (full["recomputed"], full["hits"], full["ineligible"]) == (48 * N, 0, 3 * N)
    cut_off = [label for stage in finished.report["mutations"]["stages"] for label in stage["cut_off"]]
    assert incremental["cut_off"] == len(cut_off)
    assert incremental["model_calls"] == 7 * N - len(cut_off)
    assert full["model_calls"] == 45 * N
    assert finished.report["mutations"]["initial"]["model_calls"] == 16 * (N + 1)
    assert incremental["pure"] == full["pure"] == full["cut_off"] == 0


def test_the_model_was_called_as_often_as_the_counters_say(finished):
    counters = finished.report["mutations"]["counters"]
    wanted = sum(counters[build]["model_calls"] for build in ("incremental", "full"))
    assert finished.mutation_calls == wanted + finished.report["mutations"]["initial"]["model_calls"]
    assert finished.calls == finished.report["generations"]


def test_each_edit_recomputes_the_parts_it_declares(finished):
    parts = {
        "mutation-1": {"leaf-00", "reduce-00", "root"},
        "mutation-2": {"leaf-04", "reduce-01", "root"},
        "mutation-3": {"leaf-08", "reduce-02", "root"},
    }
    for stage, wanted in parts.items():
        nodes = record(finished, "mutations", stage)["incremental"]["nodes"]
        for dossier in TEST:
            ran = {
                n["label"].rpartition("/")[2] for n in nodes if f":{dossier}/" in n["label"] and n["how"] != "cached"
            }
            assert ran == wanted
        assert record(finished, "mutations", stage)["unexpected"] == []


def test_all_pairs_are_equal_in_keys_statuses_claims_and_token_ids(finished):
    report = finished.report
    assert (report["pairs"], report["equal_pairs"], report["equal_token_pairs"]) == (3 * N + 2, 3 * N + 2, 3 * N + 2)
    compared = report["mutations"]["compared"]
    assert compared["nodes"] == 48 * N
    assert compared["generations_compared"] == compared["generations_equal"] == 45 * N
    assert report["mutations"]["differences"] == []


def test_the_old_summary_is_refused_as_stale_before_every_rebuild(finished):
    for scenario, stages, dossiers in (
        ("mutations", ("mutation-1", "mutation-2", "mutation-3"), TEST),
        ("exercise", ("exercise-1", "exercise-2"), (EXERCISE,)),
    ):
        for stage in stages:
            refusals = record(finished, scenario, stage)["refusals"]
            assert [(r["label"], r["state"], r["exit_code"]) for r in refusals] == [
                (f"//dossier:{dossier}/root", "STALE", 4) for dossier in dossiers
            ]
            assert all(r["key"] != r["previous"] for r in refusals)


def test_the_extractive_baseline_finds_every_fact(finished):
    groups = {(g["group"], g["system"]): g["total"] for g in finished.report["mutations"]["groups"]}
    for name, summaries, facts in (
        ("initial-development", 1, 48),
        ("initial-test", N, 48 * N),
        ("mutations-test", 3 * N, 132 * N),
    ):
        found = groups[name, "extractive"]
        counts = found["counts"]
        assert found["statuses"] == {"VALID": summaries}
        assert {counts[key] for key in ("claims", "supported", "predicted", "correct", "expected")} == {facts}
        assert found["ratios"]["precision"] == found["ratios"]["recall"] == "1.0000"
    assert groups["mutations-test", "full"] == groups["mutations-test", "incremental"]


def test_the_exercise_changes_one_leaf_then_only_the_reductions(finished):
    first, second = finished.exercise[1]["incremental"], finished.exercise[2]["incremental"]
    assert (first["recomputed"], first["hits"]) == (3, 13)
    assert (second["recomputed"], second["hits"], second["model_calls"]) == (4, 12, 4)
    leaves = [n for n in record(finished, "exercise", "exercise-2")["incremental"]["nodes"] if "/leaf-" in n["label"]]
    assert [node["how"] for node in leaves] == ["cached"] * 12
    assert finished.report["exercise"]["main_unchanged"] is True
    assert finished.report["exercise"]["compared"]["equal"] == 2


def test_the_workspace_itself_is_not_touched(finished):
    now = {name: data for name, data in declared(finished.root).items() if not name.startswith("out/")}
    assert now == finished.before


@pytest.mark.parametrize("scenario", ["mutations", "exercise"])
def test_an_independent_control_agrees_with_the_report(finished, scenario):
    found = control(finished.root / "out" / scenario)
    report = finished.report[scenario]
    assert found["incremental"] == [stage["incremental"] for stage in report["stages"]]
    assert found["full"] == [stage["full"] for stage in report["stages"][1:]]
    marks = [mark for stage in found["pairs"] for nodes in stage.values() for mark in nodes]
    assert len(marks) == report["compared"]["nodes"]
    assert sum(len(stage) for stage in found["pairs"]) == report["compared"]["pairs"] == report["compared"]["equal"]
    assert all(equal and tokens for equal, tokens in marks)
    mutated = [part for part in found["quality"] if part[0] > 0]
    later = {"mutations": "mutations-test", "exercise": "exercise"}[scenario]
    totals = {g["system"]: g["total"] for g in report["groups"] if g["group"] == later}
    for place, system in enumerate(("incremental", "full")):
        counts = sum((part[1] for part in mutated[place::2]), Counter())
        statuses = sum((part[2] for part in mutated[place::2]), Counter())
        assert {name: totals[system]["counts"][name] for name in counts} == counts
        assert totals[system]["statuses"] == statuses
    assert len(mutated) == 2 * report["compared"]["pairs"] // len(report["declaration"]["mutated"])
    first = sum((Counter(g["total"]["counts"]) for g in report["groups"] if g["system"] == "model"), Counter())
    assert {name: first[name] for name in found["quality"][0][1]} == found["quality"][0][1]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            f"UPDATE entry SET preimage = {REPLACED.format('preimage')}",
            "record of kind action does not hash to its key",
        ),
        (f"UPDATE blob SET data = {REPLACED.format('data')}", "a blob does not hash to its digest"),
        (
            "UPDATE entry SET status = 'INVALID' WHERE label LIKE '%/root'",
            "an entry has another status than its result",
        ),
        (
            "UPDATE entry SET generation = (SELECT generation FROM entry WHERE generation NOT NULL LIMIT 1)"
            " WHERE generation NOT NULL",
            "a result is not what was generated",
        ),
    ],
)
def test_the_control_sees_what_was_tampered_with(finished, tmp_path, statement, message):
    copy = tmp_path / "mutations"
    shutil.copytree(finished.root / "out/mutations", copy)
    database = sqlite3.connect(copy / "store/store.sqlite")
    assert database.execute(statement).rowcount > 0
    database.commit()
    database.close()
    with pytest.raises(AssertionError, match=message):
        control(copy)


# ---- the report, the page, the sample ----


def test_the_page_needs_nothing_but_itself(finished):
    page = (finished.root / "out/report.html").read_text()
    assert not re.search(r"<script|<link|<img|src=|href=|@import|url\(|https?:", page)
    assert page.count("HISTORICAL") == 3
    assert "PENDING" in page
    assert "0.5118" in page
    assert "2,640" in page


def test_the_report_on_disk_is_the_one_printed(finished):
    assert json.loads((finished.root / "out/report.json").read_bytes()) == finished.report
    assert finished.report["schema"] == 1


def test_all_claims_of_the_sample_are_counted_as_unread(finished):
    sample = json.loads((finished.root / "out/sample.json").read_bytes())
    assert finished.report["unread"] == sum(len(item["claims"]) for item in sample["items"]) == 16
    assert "Nobody has read these 16 claims" in (finished.root / "out/report.html").read_text()


def test_a_scenario_that_was_not_run_is_named_and_one_that_was_is_not(finished, tmp_path):
    assert finished.report["not_run"] == []
    shutil.copytree(finished.root / "out/mutations", tmp_path / "out/mutations")
    reported = finished.experiment("report", str(tmp_path / "out"), "--json").document["report"]
    assert (reported["exercise"], reported["not_run"], reported["pairs"]) == (None, ["exercise"], 3 * N)
    page = (tmp_path / "out/report.html").read_text()
    assert "<h2>Exercise</h2>\n<p><b>Not run</b>" in page
    assert "Not run" not in (finished.root / "out/report.html").read_text()
    assert "exercise: not run" in finished.experiment("report", str(tmp_path / "out")).out


def test_the_sample_holds_all_root_claims_under_their_snapshots(finished):
    sample = json.loads((finished.root / "out/sample.json").read_bytes())
    assert (sample["dossier"], sample["status"]) == ("S-010", "PENDING")
    assert [item["when"] for item in sample["items"]] == ["HISTORICAL", "HISTORICAL", "HISTORICAL", "LAST STAGE"]
    for item, stage in zip(sample["items"], ("initial", "mutation-1", "mutation-2", "mutation-3"), strict=True):
        nodes = {n["label"]: n for n in record(finished, "mutations", stage)["incremental"]["nodes"]}
        assert item["key"] == nodes["//dossier:S-010/root"]["key"]
        assert len(item["claims"]) == 4
        assert item["withheld"] == 0
    dates = [
        c["values"]["value"] for i in sample["items"][:2] for c in i["claims"] if c["values"]["field"] == "delivery"
    ]
    assert dates[0] != dates[1]


def test_a_review_is_bound_to_the_sample_s_bytes_and_changes_no_computed_file(finished):
    out = finished.root / "out"
    before = tree(out)
    reviewed = finished.experiment("review", "out/sample.json", "--by", "assistant", "--note", "four of four", "--json")
    assert reviewed.code == 0
    after = tree(out)
    assert {name: data for name, data in after.items() if not name.endswith(".reviews.json")} == before
    assert finished.experiment("review", "out/sample.json", "--by", "human", "--note", "agreed").code == 0
    kept = json.loads((out / "sample.json.reviews.json").read_bytes())["reviews"]
    assert [(one["by"], one["note"], one["digest"]) for one in kept] == [
        ("assistant", "four of four", finished.report["sample"]),
        ("human", "agreed", finished.report["sample"]),
    ]
    (out / "sample.json.reviews.json").unlink()
    assert finished.experiment("review", "out/report.json", "--by", "human", "--note", "x").code == 2
    assert finished.experiment("review", "out/sample.json", "--by", "human", "--note", " ").code == 2
    assert finished.experiment("review", "out/sample.json", "--by", "cat", "--note", "x").code == 2


def test_claims_whose_sources_may_not_be_read_now_are_withheld(tmp_path):
    gsum = Corpus(tmp_path / "w", ["S-010"])
    assert gsum.experiment("run", "mutations").code == 0
    gsum("doc", "revoke", "//dossier:S-010", "D-10-00")
    reported = gsum.experiment("report")
    assert reported.code == 0
    sample = json.loads((gsum.root / ".gsum/experiment/sample.json").read_bytes())
    assert [(len(item["claims"]), item["withheld"]) for item in sample["items"]] == [(0, 4)] * 4
    page = (gsum.root / ".gsum/experiment/report.html").read_text()
    assert "552 units" not in page
    assert "4 withheld" in page
