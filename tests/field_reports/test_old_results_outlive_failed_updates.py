"""The old result is deleted before the new one is there, and a failure loses both (llama_index#22639, #22759;
langchain#22135).
"""

from __future__ import annotations

from pathlib import Path

from support.engine import run_build
from support.fake_executor import FakeExecutor
from support.memory_store import MemoryStore
from support.workspaces import activate, make_workspace

from gsum.engine.executors.protocol import FailureReason


def test_an_update_that_fails_takes_nothing_away(tmp_path: Path) -> None:
    root, store = make_workspace(tmp_path / "ws", {"S-1": 3}), MemoryStore()
    run_build(root, store)
    entries, blobs = dict(store.kept_entries), dict(store.blobs)
    activate(root, "S-1", "D-01", "2")
    failed = run_build(root, store, executor=FakeExecutor(fails=lambda _: FailureReason.CRASH))
    assert failed.report.failed == ("//dossier:S-1/leaf-01",)
    assert entries.items() <= store.kept_entries.items()
    assert blobs.items() <= store.blobs.items()
    activate(root, "S-1", "D-01", "1")
    executor = FakeExecutor()
    assert run_build(root, store, executor=executor).ran() == ()
    assert executor.calls == []


def test_an_update_that_succeeds_takes_nothing_away_either(tmp_path: Path) -> None:
    root, store = make_workspace(tmp_path / "ws", {"S-1": 3}), MemoryStore()
    run_build(root, store)
    entries, blobs = dict(store.kept_entries), dict(store.blobs)
    activate(root, "S-1", "D-01", "2")
    assert run_build(root, store).ran() == ("leaf-01", "root")
    assert entries.items() <= store.kept_entries.items()
    assert blobs.items() <= store.blobs.items()
