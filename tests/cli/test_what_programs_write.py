"""What a program writes about a failure may quote a document: the build that ran it shows it, and nothing keeps it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from support.cli import Gsum
from support.workspaces import withdraw

QUOTING = {
    "its standard error": "sys.stderr.write(text); sys.stderr.flush(); os._exit(3)",
    "an answered error": 'print(json.dumps({"key": asked["key"], "error": text}), flush=True)',
}
MALFORMED = {
    "a stop that is none": 'print(json.dumps({"key": asked["key"], "text": "", "stop": text}), flush=True)',
    "a field of its own": 'print(json.dumps({"key": asked["key"], "error": "x", text: 1}), flush=True)',
    "a place of its own": 'print(json.dumps({"key": asked["key"], text + " - at `$.stop": 1}), flush=True)',
    "no JSON": 'print(text + "}", flush=True)',
}
PROGRAM = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    text = asked["messages"][-1]["content"].replace("\\n", " ")
    {fault}
"""
SECRET = "P-1-00 delivery: 1 March"


def quoting(tmp_path: Path, fault: str) -> Gsum:
    """Return a workspace whose program quotes what it was asked."""
    gsum = Gsum(tmp_path / "w", {"S-1": 1})
    program = tmp_path / "quoting.py"
    program.write_text(PROGRAM.format(fault=fault))
    file = gsum.root / "BUILD.toml"
    command = f'command = ["{sys.executable}", "{program}"]'
    file.write_text(re.sub(r"^command = .*$", lambda _: command, file.read_text(), flags=re.MULTILINE))
    return gsum


@pytest.fixture(params=QUOTING)
def gsum(tmp_path: Path, request: pytest.FixtureRequest) -> Gsum:
    """A workspace whose program quotes what it was asked, and then fails."""
    return quoting(tmp_path, QUOTING[request.param])


@pytest.mark.parametrize("fault", MALFORMED)
def test_a_line_that_is_no_answer_is_quoted_nowhere(tmp_path: Path, fault: str) -> None:
    gsum = quoting(tmp_path, MALFORMED[fault])
    built = gsum("build", "//dossier:S-1", "--events", "../events.jsonl")
    assert built.code == 1
    written = [*(gsum.root / ".gsum").rglob("*"), tmp_path / "events.jsonl"]
    assert '"protocol"' in written[-1].read_text()
    assert SECRET not in built.err
    assert not [file for file in written if file.is_file() and SECRET.encode() in file.read_bytes()]


def test_the_build_that_ran_it_shows_it(gsum: Gsum) -> None:
    built = gsum("build", "//dossier:S-1")
    assert built.code == 1
    assert SECRET in built.err


def test_nothing_keeps_it(gsum: Gsum) -> None:
    gsum("build", "//dossier:S-1", "--events", "../events.jsonl", "--profile", "../trace.json")
    written = [*(gsum.root / ".gsum").rglob("*"), gsum.root.parent / "events.jsonl", gsum.root.parent / "trace.json"]
    assert "ActionFailed" in written[-2].read_text()
    assert not [file for file in written if file.is_file() and SECRET.encode() in file.read_bytes()]


def test_after_a_withdrawal_no_command_tells_what_the_document_said(gsum: Gsum) -> None:
    gsum("build", "//dossier:S-1")
    withdraw(gsum.root, "S-1", "D-00")
    invocation = gsum("log", "--json").document["invocations"][0]["id"]
    for words in (["log"], ["log", "--invocation", invocation], ["explain-miss", "//dossier:S-1/root", "--last"]):
        for form in ([], ["--json"]):
            ran = gsum(*words, *form)
            assert ran.code == 0
            assert SECRET not in ran.out + ran.err
