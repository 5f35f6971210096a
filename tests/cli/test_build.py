"""`gsum build`: exact output, exit codes, what ran, and that nothing is lost."""

from __future__ import annotations

import gc
import shutil

import pytest
from support.cli import Gsum, normalised
from support.workspaces import activate, document_text, edit_build, edit_text, second_version

from gsum.engine.build import Build
from gsum.store.errors import ExitCode

FIRST = """\
  generated   VALID       //dossier:S-1/leaf-00  (153 tokens, 0.0 s)
  generated   VALID       //dossier:S-1/leaf-01  (153 tokens, 0.0 s)
  generated   VALID       //dossier:S-1/leaf-02  (153 tokens, 0.0 s)
  generated   VALID       //dossier:S-1/root  (294 tokens, 0.0 s)
ok: 4 targets, 0 cached, 0 cut off, 4 generated, 753 tokens, 0.0 s
next: gsum show //dossier:S-1/root
"""


@pytest.fixture
def gsum(tmp_path):
    return Gsum(tmp_path / "w")


def test_a_first_build_generates_everything_and_says_so(gsum):
    ran = gsum("build", "//dossier:S-1/root")
    assert normalised(ran.out) == FIRST
    assert (ran.code, ran.err, gsum.calls) == (0, "", 4)


def test_a_second_build_runs_nothing(gsum):
    gsum("build", "//dossier:S-1/root")
    ran = gsum("build", "//dossier:S-1/root")
    assert normalised(ran.out) == (
        "ok: 4 targets, 4 cached, 0 cut off, 0 generated, 0 tokens, 0.0 s\nnext: gsum show //dossier:S-1/root\n"
    )
    assert gsum.calls == 4


def test_an_edit_rebuilds_its_leaf_and_ancestors(gsum):
    gsum("build", "//dossier:S-1")
    activate(gsum.root, "S-1", "D-01", "2")
    ran = gsum("build", "//dossier:S-1")
    assert normalised(ran.out) == (
        "  generated   VALID       //dossier:S-1/leaf-01  (153 tokens, 0.0 s)\n"
        "  generated   VALID       //dossier:S-1/root  (294 tokens, 0.0 s)\n"
        "ok: 4 targets, 2 cached, 0 cut off, 2 generated, 447 tokens, 0.0 s\n"
        "next: gsum show //dossier:S-1/root\n"
    )


def test_an_edit_that_asserts_the_same_is_cut_off_above_its_leaf(gsum):
    gsum("build", "//dossier:S-1")
    edit_text(gsum.root, "S-1", "D-01", document_text("S-1", 1).replace("Reference S-1/01.", "Reference (copied)."))
    ran = gsum("build", "//dossier:S-1")
    assert normalised(ran.out) == (
        "  generated   VALID       //dossier:S-1/leaf-01  (153 tokens, 0.0 s)\n"
        "  cut off     VALID       //dossier:S-1/root\n"
        "ok: 4 targets, 2 cached, 1 cut off, 1 generated, 153 tokens, 0.0 s\n"
        "next: gsum show //dossier:S-1/root\n"
    )


def test_quiet_prints_the_summary_only(gsum):
    ran = gsum("build", "//dossier:S-1", "--quiet")
    assert normalised(ran.out).splitlines()[0].startswith("ok: 4 targets, 0 cached")


def test_a_dry_run_says_what_would_run_and_writes_nothing(gsum):
    ran = gsum("build", "//dossier:S-1", "--dry-run")
    assert ran.out == (
        "  would run   //dossier:S-1/leaf-00\n"
        "  would run   //dossier:S-1/leaf-01\n"
        "  would run   //dossier:S-1/leaf-02\n"
        "  would run   //dossier:S-1/root\n"
        "dry run: 4 targets, 0 cached, at most 4 to run\n"
        "An action whose inputs come out as before is cut off: it and what is above it may not run\n"
        "forecast: no history of builds here tells what 4 generations would take\n"
    )
    assert (ran.code, gsum.calls) == (0, 0)
    assert not (gsum.root / ".gsum").exists()


def test_a_dry_run_after_an_edit_names_the_leaf_and_its_ancestors(gsum):
    gsum("build", "//dossier:S-1")
    activate(gsum.root, "S-1", "D-02", "2")
    document = gsum("build", "//dossier:S-1", "--dry-run", "--json").document
    assert document["would_run"] == ["//dossier:S-1/leaf-02", "//dossier:S-1/root"]
    assert document["cached"] == ["//dossier:S-1/leaf-00", "//dossier:S-1/leaf-01"]
    assert gsum.calls == 4


def test_json_names_what_ran_and_nothing_else_is_printed(gsum):
    document = gsum("build", "//dossier:S-1", "--json").document
    labels = [f"//dossier:S-1/{part}" for part in ("leaf-00", "leaf-01", "leaf-02", "root")]
    assert (document["schema"], document["status"], document["exit_code"]) == (1, "ok", 0)
    assert document["generated"] == document["recomputed"] == labels
    assert (document["targets"], document["cached"], document["new_tokens"]) == (4, [], 753)


def test_a_failed_action_is_reported_once_not_cached_and_built_next_time(gsum):
    gsum.model("--error-at", "2")
    ran = gsum("build", "//dossier:S-1")
    assert ran.code == ExitCode.ACTION_FAILED
    assert "  failed                  //dossier:S-1/leaf-01  (over budget)\n" in ran.out
    assert "1 failed" in ran.out.splitlines()[-1]
    assert ran.err.count("answered with an error") == 1
    assert "  target  //dossier:S-1/leaf-01\n  error   no answer\n" in ran.err
    gsum.model()
    document = gsum("build", "//dossier:S-1", "--json").document
    assert "//dossier:S-1/leaf-00" in document["cached"]
    assert "//dossier:S-1/leaf-01" in document["generated"]
    assert gsum.calls == 5


def test_keep_going_builds_all_that_does_not_need_the_failed_one(gsum):
    gsum.model("--error-at", "1")
    document = gsum("build", "//dossier:S-1", "--keep-going", "--json").document
    assert document["generated"] == ["//dossier:S-1/leaf-01", "//dossier:S-1/leaf-02"]
    assert (document["failed"], document["skipped"]) == (["//dossier:S-1/leaf-00"], ["//dossier:S-1/root"])
    assert document["failures"][0]["reason"] == "over_budget"
    assert document["exit_code"] == ExitCode.ACTION_FAILED


def test_a_missing_program_fails_with_exit_6_and_is_said_once(gsum):
    edit_build(gsum.root, "command = [", 'command = ["/no/such/program", ')
    ran = gsum("build", "//dossier:S-1", "--keep-going")
    assert ran.code == ExitCode.TOOLCHAIN
    assert ran.err.count("error:") == 1
    assert "`/no/such/program` could not be started" in ran.err
    assert "//dossier:S-1/leaf-00\n" in ran.err


def test_an_invalid_generation_is_kept_and_exits_7(tmp_path):
    gsum = Gsum(tmp_path / "w", None, "--max-claims", "9")
    ran = gsum("build", "//dossier:S-1")
    assert ran.code == ExitCode.INVALID
    assert normalised(ran.out).splitlines()[-3:] == [
        "failed: 4 targets, 0 cached, 0 cut off, 4 generated, 894 tokens, 0.0 s",
        "INVALID: //dossier:S-1/root",
        "next: gsum show //dossier:S-1/root",
    ]
    again = gsum("build", "//dossier:S-1")
    assert (again.code, gsum.calls) == (ExitCode.INVALID, 4)
    gate = gsum("status", "//dossier:S-1/...")
    assert gate.code == ExitCode.INVALID
    assert "INVALID     //dossier:S-1/root" in gate.out
    assert gsum("status", "//dossier:S-1", "--json").document["exit_code"] == ExitCode.INVALID
    assert gsum("status", "//dossier:S-1", "//baseline:S-1").code == ExitCode.STALE  # what is to be built comes first
    gsum("build", "//baseline:S-1")
    assert gsum("status", "//baseline:S-1").code == 0


def test_full_regenerates_and_reports_what_differs_with_exit_8(gsum):
    gsum("build", "//dossier:S-1")
    same = gsum("build", "//dossier:S-1", "--full", "--json").document
    assert (same["exit_code"], same["differences"], len(same["generated"])) == (0, [], 4)
    gsum.model("--seed", "a")
    before = gsum("show", "//dossier:S-1", "--json").document
    ran = gsum("build", "//dossier:S-1", "--full")
    assert ran.code == ExitCode.NOT_REPRODUCIBLE
    assert "  differs     //dossier:S-1/root  (claims, generation)\n" in ran.out
    last = ran.out.splitlines()[-1]
    assert last.startswith("hint: what is served stays as it was; ")
    assert "`reproducible = false` with an `epoch`" in last
    assert "another `numerics` profile" in last
    assert gsum("show", "//dossier:S-1", "--json").document == before


def test_another_principal_shares_no_result(gsum):
    gsum("build", "//dossier:S-1")
    document = gsum("build", "//dossier:S-1", "--principal", "stranger", "--json").document
    assert document["ineligible"] == [f"//dossier:S-1/{part}" for part in ("leaf-00", "leaf-01", "leaf-02", "root")]
    assert gsum.calls == 4


def test_a_worker_killed_mid_generation_fails_and_the_next_build_resumes(tmp_path):
    gsum = Gsum(tmp_path / "w", None, "--crash-at", "2")
    ran = gsum("build", "//dossier:S-1")
    assert ran.code == ExitCode.ACTION_FAILED
    assert "(crash)" in ran.out
    assert "signal 9 (SIGKILL)" in ran.err
    assert gsum("status", "//dossier:S-1/leaf-01").out.startswith("NOT BUILT")
    done = gsum.calls
    document = gsum("build", "//dossier:S-1", "--json").document
    assert document["status"] == "ok"
    assert len(document["cached"]) + len(document["generated"]) == 4
    assert gsum.calls - done == len(document["generated"]) <= 3


def test_a_hung_worker_is_killed_at_the_timeout_of_the_action(tmp_path):
    gsum = Gsum(tmp_path / "w", None, "--hang-at", "1", timeout_seconds=1)
    ran = gsum("build", "//dossier:S-1/leaf-00")
    assert ran.code == ExitCode.ACTION_FAILED
    assert "(timeout)" in ran.out


def test_a_removed_store_is_built_again(gsum):
    gsum("build", "//dossier:S-1")
    shutil.rmtree(gsum.root / ".gsum")
    assert len(gsum("build", "//dossier:S-1", "--json").document["generated"]) == 4


def test_patterns_name_one_dossier_or_many(tmp_path):
    gsum = Gsum(tmp_path / "w", {"S-1": 1, "S-2": 2})
    assert gsum("build", "//dossier:all", "--json").document["targets"] == 5
    assert gsum("build", "//...", "--json").document["targets"] == 10


def test_the_store_can_stand_elsewhere(gsum, tmp_path):
    gsum("build", "//dossier:S-1", "--store", str(tmp_path / "elsewhere"))
    assert not (gsum.root / ".gsum").exists()
    assert gsum("status", "//dossier:S-1").code == ExitCode.STALE
    assert gsum("status", "//dossier:S-1", "--store", str(tmp_path / "elsewhere")).code == 0
    assert gsum("status", "//dossier:S-1", env={"GSUM_STORE": str(tmp_path / "elsewhere")}).code == 0


def test_second_versions_differ_in_the_fake_corpus():
    assert second_version(document_text("S-1", 0)) != document_text("S-1", 0)


def test_what_to_type_next_repeats_where_and_for_whom(gsum, tmp_path):
    store = str(tmp_path / "a store")
    ran = gsum("build", "//dossier:S-1", "--principal", "other", "--store", store)
    assert ran.out.endswith(f"next: gsum show //dossier:S-1/root --store '{store}' --principal other\n")
    assert (
        "hint: gsum build //dossier:S-1/root --toolchain fake\n"
        in gsum("show", "//dossier:S-1", "--toolchain", "fake").err
    )


def test_fail_fast_and_keep_going_exclude_each_other(gsum):
    ran = gsum("build", "//dossier:S-1", "--keep-going", "--fail-fast")
    assert ran.code == 2
    assert "`--keep-going` and `--fail-fast` exclude each other" in ran.err
    assert gsum.calls == 0


@pytest.mark.parametrize("jobs", ["0", "-1", "many"])
def test_jobs_are_a_number_from_one(gsum, jobs):
    ran = gsum("build", "//dossier:S-1", "--jobs", jobs)
    assert ran.code == 2
    assert "--jobs" in ran.err


def test_fail_fast_and_jobs_reach_the_build(gsum):
    gsum.model("--crash-at", "1")
    document = gsum("build", "//dossier:S-1", "--fail-fast", "--jobs", "1", "--json").document
    assert len(document["failed"]) == 1
    assert document["generated"] == []


def test_cycles_are_looked_for_seldom_during_a_build_and_as_before_after_it(gsum, monkeypatch):
    before, during, run = gc.get_threshold(), [], Build.run
    monkeypatch.setattr(Build, "run", lambda build: [during.append(gc.get_threshold()), run(build)][1])
    assert gsum("build", "//dossier:S-1/root").code == 0
    assert during[0][0] > before[0]
    assert gc.get_threshold() == before
