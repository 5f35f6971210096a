"""A plain build with nothing to do: answered without click and msgspec, and in every other way like any build."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import Gsum, clean_environment, normalised
from support.workspaces import READER

from gsum.cli import main as entry
from gsum.cli import plain
from gsum.cli.plain import plain_patterns
from gsum.engine.events import BuildFinished, BuildStarted, decode_event
from gsum.store.local import open_store
from gsum.store.records import InvocationRecord, InvocationStatus
from gsum.store.version import VERSION

_LOADED = """
import sys
from gsum.cli.main import main
try:
    main()
finally:
    print(" ".join(sys.modules), file=sys.stderr)
"""
HEAVY = {"click", "msgspec", "typing_extensions", "inspect", "gsum.rules.labels", "gsum.cli.group"}


@pytest.fixture
def gsum(tmp_path):
    gsum = Gsum(tmp_path / "ws", {"S-1": 3, "S-2": 3})
    assert gsum("build", "//dossier:all").code == 0
    for _ in range(2):  # until all is older than the look
        assert gsum("build", "//dossier:all", "--quiet").code == 0
    return gsum


def in_a_process(gsum, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-c", _LOADED, *arguments],
        cwd=gsum.root,
        env=clean_environment() | environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    "words", [("//dossier:all",), ("-q", "//dossier:S-1"), ("//dossier:S-1", "//dossier:S-2/root", "--quiet")]
)
def test_it_loads_neither_click_nor_msgspec_and_says_what_the_command_says(gsum, words):
    plainly = in_a_process(gsum, "build", *words)
    properly = in_a_process(gsum, "build", *words, "--color", "never")
    assert plainly.returncode == properly.returncode == 0
    assert normalised(plainly.stdout) == normalised(properly.stdout) != ""
    assert HEAVY.isdisjoint(plainly.stderr.split())
    assert HEAVY & set(properly.stderr.split())


def test_its_record_is_that_of_a_build(gsum):
    assert in_a_process(gsum, "build", "//dossier:S-1", "//dossier:S-2").returncode == 0
    with open_store(gsum.root / ".gsum") as store:
        (record,) = store.invocations(1)
        events = [decode_event(event) for event in store.events(record.id)]
        last = [decode_event(event) for event in store.last_events(record.id)]
    patterns = ("//dossier:S-1", "//dossier:S-2")
    assert record == InvocationRecord(
        id=record.id,
        started=record.started,
        patterns=patterns,
        principal=READER,
        toolchain="fake",
        full=False,
        version=VERSION,
        status=InvocationStatus.OK,
        exit_code=0,
        seconds=record.seconds,
        targets=8,
        cached=8,
    )
    assert events == [BuildStarted(record.id, patterns, 8, 0), BuildFinished(record.id, "ok", 0, record.seconds)]
    assert last == events
    assert record.id[:14] == "".join(filter(str.isdigit, record.started))
    assert "null" not in gsum("log").out


@pytest.mark.parametrize(
    ("arguments", "patterns"),
    [
        (["build", "//a:all"], ("//a:all",)),
        (["build", "-q", "//a:all", "//b:x/...", "--quiet"], ("//a:all", "//b:x/...")),
        (["build"], None),
        (["build", "--quiet"], None),
        (["build", "//a:all", "--json"], None),
        (["build", "//a:all", "-k"], None),
        (["build", "--", "//a:all"], None),
        (["build", "a:all"], None),
        (["build", "//a:ä"], None),
        (["build", "//a:b c"], None),
        (["-C", "x", "build", "//a:all"], None),
        (["show", "//a:b"], None),
        ([], None),
    ],
)
def test_only_patterns_and_quiet_are_plain(arguments, patterns):
    assert plain_patterns(arguments, {}) == patterns


def test_a_question_for_completions_is_not_plain():
    assert plain_patterns(["build", "//a:all"], {"_GSUM_COMPLETE": "bash_complete"}) is None


def test_the_store_of_the_environment_is_asked(gsum, tmp_path):
    elsewhere = str(tmp_path / "elsewhere")
    for _ in range(3):
        ran = in_a_process(gsum, "build", "//dossier:S-1", GSUM_STORE=elsewhere)
    assert "click" not in ran.stderr.split()
    (tmp_path / "elsewhere").rename(tmp_path / "away")
    assert " 0 cached" in in_a_process(gsum, "build", "//dossier:S-1", GSUM_STORE=elsewhere).stdout


def test_what_is_to_do_is_done_after_the_look(gsum):
    manifest = gsum.root / "corpus/dossiers/S-2/documents/D-00.v1.txt"
    manifest.write_text(manifest.read_text() + "Note.\n")
    ran = in_a_process(gsum, "build", "//dossier:all", "--quiet")
    assert "8 targets, 6 cached" in ran.stdout
    assert "click" in ran.stderr.split()


def test_output_that_can_not_be_written_fails_as_the_command_does(gsum):
    command = [sys.executable, "-m", "gsum.cli", "build", "//dossier:all"]
    failures = set()
    for options in ([], ["--color", "never"]):
        with Path("/dev/full").open("w") as full:
            ran = subprocess.run(
                [*command, *options], cwd=gsum.root, env=clean_environment(), stdout=full, stderr=subprocess.PIPE
            )
        failures.add((ran.returncode, ran.stderr))
    assert failures == {(1, b"error: the system refused: No space left on device\n")}


def test_an_interrupt_ends_it_with_its_own_code(monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(plain, "plain_build", interrupted)
    monkeypatch.setattr(sys, "argv", ["gsum", "build", "//dossier:all"])
    with pytest.raises(SystemExit) as left:
        entry.main()
    assert left.value.code == 130
    assert capsys.readouterr().err == "error: interrupted\n"
