"""Batches made by hand are part of the key, so that another batch size starts all over (redun#137), one changed item
runs its whole batch again (llama_index#16394), or the batch size decides what is deleted (langchain#32612).
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.engine import results, run_build
from support.fake_executor import FakeExecutor
from support.memory_store import MemoryStore
from support.workspaces import activate, make_workspace


class Batched(FakeExecutor):
    """Takes `capacity` requests at once, and answers them in an order of its own."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity

    def wait(self, timeout):
        random.Random(self.capacity).shuffle(self._pending)
        return super().wait(timeout)


@pytest.mark.parametrize("capacity", [1, 2, 3, 7, 64])
def test_another_batch_size_finds_all_that_the_first_made(tmp_path: Path, capacity: int) -> None:
    root, store = make_workspace(tmp_path / "ws", {"S-1": 9}), MemoryStore()
    first = run_build(root, store, executor=Batched(4))
    other = Batched(capacity)
    assert run_build(root, store, executor=other).ran() == ()
    assert other.calls == []
    fresh = MemoryStore()
    again = run_build(root, fresh, executor=Batched(capacity))
    assert results(again, fresh) == results(first, store)
    assert fresh.kept_entries.keys() == store.kept_entries.keys()
    assert {key: rows[0][0] for key, rows in fresh.executions.items()} == {
        key: rows[0][0] for key, rows in store.executions.items()
    }


def test_one_changed_item_is_run_without_those_it_was_batched_with(tmp_path: Path) -> None:
    root, store = make_workspace(tmp_path / "ws", {"S-1": 9}), MemoryStore()
    run_build(root, store, executor=Batched(64))
    activate(root, "S-1", "D-04", "2")
    executor = Batched(64)
    run_build(root, store, executor=executor)
    assert sum("S-1/" in call.request.messages[-1].content for call in executor.calls) == 1
