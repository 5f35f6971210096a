"""Empty, cut or failed generations are cached as summaries and served for weeks (lmnr#1610, labs-OO-Agents#321,
graphrag#1861).
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support.engine import results, run_build
from support.fake_executor import FakeExecutor
from support.memory_store import MemoryStore
from support.workspaces import make_workspace

from gsum.engine.executors.protocol import Generated
from gsum.engine.serving import NotServed, serve
from gsum.engine.universe import WorkspaceDocuments, load_universe
from gsum.rules.claims import Status
from gsum.store.errors import ExitCode
from gsum.store.records import StopReason

LEAF = "//dossier:S-1/leaf-00"


class Cut(FakeExecutor):
    """Runs into the token limit, whatever it has written."""

    def _run(self, request):
        outcome = super()._run(request)
        assert isinstance(outcome, Generated)
        generation = msgspec.structs.replace(outcome.generation, stop=StopReason.LENGTH)
        return msgspec.structs.replace(outcome, generation=generation)


BROKEN = {
    "empty": FakeExecutor(answer=lambda _: ""),
    "white space": FakeExecutor(answer=lambda _: " \n"),
    "an apology": FakeExecutor(answer=lambda _: "I can't help with that."),
    "half an answer": FakeExecutor(answer=lambda _: '{"claims":[{"subject":"P-1-00"'),
    "a whole answer that ended by length": Cut(),
    "an error in the answer's place": FakeExecutor(answer=lambda _: '{"error":"rate limit"}'),
    "a number that is none": FakeExecutor(answer=lambda _: '{"claims":[{"subject":NaN}]}'),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_it_is_invalid_holds_no_claim_and_is_not_shown(tmp_path: Path, kind: str) -> None:
    root, store = make_workspace(tmp_path / "ws", {"S-1": 2}), MemoryStore()
    built = run_build(root, store, LEAF, executor=BROKEN[kind])
    assert built.report.exit_code == ExitCode.INVALID
    result = results(built, store)[LEAF]
    assert (result.status, result.claims) == (Status.INVALID, ())
    assert result.diagnostic
    universe = load_universe(root, [LEAF])
    with pytest.raises(NotServed) as caught:
        serve(universe, store, WorkspaceDocuments(universe.workspace), LEAF)
    assert caught.value.exit_code == ExitCode.INVALID


def test_the_broken_text_is_kept_for_whoever_looks_into_it(tmp_path: Path) -> None:
    root, store = make_workspace(tmp_path / "ws", {"S-1": 2}), MemoryStore()
    run_build(root, store, LEAF, executor=FakeExecutor(answer=lambda _: "I can't help with that."))
    (entry,) = store.kept_entries.values()
    assert b"I can't help with that." in store.get_blob(entry.generation)


def test_nothing_above_it_is_whole(tmp_path: Path) -> None:
    root, store = make_workspace(tmp_path / "ws", {"S-1": 3}), MemoryStore()
    first = iter([True])
    executor = FakeExecutor()
    good = FakeExecutor()

    def answer(request):
        from support.fake_model import generate

        return "" if next(first, False) else generate(request.messages[-1].content)

    executor = FakeExecutor(answer=answer)
    built = run_build(root, store, "//dossier:S-1/root", executor=executor)
    statuses = [result.status for result in results(built, store).values()]
    assert sorted(status.value for status in statuses) == ["INVALID", "PARTIAL", "VALID", "VALID"]
    assert run_build(root, store, "//dossier:S-1/root", executor=good).ran() == ()
