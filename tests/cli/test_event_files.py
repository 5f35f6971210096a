"""`gsum build --events` and `--profile`: every event as a line of JSON, and a trace that trace viewers open."""

from __future__ import annotations

import json
import re
import sqlite3
from typing import get_args

import pytest
from support import workspaces
from support.cli import Gsum
from support.documented import DOCUMENTATION

from gsum.engine.events import Accounted, AnyEvent
from gsum.engine.verifying.report import RequestFailed, RequestVerified, RoundFinished, VerifyFinished, VerifyStarted
from gsum.store.local import open_store


@pytest.fixture
def gsum(tmp_path):
    return Gsum(tmp_path / "w", {"S-1": 3})


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_events_are_written_one_object_a_line_in_order(gsum: Gsum, tmp_path):
    file = tmp_path / "events.jsonl"
    assert gsum("build", "//dossier:S-1", "--events", str(file)).code == 0
    events = lines(file)
    assert events[0]["event"] == "BuildStarted" and events[0]["schema"] == 1
    assert events[-1]["event"] == "BuildFinished"
    finished = [event for event in events if event["event"] == "ActionFinished"]
    assert [event["label"].rsplit("/")[-1] for event in finished] == ["leaf-00", "leaf-01", "leaf-02", "root"]
    assert all(event["how"] == "generated" and event["new_tokens"] > 0 for event in finished)
    times = [event["at"] for event in events]
    assert times == sorted(times) and times[0] >= 0


def test_a_null_build_has_two_events(gsum: Gsum, tmp_path):
    gsum("build", "//dossier:S-1")
    file = tmp_path / "events.jsonl"
    assert gsum("build", "//dossier:S-1", "--events", str(file)).code == 0
    assert [event["event"] for event in lines(file)] == ["BuildStarted", "BuildFinished"]


def test_misses_say_what_they_were_before(gsum: Gsum, tmp_path):
    gsum("build", "//dossier:S-1")
    workspaces.activate(gsum.root, "S-1", "D-01", "2")
    file = tmp_path / "events.jsonl"
    gsum("build", "//dossier:S-1", "--events", str(file))
    finished = [event for event in lines(file) if event["event"] == "ActionFinished"]
    assert len(finished) == 2
    assert all(event["previous"] not in (None, event["key"]) for event in finished)


def test_hits_tell_their_kind_and_misses_their_reason(gsum: Gsum, tmp_path):
    file = tmp_path / "events.jsonl"

    def told(*options):
        """Return, by target, why it missed or what kind of hit it was."""
        assert gsum("build", "//dossier:S-1", "--events", str(file), *options).code == 0
        events = [event for event in lines(file) if event["event"].startswith("Action")]
        for event in events:
            if event["event"] == "ActionStarted":
                finished = [e for e in events if (e["event"], e["label"]) == ("ActionFinished", event["label"])]
                assert [event["reason"]] == [e["reason"] for e in finished]
        return {event["label"].rpartition("/")[2]: event.get("kind", event.get("reason")) for event in events}

    assert set(told().values()) == {"never built"}
    workspaces.activate(gsum.root, "S-1", "D-01", "2")
    changed = {"leaf-00": "latest", "leaf-01": "key changed", "leaf-02": "latest", "root": "key changed"}
    assert told() == changed
    assert set(told("--full").values()) == {"full build"}
    workspaces.activate(gsum.root, "S-1", "D-01", "1")
    assert told() == {"root": "earlier"}
    database = sqlite3.connect(gsum.root / ".gsum/store.sqlite")
    label = "//dossier:S-1/leaf-02"
    with open_store(gsum.root / ".gsum") as store:
        ref = store.latest(label, "reader-demo", "fake")
        (entry,) = store.entries([ref.key]).values()
        database.execute("UPDATE target SET label = 'another' WHERE label = ?", (label,))
        database.execute("DELETE FROM entry WHERE label = ?", (label,))
        database.commit()
        assert store.put_entry(entry)  # as if another label had been built as the same
        root = store.latest("//dossier:S-1/root", "reader-demo", "fake")
        database.execute("DELETE FROM entry WHERE label = ?", (root.label,))
        database.commit()
        store.put_target(root)
    database.close()
    assert told() == {"leaf-00": "latest", "leaf-01": "earlier", "leaf-02": "shared", "root": "incomplete entry"}


def test_the_tables_of_events_name_the_fields_that_are_written():
    """`Accounted` is kept in the journal and written to no file."""
    documented = {}
    for name, cell in re.findall(r"^\| `([A-Z]\w+)` \| (.+) \|$", DOCUMENTATION.read_text(), re.MULTILINE):
        fields = re.sub(r"\([^)]*\)", "", cell).partition(":")[0]
        documented[name] = re.findall(r"`(\w+)`", fields)
    verified = (VerifyStarted, RequestVerified, RequestFailed, RoundFinished, VerifyFinished)
    kinds = [kind for kind in (*get_args(AnyEvent), *verified) if kind is not Accounted]
    assert documented.keys() == {kind.__name__ for kind in kinds}
    for kind in kinds:
        assert sorted(documented[kind.__name__]) == sorted(kind.__struct_fields__), kind


def test_a_profile_is_a_trace_of_complete_events(gsum: Gsum, tmp_path):
    file = tmp_path / "trace.json"
    assert gsum("build", "//dossier:S-1", "--profile", str(file)).code == 0
    trace = json.loads(file.read_text())["traceEvents"]
    assert {row["ph"] for row in trace} == {"X"}
    named = {row["name"]: row for row in trace}
    (whole,) = [row for name, row in named.items() if name.startswith("build ")]
    actions = [row for name, row in named.items() if name.startswith("//")]
    assert len(actions) == 4
    for row in actions:
        assert row["ts"] >= 0 and row["ts"] + row["dur"] <= whole["ts"] + whole["dur"]
    for first in actions:  # no lane holds two actions at once
        for second in actions:
            if first is not second and first["tid"] == second["tid"]:
                assert first["ts"] + first["dur"] <= second["ts"] or second["ts"] + second["dur"] <= first["ts"]


@pytest.mark.parametrize("option", ["--events", "--profile"])
def test_a_file_that_cannot_be_written_is_a_usage_error(gsum: Gsum, tmp_path, option):
    done = gsum("build", "//dossier:S-1", option, str(tmp_path / "none" / "file"))
    assert done.code == 2
    assert "can't be written" in done.err
