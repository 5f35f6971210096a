"""Work that failed is recorded as done, and no later run takes it up: a hash written before the work
(llama_index#22638, #19579), failed upserts counted (langchain#40226), an exit code of 0 without outputs (bazel#14543),
errors cached (docetl#50).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import Gsum
from support.engine import run_build
from support.fake_executor import FakeExecutor
from support.memory_store import MemoryStore
from support.workspaces import make_workspace

from gsum.engine.executors.protocol import FailureReason

PARTS = ("leaf-00", "leaf-01", "leaf-02", "root")


@pytest.mark.parametrize("reason", list(FailureReason))
def test_whatever_the_reason_the_next_build_does_it(tmp_path: Path, reason: FailureReason) -> None:
    root, store = make_workspace(tmp_path / "ws", {"S-1": 3}), MemoryStore()
    failing = FakeExecutor(fails=lambda request: reason if "S-1/01" in request.messages[-1].content else None)
    built = run_build(root, store, executor=failing, keep_going=True)
    assert built.report.exit_code != 0
    assert built.report.failed == ("//dossier:S-1/leaf-01",)
    assert built.report.skipped == ("//dossier:S-1/root",)
    assert set(built.ran()) == {"leaf-00", "leaf-02"}
    assert {entry.label for entry in store.kept_entries.values()} == {"//dossier:S-1/leaf-00", "//dossier:S-1/leaf-02"}
    again = run_build(root, store)
    assert again.ran() == ("leaf-01", "root")
    assert run_build(root, store).ran() == ()


@pytest.mark.parametrize("fault", ["--crash-at", "--exit-at", "--error-at", "--garbage-at"])
def test_a_program_that_goes_down_leaves_nothing_that_looks_done(tmp_path: Path, fault: str) -> None:
    gsum = Gsum(tmp_path / "ws", {"S-1": 3}, fault, "2")
    first = gsum("build", "//dossier:S-1", "--json", "--keep-going")
    assert first.code != 0
    states = {one["label"]: one["state"] for one in gsum("status", "//dossier:S-1/...", "--json").document["targets"]}
    done = {label for label, state in states.items() if state == "VALID"}
    assert done == set(first.document["recomputed"])
    gsum.model()
    second = gsum("build", "//dossier:S-1", "--json").document
    assert set(second["recomputed"]) == set(states) - done
    assert gsum("show", "//dossier:S-1").code == 0
