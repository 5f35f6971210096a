"""Real builds as real processes: two at once on one store, and builds killed at random moments."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from support import workspaces

FAKE = Path(__file__).parents[1] / "support" / "fake_model.py"
NODES = 16


@pytest.fixture
def root(tmp_path):
    log = tmp_path / "calls"
    log.touch()
    command = json.dumps([sys.executable, str(FAKE), "--log", str(log), "--slow", "0.02"])
    toolchain = workspaces.FAKE_TOOLCHAIN.replace('["gsum-fake"]', command)
    return workspaces.make_workspace(tmp_path / "ws", {"S-1": 12}, toolchain=toolchain)


def calls(root: Path) -> Counter[str]:
    return Counter(line.split("\t")[0] for line in (root.parent / "calls").read_text().splitlines())


def start(root: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gsum.cli", *arguments, "-C", str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"GSUM_STORE": str(root.parent / "store")},
    )


def build(root: Path) -> dict:
    process = start(root, "build", "//dossier:S-1", "--json")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out)


def test_two_builds_at_once_agree_and_tear_nothing(root):
    processes = [start(root, "build", "//dossier:S-1", "--json") for _ in range(2)]
    reports = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        reports.append(json.loads(out))
    for report in reports:
        counted = len(report["cached"]) + len(report["recomputed"])
        assert counted == report["targets"] == NODES
        assert report["failed"] == []
    assert set(calls(root)) and max(calls(root).values()) <= 2
    assert build(root)["recomputed"] == []


def test_a_kill_at_any_moment_loses_no_finished_action(root):
    """A kill may cost what was in flight, never what was finished: a finished label never runs again."""
    choose = random.Random(7)
    finished: set[str] = set()
    kills = 0
    while len(finished) < NODES - 2 and kills < 12:
        process = start(root, "build", "//dossier:S-1")
        ran = labels(line for line, _ in zip(process.stdout, range(choose.randint(1, 4)), strict=False))
        time.sleep(choose.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
        ran |= labels(process.stdout)
        kills += 1
        assert not ran & finished
        finished |= ran
    assert kills >= 3
    report = build(root)
    assert len(report["cached"]) + len(report["recomputed"]) == NODES
    assert not set(report["recomputed"]) & finished
    # One program answers one request at a time: a kill costs at most the one that was being answered.
    assert sum(calls(root).values()) <= NODES + kills


def labels(lines: Iterable[str]) -> set[str]:
    """Return the labels of the actions that a build said were finished."""
    return {
        word for line in lines if line.startswith("  ") for word in line.split() if word.startswith("//dossier:S-1/")
    }
