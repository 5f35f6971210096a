"""Done-markers named after a job are lost with it: a resubmission starts from nothing (aibrix#2535), a stopped run of
hours can't be taken up (graphrag#1677), an error erases progress (curator#296).
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.cli import Gsum
from support.engine import run_build
from support.fake_executor import FakeExecutor
from support.memory_store import MemoryStore
from support.workspaces import make_workspace


@pytest.mark.parametrize("after", [1, 3, 6, 10])
def test_a_stopped_build_is_taken_up_where_it_stopped(tmp_path: Path, after: int) -> None:
    root, store = make_workspace(tmp_path / "ws", {"S-1": 9}), MemoryStore()
    executor = FakeExecutor()
    executor.capacity = 1
    first = run_build(root, store, executor=executor, interrupted=lambda: len(executor.calls) >= after)
    assert first.report.exit_code == 130
    done = len(executor.calls)
    second = run_build(root, store, executor=executor)
    assert second.report.invocation != first.report.invocation
    assert set(second.ran()).isdisjoint(first.ran())
    keys = [call.key for call in executor.calls]
    assert len(keys) == len(set(keys)) == 13
    assert done == after


def test_a_killed_program_elsewhere_is_resumed_under_another_name_and_path(tmp_path: Path) -> None:
    first = Gsum(tmp_path / "one", {"S-1": 6}, "--exit-at", "4", "--slow", "0.05")  # slow: one request at a time
    assert first("build", "//dossier:S-1").code != 0
    done = first.calls - 1
    shutil.copytree(first.root, tmp_path / "other place")
    second = Gsum.__new__(Gsum)
    second.root, second.log = tmp_path / "other place", tmp_path / "second.calls"
    second.model()
    built = second("build", "//dossier:S-1", "--json").document
    assert (built["status"], len(built["cached"])) == ("ok", done)
    assert second.calls == 9 - done
