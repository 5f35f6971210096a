"""Paired comparison of two runs: cells counted by hand, p-values by another formula, refusals."""

from __future__ import annotations

import builtins
import hashlib
import json
import math
import re
import shutil
import sys

import pytest
from support.cli import fake_toolchain
from support.experiments import Corpus

from gsum.cli import experiment_compare
from gsum.engine.experiment import compare
from gsum.store.errors import GsumError

FEWER = ("--max-claims", "1")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs over the same dossiers: A with up to four claims, B with one claim a node."""
    gsum = Corpus(tmp_path_factory.mktemp("compare") / "w", ["S-010", "S-011"])
    other = fake_toolchain(gsum.log, *FEWER).replace("toolchain.fake", "toolchain.fewer").replace("fake-1", "fewer-1")
    with (gsum.root / "BUILD.toml").open("a") as file:
        file.write(other)
    for name in ("fake", "fewer"):
        ran = gsum.experiment("run", "mutations", "--toolchain", name, "--out", name)
        assert ran.code == 0, ran.err
    return gsum


def document(gsum, a, b):
    found = gsum.experiment("compare", a, b, "--json")
    assert found.code == 0, found.err
    return found.document["comparison"]


def test_cells_are_counted_over_roots_and_over_gold_facts(runs):
    tests = {(t["stage"], t["measure"]): t for t in document(runs, "fake", "fewer")["tests"]}
    assert len(tests) == 8
    for stage, facts in (("initial", 96), ("mutation-1", 96), ("mutation-2", 88), ("mutation-3", 80)):
        served = tests[stage, "root served"]
        assert (served["units"], served["both"], served["p"]) == (2, 2, 1.0)
        recalled = tests[stage, "gold fact recalled"]
        cells = [recalled[name] for name in ("both", "only_a", "only_b", "neither")]
        assert (recalled["units"], sum(cells)) == (facts, facts)
        assert cells[0] + cells[1] == 8
        assert cells[0] + cells[2] == 2
        assert recalled["a"]["share"] == 8 / facts
        assert recalled["a"]["low"] < 8 / facts < recalled["a"]["high"]


def test_p_is_the_exact_binomial_of_the_discordant_pairs_and_holm_steps_down(runs):
    tests = document(runs, "fake", "fewer")["tests"]
    for test in tests:
        n, k = test["only_a"] + test["only_b"], min(test["only_a"], test["only_b"])
        exact = min(1.0, 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n) if n else 1.0
        assert test["p"] == pytest.approx(exact)
    ordered = sorted(tests, key=lambda test: test["p"])
    running = 0.0
    for place, test in enumerate(ordered):
        running = max(running, min(1.0, (len(tests) - place) * test["p"]))
        assert test["p_holm"] == pytest.approx(running)
    assert any(test["p"] < 0.05 for test in tests)


def test_sides_change_places_with_the_runs(runs):
    forth, back = (document(runs, *pair)["tests"] for pair in (("fake", "fewer"), ("fewer", "fake")))
    for one, other in zip(forth, back, strict=True):
        assert (one["only_a"], one["only_b"], one["p"]) == (other["only_b"], other["only_a"], other["p"])
    same = document(runs, "fake", "fake")["tests"]
    assert all(test["only_a"] == test["only_b"] == 0 and test["a_of_discordant"] is None for test in same)


def test_the_table_shows_counts_beside_every_p(runs):
    shown = runs.experiment("compare", "fake", "fewer")
    assert shown.code == 0
    header = next(line for line in shown.out.splitlines() if line.startswith("stage"))
    assert re.split(r"  +", header) == [
        "stage", "measure", "pairs", "both", "only A", "only B", "neither", "A", "B", "p", "p (Holm)",
    ]  # fmt: skip
    assert "intervals at 95%" in shown.out


def test_runs_over_other_dossiers_or_gold_are_not_paired(runs, tmp_path):
    few = runs.experiment("run", "mutations", "--dossiers", "S-010", "--out", str(tmp_path / "few"))
    assert few.code == 0
    refused = runs.experiment("compare", "fake", str(tmp_path / "few"))
    assert refused.code == 2
    assert "they differ in  dossiers" in refused.err
    other = Corpus(tmp_path / "w", ["S-010", "S-011"])
    file = other.root / "corpus/labels/S-011.json"
    labels = json.loads(file.read_bytes())
    labels["documents"][2]["versions"][0]["facts"][0]["value"] = "elsewhere"
    file.write_text(json.dumps(labels))
    assert other.experiment("run", "mutations", "--out", str(tmp_path / "gold")).code == 0
    refused = runs.experiment("compare", "fake", str(tmp_path / "gold"))
    assert refused.code == 2
    assert "the gold of S-011" in refused.err


def test_runs_over_other_texts_are_not_paired_though_the_facts_are_the_same(runs, tmp_path):
    other = Corpus(tmp_path / "w", ["S-010", "S-011"])
    text = other.root / "corpus/dossiers/S-011/documents/D-11-03.v1.txt"
    text.write_text(text.read_text() + "The window was left open.\n")
    file = other.root / "corpus/labels/S-011.json"
    labels = json.loads(file.read_bytes())
    (labelled,) = [document for document in labels["documents"] if document["document"] == "D-11-03"]
    labelled["versions"][0]["text_sha256"] = hashlib.sha256(text.read_bytes()).hexdigest()
    file.write_text(json.dumps(labels))
    assert other.experiment("run", "mutations", "--out", str(tmp_path / "text")).code == 0
    refused = runs.experiment("compare", "fake", str(tmp_path / "text"))
    assert refused.code == 2
    assert "they differ in  what `//dossier:S-011/leaf-03` read in stage `initial`" in refused.err


def test_two_prompts_are_compared_over_the_same_texts(runs, tmp_path):
    other = Corpus(tmp_path / "w", ["S-010", "S-011"], *FEWER)
    build = other.root / "BUILD.toml"
    build.write_text(build.read_text().replace('reduce_prompt = "reduce-v1"', 'reduce_prompt = "reduce-v2"'))
    assert other.experiment("run", "mutations", "--out", str(tmp_path / "prompt")).code == 0
    found = document(runs, "fake", str(tmp_path / "prompt"))
    assert found["a"]["toolchain_key"] == found["b"]["toolchain_key"]
    assert found["a"]["workspace"] != found["b"]["workspace"]
    recalled = [test for test in found["tests"] if test["measure"] == "gold fact recalled"]
    assert [(test["only_a"] > 0, test["only_b"]) for test in recalled] == [(True, 0)] * 4


def test_an_unfinished_run_is_not_compared(runs, tmp_path):
    shutil.copytree(runs.root / "fewer", tmp_path / "cut")
    shutil.rmtree(tmp_path / "cut/mutations/stages/03-mutation-3")
    refused = runs.experiment("compare", "fake", str(tmp_path / "cut"))
    assert refused.code == 4
    assert "mutation-3" in refused.err


def test_without_the_extra_the_error_says_what_to_install(runs, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.partition(".")[0] in ("scipy", "statsmodels"):
            raise ModuleNotFoundError(name=name)
        return real(name, *rest, **more)

    for name in [name for name in sys.modules if name.partition(".")[0] in ("scipy", "statsmodels")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(builtins, "__import__", without)
    refused = runs.experiment("compare", "fake", "fewer")
    assert refused.code == 2
    assert "pip install 'gsum[stats]'" in refused.err
    assert issubclass(compare.ExtraMissing, GsumError)
    assert experiment_compare.command.name == "compare"
