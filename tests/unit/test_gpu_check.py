"""The GPU check's own code, on the CPU with a tiny model: what it writes, and that it can tell that bits moved."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPT = BENCHMARKS / "gpu_check.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, env=environment, check=False
    )


def test_on_the_cpu_it_writes_its_page_and_finds_the_schemes_invariant(tmp_path):
    small = ("--device", "cpu", "--shape", "tiny", "--requests", "3", "--single", "2", "--new-tokens", "6")
    ran = run(*small, "--write", "--out", str(tmp_path))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = json.loads((tmp_path / "gpu.json").read_text())
    [model] = found["models"]
    assert model["bitwise invariant"] is True
    assert [one["same logits at every step"] for one in model["invariance"]] == [2, 3, 3, 3]
    assert [way["requests"] for way in model["ways"]] == [2, 2, 3, 3, 3, 3]
    assert found["reference model"].startswith("not run: ")
    page = (tmp_path / "gpu.md").read_text()
    assert page == ran.stdout
    assert "Bitwise invariant: yes" in page


def test_without_a_gpu_it_says_so_and_measures_nothing(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    ran = run("--write", "--out", str(tmp_path))
    assert ran.returncode == 0
    assert "no CUDA device" in ran.stdout
    assert not list(tmp_path.iterdir())


def test_runs_are_compared_step_by_step(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from gpu.measure import Answer, Run, compared

    one = Run("one", {0: Answer((1, 2, 3), ("a", "b", "c")), 1: Answer((4,), ("d",))}, 1, 1.0, 0)
    other = Run("other", {0: Answer((1, 2, 9), ("a", "x", "y")), 1: Answer((4,), ("d",)), 2: Answer((), ())}, 1, 1.0, 0)
    moved = Run("moved", {0: Answer((1, 2, 3), ("a", "b", "z"))}, 1, 1.0, 0)
    assert compared(one, other) == {
        "of": "one and other",
        "requests": 2,
        "same tokens": 1,
        "same logits at every step": 1,
        "earliest step that differs": 1,
    }
    assert compared(one, moved)["same tokens"] == 1
    assert compared(one, moved)["same logits at every step"] == 0
    assert compared(one, one)["earliest step that differs"] is None
