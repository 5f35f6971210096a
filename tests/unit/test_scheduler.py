"""What flies at a time, what a failure stops, what a build holds in memory: on real builds of test workspaces."""

from __future__ import annotations

import gc

import pytest
from support import workspaces
from support.engine import run_build
from support.fake_executor import FakeExecutor

from gsum.engine.events import ActionFailed, ActionFinished, ActionSkipped, ActionStarted
from gsum.engine.executors.protocol import FailureReason
from gsum.engine.universe import load_universe
from gsum.rules.claims import Result
from gsum.store.faults import StoreFull
from gsum.store.local import open_store

BAD = "P-1-00 "


@pytest.fixture
def root(tmp_path):
    return workspaces.make_workspace(tmp_path / "ws", {"S-1": 12})


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "store") as opened:
        yield opened


def fail_the_first(request):
    return FailureReason.CRASH if BAD in request.messages[-1].content else None


class OneByOne(FakeExecutor):
    """Answers one request at each `wait`, and notes how many it had at most and what was given up."""

    capacity = 6

    def __init__(self, **options) -> None:
        super().__init__(**options)
        self.most = 0
        self.given_up = 0

    def submit(self, requests):
        super().submit(requests)
        self.most = max(self.most, len(self._pending))

    def wait(self, timeout):
        later, self._pending = self._pending[1:], self._pending[:1]
        try:
            return super().wait(timeout)
        finally:
            self._pending = later

    def cancel(self):
        self.given_up += len(self._pending)
        super().cancel()


def test_an_executor_is_given_as_much_as_it_wants(root, store):
    executor = OneByOne()
    run_build(root, store, executor=executor)
    assert executor.most == OneByOne.capacity


@pytest.mark.parametrize("jobs", [1, 3])
def test_jobs_bound_the_requests_in_flight(root, store, jobs):
    executor = OneByOne()
    built = run_build(root, store, executor=executor, jobs=jobs)
    assert executor.most == jobs
    assert len(built.report.generated) == 16


def test_after_a_failure_what_is_in_flight_lands_and_nothing_more_starts(root, store):
    executor = OneByOne(fails=fail_the_first)
    built = run_build(root, store, executor=executor)
    assert built.report.failed == ("//dossier:S-1/leaf-00",)
    assert [label.rsplit("/")[-1] for label in built.report.generated] == [f"leaf-0{n}" for n in range(1, 6)]
    assert executor.given_up == 0
    assert len(built.report.skipped) == 10


def test_fail_fast_gives_up_what_is_in_flight(root, store):
    executor = OneByOne(fails=fail_the_first)
    built = run_build(root, store, executor=executor, fail_fast=True)
    assert built.report.failed == ("//dossier:S-1/leaf-00",)
    assert built.report.generated == ()
    assert executor.given_up == 5
    assert len(built.report.skipped) == 15
    because = {event.label.rsplit("/")[-1]: event.because for event in built.of(ActionSkipped)}
    assert because["root"] == because["reduce-00"] == "//dossier:S-1/leaf-00"
    assert because["leaf-01"] is None
    assert built.report.exit_code == 1


def test_fail_fast_keeps_what_had_already_been_answered(root, store):
    executor = FakeExecutor(fails=fail_the_first)
    built = run_build(root, store, executor=executor, fail_fast=True)
    assert len(built.report.generated) == FakeExecutor.capacity - 1
    assert run_build(root, store).report.failed == ()


def test_keep_going_wins_nothing_over_the_default_when_nothing_fails(root, store):
    assert len(run_build(root, store, keep_going=True, executor=OneByOne()).report.generated) == 16


def test_starts_follow_the_critical_path_and_the_plan(tmp_path, store):
    root = workspaces.make_workspace(tmp_path / "two", {"S-1": 2, "S-2": 12})
    built = run_build(root, store, executor=OneByOne(), jobs=1)
    started = [event.label.partition(":")[2] for event in built.of(ActionStarted)]
    assert started[:12] == [f"S-2/leaf-{number:02}" for number in range(12)]
    # One generation from the end: the other dossier's leaves, and the reductions, in the order of the plan.
    assert started[12:17] == ["S-1/leaf-00", "S-1/leaf-01", "S-2/reduce-00", "S-2/reduce-01", "S-2/reduce-02"]


def test_a_start_is_told_before_its_end_and_both_are_in_the_journal(root, store):
    built = run_build(root, store, executor=OneByOne())
    for label in built.report.generated:
        told = [type(event) for event in built.events if getattr(event, "label", None) == label]
        assert told == [ActionStarted, ActionFinished]
    assert len(store.events(built.report.invocation)) == len(built.events)


def test_an_edit_of_layout_that_changes_no_claim_costs_one_call(root, store):
    run_build(root, store)
    text = workspaces.document_text("S-1", 5)
    workspaces.edit_text(root, "S-1", "D-05", text.replace("Reference S-1/05.", "Reference  S-1/05."))
    executor = FakeExecutor()
    built = run_build(root, store, executor=executor)
    assert [label.rsplit("/")[-1] for label in built.report.generated] == ["leaf-05"]
    assert [label.rsplit("/")[-1] for label in built.report.cut_off] == ["reduce-01", "root"]
    assert len(executor.calls) == 1


class Counting(FakeExecutor):
    """Notes how many results are alive whenever it is asked."""

    most = 0

    def submit(self, requests):
        super().submit(requests)
        self.most = max(self.most, sum(isinstance(one, Result) for one in gc.get_objects()))


def test_results_are_let_go_as_they_are_read(tmp_path, monkeypatch):
    """Ten times the dossiers, no more results in memory: a build holds what is still to be read, up to a bound."""
    monkeypatch.setattr("gsum.engine.frontier.HELD", 24)
    most = []
    for count in (4, 40):
        root = workspaces.make_workspace(tmp_path / f"ws{count}", {f"S-{number}": 6 for number in range(1, count + 1)})
        executor = Counting()
        with open_store(tmp_path / f"store{count}") as store:
            built = run_build(root, store, executor=executor)
        assert len(built.report.recomputed) == 9 * count
        most.append(executor.most)
    assert most[1] <= 24 + 16
    assert most[1] <= most[0] + 16


class Editing(OneByOne):
    """Rewrites a document before the second answer: it was surveyed and is not read yet."""

    def __init__(self, file, **options) -> None:
        super().__init__(**options)
        self._file = file

    def wait(self, timeout):
        if len(self.calls) == 1:
            self._file.write_text("Product P-1-08 site: Hall 99.\n")
        return super().wait(timeout)


def test_a_document_that_changes_during_a_build_costs_its_summaries_and_no_others(root, store):
    file = root / "corpus/dossiers/S-1/documents/D-08.v1.txt"
    built = run_build(root, store, executor=Editing(file), jobs=1, keep_going=True)
    (failed,) = built.of(ActionFailed)
    assert (failed.label, failed.reason, failed.exit_code) == ("//dossier:S-1/leaf-08", "source_changed", 4)
    assert failed.facts["file"] == "corpus/dossiers/S-1/documents/D-08.v1.txt"
    assert built.report.exit_code == 4
    assert {label.rpartition("/")[2] for label in built.report.skipped} == {"reduce-02", "root"}
    assert len(built.report.generated) == 13
    assert run_build(root, store).ran() == ("leaf-08", "reduce-02", "root")


def test_a_document_that_changes_during_a_build_ends_it_as_any_failure_does(root, store):
    file = root / "corpus/dossiers/S-1/documents/D-08.v1.txt"
    built = run_build(root, store, executor=Editing(file), jobs=1)
    assert built.report.failed == ("//dossier:S-1/leaf-08",)
    assert built.report.exit_code == 4
    assert [label.rpartition("/")[2] for label in built.report.generated] == [f"leaf-{n:02}" for n in range(8)]


def test_a_commit_holds_no_more_text_than_its_bound_and_what_the_last_action_adds(root, store, monkeypatch):
    kept, real = [], store.put_built
    monkeypatch.setattr(store, "put_built", lambda built: kept.append(len(built)) or real(built))
    text = workspaces.document_text("S-1", 0)
    monkeypatch.setattr("gsum.engine.scheduler.GROUP_CHARACTERS", 2 * len(text) + 1)
    assert len(run_build(root, store, "//baseline:S-1").report.recomputed) == sum(kept)
    assert max(kept) == kept[0] == 3


def test_while_requests_in_flight_hold_as_much_text_as_they_may_none_is_added(root, store, monkeypatch):
    monkeypatch.setattr("gsum.engine.scheduler.GROUP_CHARACTERS", 1)
    executor = OneByOne()
    leaves = [f"//dossier:S-1/leaf-{number:02d}" for number in range(4)]
    report = run_build(root, store, *leaves, executor=executor).report
    assert report.generated == tuple(leaves)
    assert executor.most == 1


class Landing(OneByOne):
    """What it was given has landed by the time it is cancelled."""

    def cancel(self):
        return


def test_what_lands_after_a_commit_that_failed_is_kept_with_all_it_refers_to(root, store, monkeypatch):
    real, failed = store.put_built, []

    def fail_first(built):
        kept = real(built)
        if not failed:
            failed.append(True)
            raise StoreFull(root, "for a moment")
        return kept

    monkeypatch.setattr(store, "put_built", fail_first)
    with pytest.raises(StoreFull):
        run_build(root, store, executor=Landing())
    keys = load_universe(root, ["//dossier:..."]).keys
    kept = store.entries([keyed.key for keyed in keys.actions.values()])
    assert [entry.label for entry in kept.values()] == ["//dossier:S-1/leaf-01"]
    assert store.missing_records(keys.refs["//dossier:S-1/leaf-01"]) == set()
