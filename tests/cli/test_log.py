"""`gsum log`: past builds, newest first, labelled as history, without a claim and for one principal alone."""

from __future__ import annotations

import pytest
from support.cli import Gsum, normalised
from support.workspaces import activate

from gsum.store.errors import ExitCode


@pytest.fixture
def gsum(tmp_path):
    return Gsum(tmp_path / "w", {"S-1": 1})


def test_it_lists_builds_newest_first(gsum):
    gsum("build", "//dossier:S-1")
    gsum("build", "//dossier:S-1", "--full")
    lines = normalised(gsum("log").out).splitlines()
    assert lines == [
        "HISTORICAL: builds for `reader-demo`; `gsum status` says what is current",
        "INVOCATION  TIME  ok (full)  //dossier:S-1  2 targets, 0 cached, 2 generated, 306 tokens, 0.0 s",
        "INVOCATION  TIME  ok         //dossier:S-1  2 targets, 0 cached, 2 generated, 306 tokens, 0.0 s",
    ]
    assert len(gsum("log", "1").out.splitlines()) == 2


def test_one_build_in_detail(gsum):
    gsum("build", "//dossier:S-1")
    activate(gsum.root, "S-1", "D-00", "2")
    gsum("build", "//dossier:S-1")
    newest = gsum("log", "--json").document["invocations"][0]["id"]
    assert normalised(gsum("log", "--invocation", newest).out) == (
        "HISTORICAL: build INVOCATION\n"
        "  started    TIME\n"
        "  status     ok\n"
        "  patterns   //dossier:S-1\n"
        "  principal  reader-demo\n"
        "  toolchain  fake\n"
        "  counts     2 targets, 0 cached, 2 generated, 306 tokens, 0.0 s\n"
        "  generated   VALID       //dossier:S-1/leaf-00  (153 tokens, 0.0 s)\n"
        "  generated   VALID       //dossier:S-1/root  (153 tokens, 0.0 s)\n"
    )
    actions = gsum("log", "--invocation", newest[:18], "--json").document["invocations"][0]["actions"]
    assert [(action["label"], action["how"], action["status"]) for action in actions] == [
        ("//dossier:S-1/leaf-00", "generated", "VALID"),
        ("//dossier:S-1/root", "generated", "VALID"),
    ]


def test_failed_and_skipped_actions_are_in_it(gsum):
    gsum.model("--error-at", "1")
    gsum("build", "//dossier:S-1")
    (record,) = gsum("log", "--json").document["invocations"]
    ran = gsum("log", "--invocation", record["id"])
    assert "  failed                  //dossier:S-1/leaf-00  (over budget)\n" in ran.out
    assert "  skipped                 //dossier:S-1/root  (for //dossier:S-1/leaf-00)\n" in ran.out
    assert (record["status"], record["exit_code"]) == ("failed", 1)


def test_it_shows_no_claim(gsum):
    gsum("build", "//dossier:S-1")
    newest = gsum("log", "--json").document["invocations"][0]["id"]
    for options in ((), ("--json",), ("--invocation", newest), ("--invocation", newest, "--json")):
        out = gsum("log", *options).out
        assert "March" not in out
        assert "Hall" not in out


def test_another_principals_builds_are_not_listed(gsum):
    gsum("build", "//dossier:S-1", "--principal", "other")
    assert gsum("log").out == "`reader-demo` has built nothing here yet\n"
    (record,) = gsum("log", "--principal", "other", "--json").document["invocations"]
    assert gsum("log", "--invocation", record["id"]).code == ExitCode.USAGE


def test_an_unknown_or_ambiguous_id_is_a_usage_error(gsum):
    gsum("build", "//dossier:S-1")
    gsum("build", "//dossier:S-1")
    assert "has no invocation `x`" in gsum("log", "--invocation", "x").err
    ran = gsum("log", "--invocation", "2")
    assert ran.code == ExitCode.USAGE
    assert "2 invocations start with `2`" in ran.err


def test_a_principal_that_could_steer_a_terminal_is_shown_as_escapes(gsum):
    reader = "\x1b[2J\u202eevil"
    for command in (["log"], ["build", "//dossier:S-1"], ["log"]):
        assert not {"\x1b", "\u202e"} & set(gsum(*command, "--principal", reader).out), command
    for edit in ("grant", "revoke"):
        ran = gsum("doc", edit, "//dossier:S-1", "D-00", "--reader", reader)
        assert ran.code == 0, ran.err
        assert not {"\x1b", "\u202e"} & set(ran.out), edit
