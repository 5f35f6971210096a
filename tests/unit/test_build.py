"""Builds on a deterministic executor: exactly what runs after each edit, and what failures leave behind."""

from __future__ import annotations

import itertools

import pytest
from support import workspaces
from support.engine import results, run_build
from support.fake_executor import FakeExecutor
from support.fake_model import generate

from gsum.engine.events import (
    ActionFailed,
    ActionSkipped,
    BuildFinished,
    BuildStarted,
    Difference,
    Equivocation,
)
from gsum.engine.executors.protocol import FailureReason
from gsum.rules.claims import Status
from gsum.store.local import open_store
from gsum.store.records import InvocationStatus

LEAVES = tuple(f"leaf-{number:02}" for number in range(12))
ALL = (*LEAVES, "reduce-00", "reduce-01", "reduce-02", "root")


@pytest.fixture
def root(tmp_path):
    return workspaces.make_workspace(tmp_path / "ws", {"S-1": 12})


@pytest.fixture
def store(tmp_path):
    with_store = open_store(tmp_path / "store")
    yield with_store
    with_store.close()


def test_a_first_build_generates_every_node_once(root, store):
    executor = FakeExecutor()
    built = run_build(root, store, executor=executor)
    assert built.ran() == ALL
    assert built.report.generated == built.report.recomputed
    assert len(executor.calls) == 16
    assert built.report.exit_code == 0
    assert built.report.status is InvocationStatus.OK
    assert isinstance(built.events[0], BuildStarted)
    assert isinstance(built.events[-1], BuildFinished)


def test_leaves_tell_what_the_requests_begin_with_that_reduce_them(root, store):
    executor = FakeExecutor()
    run_build(root, store, executor=executor)
    reductions = {call.request.messages[: call.request.shared] for call in executor.calls[12:]}
    assert {call.then for call in executor.calls[:12]} == reductions
    assert {call.then for call in executor.calls[12:]} == {()}
    assert len(reductions) == 1
    assert () not in reductions


def test_a_second_build_runs_nothing_and_asks_for_nothing_below_the_roots(root, store):
    run_build(root, store)
    executor = FakeExecutor()
    built = run_build(root, store, "//dossier:S-1", executor=executor)
    assert built.ran() == ()
    assert executor.calls == []
    assert len(built.report.cached) == built.report.targets == 16
    assert [type(event) for event in built.events] == [BuildStarted, BuildFinished]


def test_one_edit_recomputes_one_leaf_and_its_two_ancestors(root, store):
    run_build(root, store)
    workspaces.activate(root, "S-1", "D-11", "2")
    executor = FakeExecutor()
    built = run_build(root, store, executor=executor)
    assert built.ran() == ("leaf-11", "reduce-02", "root")
    assert len(built.report.cached) == 13
    assert len(executor.calls) == len(built.report.generated)


def test_an_edit_that_leaves_the_lines_alone_is_cut_off_at_the_leaf(root, store):
    run_build(root, store)
    workspaces.edit_text(root, "S-1", "D-11", workspaces.document_text("S-1", 11) + "\n\n")
    executor = FakeExecutor()
    built = run_build(root, store, executor=executor)
    assert built.report.cut_off == built.report.recomputed
    assert built.ran() == ("leaf-11", "reduce-02", "root")
    assert executor.calls == []


def test_a_cut_off_result_cites_the_new_version(root, store):
    run_build(root, store)
    text = workspaces.document_text("S-1", 0)
    workspaces.edit_text(root, "S-1", "D-00", "\n" + text, version="2")
    workspaces.activate(root, "S-1", "D-00", "2")
    built = run_build(root, store)
    assert built.report.generated == ()
    cited = [record for record in results(built, store)["//dossier:S-1/root"].evidence if record.doc_id == "D-00"]
    assert {record.version for record in cited} == {"2"}
    assert all(("\n" + text)[record.start : record.end] == record.quote for record in cited)


def test_a_reduce_prompt_edit_leaves_leaves_alone(root, store):
    run_build(root, store)
    workspaces.set_prompt(root, "reduce-v1", "Keep quantities.")
    assert run_build(root, store).ran() == ("reduce-00", "reduce-01", "reduce-02", "root")


def test_touching_a_file_runs_nothing(root, store):
    run_build(root, store)
    for file in root.rglob("*"):
        file.touch()
    assert run_build(root, store).ran() == ()


def test_withdrawing_recomputes_without_a_call_for_the_leaf(root, store):
    run_build(root, store)
    workspaces.withdraw(root, "S-1", "D-04")
    executor = FakeExecutor()
    built = run_build(root, store, executor=executor)
    assert built.ran() == ("leaf-04", "reduce-01", "root")
    assert [label.rsplit("/")[-1] for label in built.report.ineligible] == ["leaf-04"]
    assert len(executor.calls) == 2
    assert results(built, store)["//dossier:S-1/root"].status is Status.VALID


def test_going_back_is_served_and_becomes_the_latest(root, store):
    first = run_build(root, store)
    workspaces.activate(root, "S-1", "D-11", "2")
    run_build(root, store)
    workspaces.activate(root, "S-1", "D-11", "1")
    back = run_build(root, store)
    assert back.ran() == ()
    label = "//dossier:S-1/root"
    assert store.latest(label, workspaces.READER, "fake").key == first.universe.keys.actions[label].key


def test_counting_holds(root, store):
    workspaces.withdraw(root, "S-1", "D-04")
    fails = FakeExecutor(
        fails=lambda request: FailureReason.CRASH if "P-1-00 " in request.messages[-1].content else None
    )
    report = run_build(root, store, "//...", executor=fails, keep_going=True).report
    lists = (report.cached, report.recomputed, report.failed, report.skipped)
    assert sum(len(labels) for labels in lists) == report.targets == 16 + 13
    assert len(set(itertools.chain(*lists))) == report.targets
    parts = (report.generated, report.cut_off, report.ineligible, report.pure)
    assert sorted(itertools.chain(*parts)) == sorted(report.recomputed)


def test_a_failed_leaf_skips_its_ancestors_and_is_tried_again(root, store):
    def crash(request):
        return FailureReason.CRASH if "P-1-00 " in request.messages[-1].content else None

    built = run_build(root, store, executor=FakeExecutor(fails=crash), keep_going=True)
    assert built.report.failed == ("//dossier:S-1/leaf-00",)
    assert built.report.skipped == ("//dossier:S-1/reduce-00", "//dossier:S-1/root")
    assert {event.because for event in built.of(ActionSkipped)} == {"//dossier:S-1/leaf-00"}
    assert built.report.exit_code == 1
    assert run_build(root, store).ran() == ("leaf-00", "reduce-00", "root")


def test_without_keep_going_nothing_starts_after_a_failure(root, store):
    crash = FakeExecutor(fails=lambda request: FailureReason.CRASH)
    built = run_build(root, store, executor=crash)
    assert 1 <= len(built.report.failed) <= FakeExecutor.capacity
    assert built.report.recomputed == ()
    assert len(built.report.failed) + len(built.report.skipped) == 16


def test_a_missing_model_is_exit_6(root, store):
    built = run_build(root, store, executor=FakeExecutor(fails=lambda _: FailureReason.MODEL_MISSING))
    assert built.report.exit_code == 6
    assert all(event.exit_code == 6 for event in built.of(ActionFailed))


def test_failures_of_different_kinds_are_exit_1(root, store):
    reasons = {"P-1-00 ": FailureReason.MODEL_MISSING, "P-1-05 ": FailureReason.CRASH}

    def fail(request):
        return next((reason for product, reason in reasons.items() if product in request.messages[-1].content), None)

    built = run_build(root, store, executor=FakeExecutor(fails=fail), keep_going=True)
    assert {event.exit_code for event in built.of(ActionFailed)} == {1, 6}
    assert built.report.exit_code == 1


def test_an_invalid_generation_is_kept_and_makes_ancestors_partial(root, store):
    def answer(request):
        last = request.messages[-1].content
        return "no json" if "P-1-00 " in last and "[1] Reference" in last else generate(last)

    built = run_build(root, store, executor=FakeExecutor(answer=answer))
    found = results(built, store)
    assert found["//dossier:S-1/leaf-00"].status is Status.INVALID
    assert found["//dossier:S-1/leaf-00"].claims == ()
    assert found["//dossier:S-1/reduce-00"].status is Status.PARTIAL
    assert found["//dossier:S-1/root"].status is Status.PARTIAL
    assert found["//dossier:S-1/reduce-01"].status is Status.VALID
    assert built.report.exit_code == 7  # //dossier:... asks for the leaf too
    assert run_build(root, store, "//dossier:S-1").report.exit_code == 0
    assert run_build(root, store, "//dossier:S-1/leaf-00").report.exit_code == 7


def test_an_interruption_keeps_what_is_finished(root, store):
    executor = FakeExecutor()
    built = run_build(root, store, executor=executor, interrupted=lambda: len(executor.calls) >= 4)
    assert built.report.status is InvocationStatus.INTERRUPTED
    assert built.report.exit_code == 130
    assert 4 <= len(built.report.recomputed) < 16
    again = FakeExecutor()
    run_build(root, store, executor=again)
    assert len(again.calls) == 16 - len(executor.calls)


@pytest.mark.parametrize(
    ("error", "status"),
    [(KeyboardInterrupt, InvocationStatus.INTERRUPTED), (RuntimeError, InvocationStatus.FAILED)],
)
def test_a_build_that_is_cut_short_is_recorded_as_what_it_was(root, store, error, status):
    class Stopped(FakeExecutor):
        def wait(self, timeout):
            if len(self.calls) >= 4:
                raise error
            return super().wait(timeout)

    with pytest.raises(error):
        run_build(root, store, executor=Stopped())
    (record,) = store.invocations(1)
    assert (record.status, record.exit_code) == (status, None)
    assert len(run_build(root, store).report.cached) >= 4


def test_a_full_build_calls_the_model_for_every_active_node_and_finds_no_difference(root, store):
    run_build(root, store)
    executor = FakeExecutor()
    built = run_build(root, store, executor=executor, full=True)
    assert len(executor.calls) == 16
    assert built.report.differences == ()
    assert built.report.exit_code == 0


def test_a_full_build_reports_differences_and_changes_nothing_that_is_served(root, store):
    before = run_build(root, store)
    kept = results(before, store)
    other = FakeExecutor(answer=lambda request: '{"claims":[]}')
    built = run_build(root, store, executor=other, full=True)
    assert built.report.exit_code == 8
    assert {difference.label for difference in built.of(Difference)} == set(before.report.recomputed)
    assert built.of(Equivocation)
    assert results(before, store) == kept
    assert run_build(root, store).ran() == ()


def test_a_full_build_of_what_was_never_served_reports_that_its_requests_were_answered_otherwise(tmp_path, store):
    root = workspaces.make_workspace(tmp_path / "small", {"S-1": 2})
    run_build(root, store)
    for document in ("D-00", "D-01"):  # new keys all over, and the old requests
        number = int(document[-2:])
        workspaces.edit_text(root, "S-1", document, workspaces.document_text("S-1", number) + "\n\n")
    built = run_build(root, store, executor=FakeExecutor(answer=lambda _: '{"claims":[]}'), full=True)
    leaves = [f"//dossier:S-1/{document}" for document in ("leaf-00", "leaf-01")]
    assert [(found.label, found.what) for found in built.report.differences] == [
        (label, ("generation",)) for label in leaves
    ]
    assert built.report.exit_code == 8
    assert results(built, store) == {}
    assert run_build(root, store).report.generated == ()


def test_another_principal_shares_nothing(root, store):
    run_build(root, store)
    executor = FakeExecutor()
    built = run_build(root, store, executor=executor, principal="stranger")
    assert executor.calls == []
    assert set(built.report.ineligible) == set(built.report.recomputed)
    assert results(built, store)["//dossier:S-1/root"].status is Status.INELIGIBLE


def test_two_leaves_with_the_same_request_call_the_model_once(root, tmp_path, store):
    # Two packages with one rule, prompt and schema: equal keys, so one result serves both labels.
    text = (root / "BUILD.toml").read_text()
    section = text[text.index("[package.dossier]") : text.index("[package.baseline]")]
    (root / "BUILD.toml").write_text(text + section.replace("[package.dossier]", "[package.twin]"))
    executor = FakeExecutor()
    built = run_build(root, store, "//dossier:...", "//twin:...", executor=executor)
    assert len(executor.calls) == 16
    assert built.report.targets == 32
    assert len(built.report.generated) == 16
    assert len(built.report.cut_off) == 16


def test_a_new_salt_disowns_results_and_generations(root, store):
    run_build(root, store)
    workspaces.edit_build(root, 'name = "test"', 'name = "test"\nsalt = "x"')
    executor = FakeExecutor()
    built = run_build(root, store, executor=executor)
    assert built.ran() == ALL
    assert len(executor.calls) == 16
    assert built.report.cut_off == ()
