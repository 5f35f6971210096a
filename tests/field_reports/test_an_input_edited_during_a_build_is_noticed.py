"""An input is hashed, edited, then used: the wrong result is cached under the right key and spreads (bazel#3360)."""

from __future__ import annotations

from pathlib import Path

from support.engine import TickingClock, results, run_build
from support.fake_executor import FakeExecutor
from support.memory_store import MemoryStore
from support.workspaces import document_text, edit_text, make_workspace

from gsum.engine.build import Build
from gsum.engine.report import BuildOptions
from gsum.engine.states import State, target_states
from gsum.engine.universe import WorkspaceDocuments, load_universe
from gsum.store.digests import blob_digest
from gsum.store.local import open_store

ROOT = "//dossier:S-1/root"
OLD, NEW = document_text("S-1", 0), document_text("S-1", 0).replace("Hall 1", "Hall 99")


class Editing(FakeExecutor):
    """Edits a document while a request for it is in flight."""

    def __init__(self, root: Path, document: str = "D-00") -> None:
        super().__init__()
        self._root, self._document = root, document

    def wait(self, timeout):
        edit_text(self._root, "S-1", self._document, NEW)
        return super().wait(timeout)


def test_edited_after_hashing_and_before_use_nothing_is_made_of_it(tmp_path: Path) -> None:
    root, store, executor = make_workspace(tmp_path / "ws", {"S-1": 2}), MemoryStore(), FakeExecutor()
    universe = load_universe(root, [ROOT])
    edit_text(root, "S-1", "D-00", NEW)
    build = Build(
        workspace=universe.workspace,
        graph=universe.graph,
        keys=universe.keys,
        store=store,
        documents=WorkspaceDocuments(universe.workspace),
        executor_for=lambda _: executor,
        emit=lambda _: None,
        interrupted=lambda: False,
        clock=TickingClock().clock,
        options=BuildOptions((ROOT,), universe.principal, "fake"),
    )
    report = build.run()
    assert (report.failed, report.exit_code) == (("//dossier:S-1/leaf-00",), 4)
    assert not {ROOT, "//dossier:S-1/leaf-00"} & set(report.recomputed)
    assert not any("Hall 99" in request.request.messages[-1].content for request in executor.calls)
    assert universe.keys.actions["//dossier:S-1/leaf-00"].key not in store.kept_entries


def test_edited_after_hashing_what_was_hashed_is_used_and_the_next_build_sees_the_edit(tmp_path: Path) -> None:
    root, index = make_workspace(tmp_path / "ws", {"S-1": 2}), tmp_path / "index"
    executor, again = Editing(root, "D-01"), FakeExecutor()
    with open_store(tmp_path / "store") as store:
        built = run_build(root, store, ROOT, executor=executor, jobs=1, index=index)
        assert built.ran() == ("leaf-00", "leaf-01", "root")
        assert built.report.exit_code == 0
        assert not any("Hall 99" in request.request.messages[-1].content for request in executor.calls)
        assert run_build(root, store, ROOT, executor=again, index=index).ran() == ("leaf-01", "root")
    assert "Hall 99" in again.calls[0].request.messages[-1].content


def test_edited_while_the_model_writes_the_old_text_s_result_is_kept_under_the_old_key(tmp_path: Path) -> None:
    root, store = make_workspace(tmp_path / "ws", {"S-1": 2}), MemoryStore()
    built = run_build(root, store, "//dossier:S-1/leaf-00", executor=Editing(root))
    result = results(built, store)["//dossier:S-1/leaf-00"]
    assert "Hall 1" in {claim.values["value"] for claim in result.claims}
    assert all(record.quote == OLD[record.start : record.end] for record in result.evidence)
    (entry,) = store.kept_entries.values()
    assert entry.sources == (blob_digest(OLD.encode()),)
    now = load_universe(root, [ROOT])
    assert target_states(now, store, ["//dossier:S-1/leaf-00"])["//dossier:S-1/leaf-00"].state is State.STALE
    assert run_build(root, store, "//dossier:S-1/leaf-00").ran() == ("leaf-00",)
