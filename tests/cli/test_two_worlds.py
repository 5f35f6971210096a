"""Two worlds that differ only in what a principal may not read look the same to that principal, in every command."""

from __future__ import annotations

import json
import re
import time

import pytest
from support.cli import Gsum
from support.workspaces import activate, document_text, edit_text, set_reader, withdraw

SECRET = "Product P-9-99 site: Vault.\n"


def times_removed(text, gsum):
    text = re.sub(r"\b\d{14}-[0-9a-f]{8}\b", "INVOCATION", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    text = re.sub(r'("seconds": )[\d.]+', r"\1N", text)
    return re.sub(r"\b\d+\.\d s\b", "N s", text).replace(str(gsum.root), "ROOT")


def world(root, edit, hidden):
    """A history of one dossier as its reader may see it; `hidden` edits what it may not."""
    gsum = Gsum(root, {"S-1": 3})
    outputs = []

    def look():
        for command in (
            ["build", "//..."],
            ["build", "//...", "--json"],
            ["show", "//dossier:S-1"],
            ["show", "//dossier:S-1", "--json"],
            ["show", "//baseline:S-1"],
            ["show", "//dossier:S-1/leaf-00", "--json"],
            ["status", "//...", "--json"],
            ["explain-miss", "//dossier:S-1"],
            ["key", "//dossier:S-1/leaf-00", "--preimage"],
            ["key", "//dossier:S-1"],
            ["query", "deps(//dossier:S-1)"],
            ["log", "--json"],
        ):
            ran = gsum(*command)
            outputs.append((command, ran.code, times_removed(ran.out, gsum), times_removed(ran.err, gsum)))

    edit(gsum.root)
    look()
    if hidden:
        edit_text(gsum.root, "S-1", "D-00", document_text("S-1", 0) + SECRET)
        activate(gsum.root, "S-1", "D-00", "2")
    ran = gsum("show", "//dossier:S-1")
    outputs.append((["show"], ran.code, times_removed(ran.out, gsum), times_removed(ran.err, gsum)))
    outputs.append((["explain-miss"], gsum("explain-miss", "//dossier:S-1").out))
    look()
    if hidden:
        (gsum.root / "corpus/dossiers/S-1/documents/D-00.v2.txt").unlink()
    look()
    return outputs


EDITS = {
    "revoked": lambda root: set_reader(root, "S-1", "D-00", granted=False, revision=2),
    "withdrawn": lambda root: withdraw(root, "S-1", "D-00"),
    "never granted": lambda root: set_reader(root, "S-1", "D-00", granted=True, revision=1, reader="other"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_hidden_document_changes_nothing_that_its_stranger_sees(tmp_path, name):
    plain = world(tmp_path / "a" / "w", EDITS[name], hidden=False)
    changed = world(tmp_path / "b" / "w", EDITS[name], hidden=True)
    assert plain == changed
    assert not any("Vault" in str(output) for output in changed)


def test_a_revocation_takes_the_text_out_of_all_that_is_shown_afterwards(tmp_path):
    gsum = Gsum(tmp_path / "w", {"S-1": 3})
    gsum("build", "//...")
    assert "Hall 1" in gsum("show", "//dossier:S-1").out
    gsum("doc", "revoke", "//dossier:S-1", "D-00")
    for command in (
        ["show", "//dossier:S-1"],
        ["show", "//dossier:S-1", "--json"],
        ["explain-miss", "//dossier:S-1"],
        ["explain-miss", "//dossier:S-1", "--json"],
        ["build", "//...", "--json"],
        ["show", "//dossier:S-1"],
        ["show", "//baseline:S-1"],
        ["log", "--json"],
    ):
        ran = gsum(*command)
        assert "Hall 1" not in ran.out + ran.err, command
        assert "1 March" not in ran.out + ran.err, command


def test_events_do_not_tell_that_a_hidden_document_changed(tmp_path):
    def told(root, hidden):
        gsum = Gsum(root, {"S-1": 2, "S-2": 2, "S-3": 2})
        withdraw(gsum.root, "S-2", "D-00")
        for _ in range(2):
            gsum("build", "//dossier:...", "//baseline:...")
            time.sleep(0.05)  # past the tick in which a file that was looked at is not trusted
        if hidden:
            activate(gsum.root, "S-2", "D-00", "2")
        activate(gsum.root, "S-1", "D-00", "2")
        gsum("build", "//dossier:...", "//baseline:S-2", "--events", "../events.jsonl")
        events = [json.loads(line) for line in (root.parent / "events.jsonl").read_text().splitlines()]
        return [(event["event"], event.get("label")) for event in events]

    plain = told(tmp_path / "a" / "w", hidden=False)
    assert ("ActionCached", "//dossier:S-1/leaf-01") in plain
    assert plain == told(tmp_path / "b" / "w", hidden=True)


def test_the_order_of_what_was_cached_does_not_tell_that_a_hidden_document_changed(tmp_path):
    def cached(root, hidden):
        gsum = Gsum(root, {"S-1": 2, "S-2": 2})
        withdraw(gsum.root, "S-2", "D-00")
        for _ in range(2):
            gsum("build", "//dossier:...")
            time.sleep(0.05)  # past the tick in which a file that was looked at is not trusted
        if hidden:
            activate(gsum.root, "S-2", "D-00", "2")
        return gsum("build", "//dossier:...", "--json").document["cached"]

    plain = cached(tmp_path / "a" / "w", hidden=False)
    assert len(plain) == 6
    assert plain == cached(tmp_path / "b" / "w", hidden=True)
