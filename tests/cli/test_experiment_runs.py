"""Runs of the experiment that are stopped, killed, out of budget, or refused. The fake toolchain, the real corpus."""

from __future__ import annotations

import json
import re
import shlex
import signal
import sqlite3
import time

import pytest
from support.experiments import Corpus
from support.workspaces import edit_build


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# ---- stopping and going on ----


def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes(tmp_path):
    gsum = Corpus(tmp_path / "w", ["S-010", "S-037"], "--slow", "0.01")
    for scenario in ("mutations", "exercise"):
        assert gsum.experiment("run", scenario, "--dossiers", "", "--out", "whole").code == 0
    whole = gsum.calls
    for scenario, places in (("mutations", (3, 12, 20, 31, 60)), ("exercise", (5, 19, 30))):
        for calls in places:
            _kill_after(gsum, gsum.calls, calls, "experiment", "run", scenario, "--out", "stopped")
        finished = gsum.experiment("run", scenario, "--out", "stopped")
        assert finished.code == 0, finished.err
    assert _compared(gsum.root / "stopped") == _compared(gsum.root / "whole")
    assert whole < gsum.calls <= 2 * whole + 8 * 2


def _kill_after(gsum, before, calls, *arguments):
    """Start a run and kill it once the model has had `calls` more requests than at the last start, or it ended."""
    process = gsum.start(*arguments)
    end = time.monotonic() + 30
    while process.poll() is None and gsum.calls - before < calls % 13 + 1 and time.monotonic() < end:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def _compared(folder):
    names = ("run.json", "record.json", "before.json")
    return {name: data for name, data in tree(folder).items() if name.rpartition("/")[2] in names}


def test_an_interrupted_run_keeps_what_is_finished_and_goes_on(tmp_path):
    gsum = Corpus(tmp_path / "w", ["S-010"], "--slow", "0.1")
    process = gsum.start("experiment", "run", "mutations")
    end = time.monotonic() + 30
    while gsum.calls < 5 and time.monotonic() < end:
        time.sleep(0.01)
    other = gsum.experiment("run", "mutations")
    assert other.code == 1
    assert "another process runs in this folder" in other.err
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the same command goes on from there" in said
    made = gsum.calls
    assert gsum.experiment("run", "mutations", "--max-generations", "1").code == 9
    assert gsum.calls == made + 1


def test_a_budget_of_model_calls_ends_a_run_cleanly_and_is_never_exceeded(tmp_path):
    gsum = Corpus(tmp_path / "w", ["S-010"])
    codes, calls = [], []
    while not codes or codes[-1] == 9:
        before = gsum.calls
        ran = gsum.experiment("run", "mutations", "--max-generations", "17")
        codes.append(ran.code)
        calls.append(gsum.calls - before)
    assert (codes, calls) == ([9, 9, 9, 0], [17, 17, 17, 17])
    assert sum(calls) == 16 + 7 + 45
    assert gsum.experiment("run", "mutations", "--max-generations", "0").code == 0


def test_a_budget_of_seconds_ends_a_run_cleanly(tmp_path):
    gsum = Corpus(tmp_path / "w", ["S-010"], "--slow", "0.5")
    ran = gsum.experiment("run", "mutations", "--max-seconds", "3")
    assert ran.code == 9
    assert "the budget is reached" in ran.err
    made = gsum.calls
    assert 0 < made < 16
    assert gsum.experiment("run", "mutations", "--max-seconds", "0").code == 9
    assert gsum.calls == made
    kept = sqlite3.connect(gsum.root / ".gsum/experiment/mutations/store/store.sqlite")
    assert kept.execute("SELECT count(*) FROM execution").fetchone() == (made,)


def test_progress_says_where_a_run_is_and_how_long_it_may_take(tmp_path):
    gsum = Corpus(tmp_path / "w", ["S-010"])
    said = gsum.experiment("run", "mutations").err
    assert "stage 1 of 4, incremental: 0 of 16 targets" in said
    assert re.search(r"stage 4 of 4, full: 0 of 16 targets, at most [\d.]+ s left", said)


# ---- what is refused ----


def test_the_command_that_a_run_names_next_can_be_typed(tmp_path):
    gsum = Corpus(tmp_path / "w", ["S-010", "S-037"])
    run = gsum.experiment("run", "exercise", "--toolchain", "fake", "--out", "out", "-C", str(gsum.root))
    (line,) = [line for line in run.out.splitlines() if line.startswith("next: gsum ")]
    assert gsum(*shlex.split(line)[2:]).code == 0
    assert (gsum.root / "out/report.json").exists()


def test_a_report_of_an_unfinished_run_says_what_is_missing(tmp_path):
    gsum = Corpus(tmp_path / "w", ["S-010"])
    nothing = gsum.experiment("report", "out")
    assert nothing.code == 4
    assert "mutations, exercise" in nothing.err
    assert gsum.experiment("run", "mutations", "--out", "out", "--max-generations", "30").code == 9
    unfinished = gsum.experiment("report", "out", "--json")
    assert unfinished.code == 4
    assert unfinished.document["error"]["facts"]["missing stages"] == "mutation-1, mutation-2, mutation-3"
    assert not (gsum.root / "out/report.json").exists()


def test_a_run_folder_of_another_schema_is_refused(tmp_path):
    gsum = Corpus(tmp_path / "w", ["S-010"])
    gsum.experiment("run", "mutations", "--out", "out", "--max-generations", "1")
    file = gsum.root / "out/mutations/run.json"
    file.write_text(file.read_text().replace('"schema": 1', '"schema": 2'))
    for arguments in (("run", "mutations", "--out", "out"), ("report", "out")):
        refused = gsum.experiment(*arguments)
        assert refused.code == 4
        assert "it is of schema 2, and this version reads 1" in refused.err
    file.write_text("{")
    assert "it is not JSON" in gsum.experiment("report", "out").err


@pytest.mark.parametrize("change", ["text", "prompt", "toolchain", "edits"])
def test_a_run_goes_on_only_if_it_is_still_the_same(tmp_path, change):
    gsum = Corpus(tmp_path / "w", ["S-010"])
    gsum.experiment("run", "mutations", "--out", "out", "--max-generations", "1")
    if change == "text":
        with (gsum.root / "corpus/dossiers/S-010/documents/D-10-03.v2.txt").open("a") as file:
            file.write("More.\n")
    elif change == "prompt":
        file = gsum.root / "BUILD.toml"
        text, count = re.subn(r'^system = "(""\n?)?', r"\g<0>Now: ", file.read_text(), count=1, flags=re.MULTILINE)
        assert count == 1
        file.write_text(text)
    elif change == "toolchain":
        edit_build(gsum.root, 'identity = "fake-1"', 'identity = "fake-2"')
    else:
        with (gsum.root / "corpus/edits.toml").open("a") as file:
            file.write("# x\n")
    refused = gsum.experiment("run", "mutations", "--out", "out")
    assert refused.code == 4
    assert "this folder holds another run" in refused.err


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("document", "the labels file misses document `D-10-03`"),
        ("a later version", "the labels file misses version `2` of document `D-10-00`"),
    ],
)
def test_a_labels_file_that_misses_a_document_stops_a_run_before_the_model_is_asked(tmp_path, missing, message):
    gsum = Corpus(tmp_path / "w", ["S-010"])
    file = gsum.root / "corpus/labels/S-010.json"
    labels = json.loads(file.read_bytes())
    if missing == "document":
        del labels["documents"][3]
    else:
        del labels["documents"][0]["versions"][1]
    file.write_text(json.dumps(labels))
    refused = gsum.experiment("run", "mutations")
    assert refused.code == 3
    assert message in refused.err
    assert gsum.calls == 0


def test_gold_that_a_summary_can_reach_stops_a_run(tmp_path):
    gsum = Corpus(tmp_path / "w", ["S-010"])
    edit_build(gsum.root, 'rule = "summary_tree"\nsources = "corpus"', 'rule = "summary_tree"\nsources = "labels"')
    refused = gsum.experiment("run", "mutations")
    assert refused.code == 3
    edit_build(gsum.root, 'rule = "summary_tree"\nsources = "labels"', 'rule = "summary_tree"\nsources = "corpus"')
    _link(gsum, "D-10-01.v1.txt")
    refused = gsum.experiment("run", "mutations")
    assert refused.code == 3
    assert "which only audit rules may see" in refused.err
    assert gsum.calls == 0


def test_a_link_to_gold_in_a_version_that_an_edit_will_activate_is_not_copied(tmp_path):
    gsum = Corpus(tmp_path / "w", ["S-010"])
    _link(gsum, "D-10-00.v2.txt")
    refused = gsum.experiment("run", "mutations")
    assert refused.code == 3
    assert "`corpus/dossiers/S-010/documents/D-10-00.v2.txt` is a link or stands below one" in refused.err
    assert gsum.calls == 0


def _link(gsum, document):
    file = gsum.root / "corpus/dossiers/S-010/documents" / document
    file.unlink()
    file.symlink_to("../../../labels/S-010.json")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("run", "mutations", "--dossiers", "S-01"), 2, "there is no dossier `S-01`"),
        (("run", "mutations", "--dossiers", "S-030"), 2, "none of the dossiers is mutated"),
        (("run", "exercise", "--dossiers", "S-010"), 2, "the exercise is of dossier `S-037`"),
        (("run", "mutations", "--toolchain", "fakes"), 2, "toolchain `fakes` is not declared"),
        (("run", "mutations", "--package", "baseline"), 2, "there is no package of summaries `baseline`"),
        (("run", "mutations", "--edits", "none.toml"), 3, "edits file `none.toml` can't be read"),
        (("run", "wander"), 2, "wander"),
        (("compare", "nowhere", "nowhere"), 4, "there is no run of `mutations` to compare"),
        (("review", "nowhere.json", "--by", "human", "--note", "x"), 2, "`nowhere.json` can't be read"),
    ],
)
def test_what_can_t_be_run_is_refused(tmp_path, arguments, code, message):
    refused = Corpus(tmp_path / "w", ["S-010", "S-030", "S-037"]).experiment(*arguments)
    assert refused.code == code
    assert message in refused.err
    assert "Traceback" not in refused.err


def test_a_failed_action_stops_a_run_and_is_not_recorded(tmp_path):
    gsum = Corpus(tmp_path / "w", ["S-010"], "--error-at", "5")
    failed = gsum.experiment("run", "mutations")
    assert failed.code == 1
    assert "answered with an error" in failed.err
    assert not list((gsum.root / ".gsum/experiment").rglob("record.json"))
    gsum.model()
    # the command of a toolchain is in no key, but BUILD.toml is another: a run goes on only over the same files
    assert gsum.experiment("run", "mutations").code == 4


def test_edits_are_validated_with_their_place(tmp_path):
    gsum = Corpus(tmp_path / "w", ["S-010"])
    file = gsum.root / "corpus/edits.toml"
    text = file.read_text()
    for old, new, message in (
        ('action = "withdraw"', 'action = "burn"', "can't be `burn`"),
        ('name = "mutation-2"', 'name = "mutation-1"', "step `mutation-1` is declared twice"),
        ('name = "mutation-2"', 'name = "../x"', "a step has no valid name"),
        ('document = "D-{NN}-04"', 'document = "D-{NN}-44"', "the manifest has no document `D-10-44`"),
    ):
        file.write_text(text.replace(old, new))
        refused = gsum.experiment("run", "mutations", "--out", f"out-{new[-9:-1].strip('./')}")
        assert refused.code in (2, 3), refused.err
        assert message in refused.err
