"""Audits at the command line: built and shown like any target, and what they hold is never a summary's text."""

from __future__ import annotations

import pytest
from support.cli import Gsum
from support.gold import EVAL, labels_of
from support.workspaces import make_dossier


@pytest.fixture
def gsum(tmp_path):
    gsum = Gsum(tmp_path / "w", {"S-1": 2})
    with (gsum.root / "BUILD.toml").open("a") as file:
        file.write(EVAL)
    labels_of(gsum.root, "S-1")
    return gsum


def test_an_audit_is_shown_as_counts_and_ratios(gsum):
    assert gsum("build", "//eval:all").code == 0
    shown = gsum("show", "//eval:S-1")
    assert shown.code == 0
    lines = dict(line.split(None, 1) for line in shown.out.splitlines() if len(line.split(None, 1)) == 2)
    assert (lines["claims"], lines["supported"], lines["expected"], lines["recall"]) == ("4", "4", "4", "1.0000")
    assert "March" not in shown.out
    document = gsum("show", "//eval:S-1", "--json").document
    assert document["audit"]["counts"]["correct"] == 4
    assert document["claims"] == []


def test_an_audit_is_stale_with_its_summary(gsum):
    gsum("build", "//eval:all")
    edited = gsum("doc", "activate", "//dossier:S-1", "D-00", "--version", "2")
    assert edited.code == 0
    refused = gsum("show", "//eval:S-1")
    assert refused.code == 4
    assert "STALE" in refused.err
    assert gsum("explain-miss", "//eval:S-1").code == 0
    assert "STALE       //eval:S-1/root" in gsum("status", "//eval:...").out


def test_gold_is_a_node_of_the_graph_that_only_the_audit_depends_on(gsum):
    above = gsum("query", "rdeps //labels:S-1/S-1").out.split()
    assert set(above) == {"//eval:S-1/root", "//eval-baseline:S-1/root", "//labels:S-1/S-1"}
    assert "//labels:S-1/S-1" in gsum("query", "deps //eval:S-1/root").out
    assert "//labels" not in gsum("query", "deps(//dossier:...) + deps(//baseline:...)").out


def test_an_edit_of_gold_is_seen_by_the_next_build(gsum):
    gsum("build", "//...")
    file = gsum.root / "corpus/labels/S-1.json"
    file.write_text(file.read_text().replace("Hall 1", "Hall 77"))
    document = gsum("build", "//...", "--json").document
    assert document["recomputed"] == ["//eval:S-1/root", "//eval-baseline:S-1/root"]
    assert gsum("build", "//...", "--json").document["recomputed"] == []


def test_missing_gold_stops_no_edit_and_no_build_of_summaries(gsum):
    labels_of(gsum.root, "S-1", versions=("1",))
    assert gsum("doc", "activate", "//dossier:S-1", "D-00", "--version", "2").code == 0
    assert gsum("build", "//dossier:all").code == 0
    refused = gsum("build", "//eval:all")
    assert refused.code == 3
    assert "misses version `2` of document `D-00`" in refused.err


@pytest.fixture(params=["missing", "malformed", "misses a version"])
def without_gold(gsum, request):
    """Two dossiers, all of them built; then the gold of one of them is spoilt."""
    make_dossier(gsum.root, "S-2", 2)
    labels_of(gsum.root, "S-2")
    assert gsum("build", "//...").code == 0
    file = gsum.root / "corpus/labels/S-1.json"
    if request.param == "missing":
        file.unlink()
    elif request.param == "malformed":
        file.write_text("{")
    else:
        labels_of(gsum.root, "S-1", versions=("2",))
    return gsum


def test_unusable_gold_of_one_dossier_stops_no_look_at_another_target(without_gold):
    gsum = without_gold
    key = gsum("key", "//dossier:S-1/leaf-00").out.strip()
    assert b'"kind":"map"' in gsum("cat", key).raw
    assert gsum("query", "stale(//dossier:all)").code == 0
    assert gsum("query", "cached(//eval:S-2)").out == "//eval:S-2/root\n"
    assert gsum("query", "generations(//dossier:S-1/...)").code == 0
    assert gsum("query", "uncited(//corpus:S-1/D-00)").code == 0
    assert gsum("query", "cost(//dossier:all)").code == 0
    gsum("doc", "activate", "//dossier:S-1", "D-00", "--version", "2")
    assert gsum("query", "stale(//dossier:S-1)").out == "//dossier:S-1/root\n"


def test_what_asks_for_the_state_of_an_audit_without_gold_says_how_to_leave_it_out(without_gold):
    gsum = without_gold
    asked = (("status", "//..."), ("build", "//..."), ("query", "stale(//eval:all)"), ("query", "cost(//...)"))
    for command in asked:
        refused = gsum(*command)
        assert refused.code == 3, command
        assert "leave audits out: name" in refused.err, command
    assert gsum("status", "//dossier:...").code == 0


def test_cat_shows_an_audit_s_result_while_all_below_may_be_read(gsum):
    gsum("build", "//eval:all")
    result = gsum("show", "//eval:S-1", "--json").document["result"]
    assert b'"correct":4' in gsum("cat", result).raw
    gsum("doc", "revoke", "//dossier:S-1", "D-00")
    assert gsum("cat", result).code != 0
