"""`gsum verify`: honest programs pass, one whose answers depend on what came before is found, and nothing changes."""

from __future__ import annotations

import json

import pytest
from support.cli import FAKE_MODEL, Gsum
from support.documented import check
from support.workspaces import edit_build, set_reader, withdraw

from gsum.store.errors import ExitCode
from gsum.store.local import open_store

FORGETFUL = FAKE_MODEL.with_name("forgetful_model.py")
PATTERN = "//dossier:..."
EVERYTHING = ("build", PATTERN)


@pytest.fixture
def gsum(tmp_path):
    return Gsum(tmp_path / "w", {"S-1": 6, "S-2": 1})


@pytest.fixture
def forgetful(tmp_path):
    made = Gsum(tmp_path / "w", {"S-1": 6, "S-2": 1})
    edit_build(made.root, f'"{FAKE_MODEL}", "--log", "{made.log}"', f'"{FORGETFUL}"')
    assert made("build", PATTERN).code == 0
    return made


def outputs(gsum, request):
    with open_store(gsum.root / ".gsum") as store:
        return store.generations(request)


def test_an_honest_program_gives_what_is_stored(gsum):
    assert gsum(*EVERYTHING).code == 0
    built = gsum.calls
    ran = gsum("verify", PATTERN, "--rounds", "3")
    assert ran.code == 0, ran.err
    assert gsum.calls == built + 3 * built
    assert f"ok: {built} requests of {built} stored, {3 * built} executions, {3 * built} as stored" in ran.out
    assert f"round 1: {built} alone, all as stored" in ran.out
    assert f"round 2: {built} in batches of " in ran.out


def test_all_targets_are_verified_where_none_is_named(gsum):
    gsum(*EVERYTHING)
    document = gsum("verify", "--json").document
    assert document["requests"] == document["stored"] == gsum.calls // 4
    assert document["exit_code"] == 0


def test_a_program_whose_answers_depend_on_what_came_before_is_found(forgetful):
    before = forgetful("show", "//dossier:S-1").out
    ran = forgetful("verify", PATTERN)
    assert ran.code == ExitCode.NOT_REPRODUCIBLE
    assert "outputs that are not what is stored" in ran.out
    assert "reproducible = false" in ran.out
    assert forgetful("show", "//dossier:S-1").out == before


def test_what_differs_is_kept_beside_what_is_served_and_said_where_it_parts(forgetful):
    document = forgetful("verify", PATTERN, "--json").document
    assert document["status"] == "differs"
    assert document["differing"]
    assert document["executions"] == document["same"] + len(document["differing"])
    for found in document["differing"]:
        first, *others = outputs(forgetful, found["request"])
        assert first == found["first"]
        assert found["second"] in others
        assert found["request"] in found["batch"]
        assert found["what"][0] == "token_ids"
        assert 0 <= found["token"] <= min(found["stored_tokens"], found["made_tokens"])
    assert forgetful("build", PATTERN, "--json").document["recomputed"] == []


def test_the_same_seed_takes_the_same_sample(gsum):
    gsum(*EVERYTHING)
    asked = []
    for seed in ("5", "5", "6"):
        before = gsum.calls
        assert gsum("verify", PATTERN, "--sample", "3", "--seed", seed, "--rounds", "2").code == 0
        asked.append([line.split("\t")[0] for line in gsum.log.read_text().splitlines()[before:]])
    assert [len(keys) for keys in asked] == [6, 6, 6]
    assert asked[0] == asked[1] != asked[2]


def test_a_toolchain_that_promises_nothing_is_asked_only_on_demand(tmp_path):
    gsum = Gsum(tmp_path / "w", {"S-1": 2}, reproducible=False)
    gsum("build", PATTERN)
    built = gsum.calls
    refused = gsum("verify", PATTERN)
    assert refused.code == ExitCode.USAGE
    assert "promises nothing" in refused.err
    assert "--opaque" in refused.err
    assert gsum.calls == built
    gsum.model("--max-claims", "1")
    published = gsum("verify", PATTERN, "--opaque")
    assert published.code == 0
    assert "outputs that are not what is stored" in published.out
    assert "is no fault" in published.out


def test_only_what_the_principal_may_read_is_asked(gsum):
    gsum(*EVERYTHING)
    built = gsum.calls
    other = gsum("verify", PATTERN, "--principal", "stranger")
    assert other.code == ExitCode.STALE
    assert gsum.calls == built
    set_reader(gsum.root, "S-2", "D-00", granted=False, revision=2)
    withdraw(gsum.root, "S-1", "D-05")
    document = gsum("verify", PATTERN, "--json", "--rounds", "1").document
    readable = [f"//dossier:S-1/leaf-0{number}" for number in range(5)] + ["//dossier:S-1/reduce-00"]
    assert document["requests"] == gsum.calls - built == len(readable)
    assert document["not_built"] > 0


def test_no_text_of_a_document_or_an_answer_is_printed(forgetful, tmp_path):
    events = tmp_path / "events.jsonl"
    plain = forgetful("verify", PATTERN)
    told = forgetful("verify", PATTERN, "--json", "--events", str(events))
    for text in (plain.out, plain.err, told.out, told.err, events.read_text()):
        assert "Hall" not in text
        assert "March" not in text
        assert "claims" not in text


def test_events_tell_every_execution(forgetful, tmp_path):
    events = tmp_path / "events.jsonl"
    document = forgetful("verify", PATTERN, "--json", "--events", str(events), "--rounds", "2").document
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    assert lines[0]["event"] == "VerifyStarted" and lines[0]["schema"] == 1
    assert lines[-1]["event"] == "VerifyFinished" and lines[-1]["exit_code"] == ExitCode.NOT_REPRODUCIBLE
    verified = [line for line in lines if line["event"] == "RequestVerified"]
    assert len(verified) == document["executions"]
    assert sum(not line["same"] for line in verified) == len(document["differing"])
    assert len([line for line in lines if line["event"] == "Equivocation"]) == len(document["differing"])
    assert [line["round"] for line in lines if line["event"] == "RoundFinished"] == [1, 2]


def test_a_request_that_fails_fails_the_verification_and_is_named(gsum):
    gsum(*EVERYTHING)
    gsum.model("--error-at", str(gsum.calls + 2))
    ran = gsum("verify", PATTERN, "--rounds", "1")
    assert ran.code == ExitCode.ACTION_FAILED
    assert "answered with an error" in ran.err
    assert "1 failed" in ran.out


def test_a_program_that_is_not_there_is_a_matter_of_the_toolchain(gsum):
    gsum(*EVERYTHING)
    edit_build(gsum.root, 'command = ["', 'command = ["/nowhere/')
    ran = gsum("verify", PATTERN)
    assert ran.code == ExitCode.TOOLCHAIN
    assert "could not be started" in ran.err


def test_where_nothing_is_stored_nothing_is_made(gsum):
    ran = gsum("verify", PATTERN)
    assert ran.code == ExitCode.STALE
    assert f"gsum build {PATTERN}" in ran.err
    assert not (gsum.root / ".gsum").exists()
    assert gsum.calls == 0


def test_targets_that_need_no_model_have_nothing_to_verify(gsum):
    gsum("build", "//baseline:...")
    ran = gsum("verify", "//baseline:...")
    assert ran.code == 0
    assert "0 requests of 0 stored" in ran.out
    assert gsum.calls == 0


def test_the_document_is_the_documented_one(forgetful):
    found = forgetful("verify", PATTERN, "--json").document
    edit_build(forgetful.root, f'"{FORGETFUL}"', f'"{FAKE_MODEL}", "--crash-always"')
    failed = forgetful("verify", PATTERN, "--json", "--rounds", "1").document
    assert failed["failures"]
    check("verify", found, failed)
