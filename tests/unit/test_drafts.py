"""Old answers as drafts: where a draft goes on after a difference, and which answers a build offers."""

import msgspec
import pytest
from support import workspaces
from support.engine import run_build
from support.fake_executor import FakeExecutor
from support.store_damage import flip_inline, sql

from gsum.engine.events import ActionFinished
from gsum.engine.llm.draft import Draft
from gsum.store.local import open_store


def foretold(old: str, new: str) -> str:
    """Return, for each character of `new`, whether a draft of `old` said so: itself, or a dot."""
    draft, seen = Draft([*old.encode()]), ""
    for character in new:
        token = ord(character)
        seen += character if draft.next == token else "."
        draft.follow([token])
    return seen


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("14 June, site Lyon", "14 June, site Lyon", "14 June, site Lyon"),
        ("14 June, site Lyon", "21 June, site Lyon", ".. June, site Lyon"),
        ("14 June, site Lyon", "4 December, site Lyon", "..............te Lyon"),
        ("14 June, site Lyon", "14 June, sent, site Lyon", "14 June, s.......te Lyon"),
        ("a site, b site", "c", "."),
        ("", "new", "..."),
        ("old", "older", "old.."),
    ],
)
def test_a_draft_goes_on_where_it_agrees_again(old, new, seen):
    assert foretold(old, new) == seen


def test_looking_ahead_moves_no_draft():
    draft = Draft([1, 2, 3, 4, 5, 6])
    draft.follow([1, 2])
    ahead = draft.fork()
    ahead.follow([3, 4])
    assert (draft.next, ahead.next) == (3, 5)


@pytest.fixture
def root(tmp_path):
    return workspaces.make_workspace(tmp_path / "ws", {"S-1": 5})


@pytest.fixture
def store(tmp_path):
    opened = open_store(tmp_path / "store")
    yield opened
    opened.close()


def offered(root, store, **options):
    """Build and return the drafts that came with requests, by the end of the prompt."""
    executor = FakeExecutor()
    run_build(root, store, executor=executor, **options)
    return [bytes(call.draft).decode() for call in executor.calls]


def test_what_an_edit_rebuilds_is_offered_what_it_said(root, store):
    first = FakeExecutor()
    built = run_build(root, store, executor=first, draft=True)
    assert [call.draft for call in first.calls] == [()] * len(built.ran())
    workspaces.activate(root, "S-1", "D-03", "2")
    executor = FakeExecutor()
    again = run_build(root, store, executor=executor, draft=True)
    assert again.ran() == ("leaf-03", "reduce-00", "root")
    leaf = executor.calls[0]
    assert b"March" in bytes(leaf.draft)
    assert "April" in leaf.request.messages[-1].content
    assert all(call.draft for call in executor.calls)
    observed = [msgspec.json.decode(data) for call in executor.calls for data in store.observations(call.key)]
    finished = [event for event in again.of(ActionFinished) if event.how == "generated"]
    assert [event.drafted_tokens for event in finished] == [one["drafted"] for one in observed]
    assert all(one["drafted"] > 0 for one in observed)


def test_drafts_are_offered_only_where_they_are_asked_for(root, store):
    offered(root, store)
    workspaces.activate(root, "S-1", "D-03", "2")
    assert set(offered(root, store)) == {""}
    workspaces.activate(root, "S-1", "D-03", "1")
    assert set(offered(root, store, full=True, draft=True)) == {""}


def test_a_damaged_old_answer_is_no_draft_and_stops_no_build(root, store, tmp_path):
    built = run_build(root, store, executor=FakeExecutor())
    keys = {label: keyed.key for label, keyed in built.universe.keys.actions.items()}
    leaf = store.entries([keys["//dossier:S-1/leaf-03"]]).popitem()[1]
    reduction = store.entries([keys["//dossier:S-1/reduce-00"]]).popitem()[1]
    flip_inline(tmp_path / "store", "blob", "digest", leaf.generation)
    sql(tmp_path / "store", "DELETE FROM blob WHERE digest = ?", (bytes.fromhex(reduction.generation),))
    workspaces.activate(root, "S-1", "D-03", "2")
    executor = FakeExecutor()
    again = run_build(root, store, executor=executor, draft=True)
    assert again.ran() == ("leaf-03", "reduce-00", "root")
    assert [bool(call.draft) for call in executor.calls] == [False, False]


def test_no_answer_of_another_perimeter_is_offered(root, store):
    offered(root, store)
    workspaces.withdraw(root, "S-1", "D-03")
    assert set(offered(root, store, draft=True)) == {""}


def test_a_draft_is_in_no_key(root, store):
    first = FakeExecutor()
    run_build(root, store, executor=first)
    workspaces.activate(root, "S-1", "D-03", "2")
    with_draft = FakeExecutor()
    run_build(root, store, executor=with_draft, draft=True)
    other = open_store(root.parent / "other")
    without = FakeExecutor()
    run_build(root, other, executor=without)
    other.close()
    keys = {call.key for call in without.calls}
    assert {call.key for call in with_draft.calls} <= keys
