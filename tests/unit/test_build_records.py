"""What a build leaves in the store: observations, the first of two outputs, durable generations, its journal."""

from __future__ import annotations

import contextlib
import json

import msgspec
import pytest
from support import workspaces
from support.engine import results, run_build
from support.fake_executor import FakeExecutor
from support.fake_model import generate
from support.store_damage import flip_inline

from gsum.engine.commit import request_preimage
from gsum.engine.events import (
    ActionCached,
    ActionFinished,
    Equivocation,
    Miss,
    decode_event,
)
from gsum.store.canonical import canonical_json
from gsum.store.digests import blob_digest
from gsum.store.local import open_store
from gsum.store.records import Generation, How, InvocationStatus, StopReason


@pytest.fixture
def root(tmp_path):
    return workspaces.make_workspace(tmp_path / "ws", {"S-1": 12})


@pytest.fixture
def store(tmp_path):
    with_store = open_store(tmp_path / "store")
    yield with_store
    with_store.close()


def test_an_observation_holds_what_the_executor_saw(root, store):
    seen = {
        "seconds": 1.5,
        "device": "cpu",
        "dtype": "float32",
        "versions": {"model": "7"},
        "settings": {"threads": 1},
        "prompt_tokens": 11,
        "prefilled": 8,
        "reused": 3,
        "forced": 5,
        "sampled": 2,
    }

    class Seeing(FakeExecutor):
        def wait(self, timeout):
            return [msgspec.structs.replace(outcome, **seen) for outcome in super().wait(timeout)]

    built = run_build(root, store, "//dossier:S-1/leaf-00", executor=Seeing())
    entry = store.entries([built.universe.keys.actions["//dossier:S-1/leaf-00"].key]).popitem()[1]
    (data,) = store.observations(entry.request)
    observation = json.loads(data)
    assert {name: observation[name] for name in seen} == seen
    assert observation["request"] == entry.request
    assert observation["generation"] == entry.generation
    assert observation["invocation"] == built.report.invocation
    (finished,) = built.of(ActionFinished)
    assert (finished.prompt_tokens, finished.reused_tokens, finished.sampled_tokens) == (11, 3, 2)
    assert finished.new_tokens == built.report.new_tokens == 7


def test_of_two_builds_at_once_the_first_output_serves_both(root, store):
    """Another build answers a leaf's request, otherwise, while ours is still generating."""
    first = Generation((1,), '{"claims":[]}', StopReason.EOS)

    def answer(request):
        last = request.messages[-1].content
        if "P-1-00 " in last and "[1] Reference" in last:
            preimage = request_preimage(request)
            store.put_record(preimage)
            store.put_generation(preimage.key, canonical_json(first), b"{}")
        return generate(last)

    built = run_build(root, store, executor=FakeExecutor(answer=answer))
    leaf = "//dossier:S-1/leaf-00"
    assert [event.label for event in built.of(Equivocation)] == [leaf]
    entry = store.entries([built.universe.keys.actions[leaf].key]).popitem()[1]
    assert entry.generation == blob_digest(canonical_json(first))
    assert results(built, store)[leaf].claims == ()
    assert "P-1-00" not in str(results(built, store)["//dossier:S-1/root"].claims)
    assert built.report.exit_code == 0


def test_a_damaged_first_output_costs_nothing_of_what_comes_with_the_second(root, store, tmp_path):
    first = canonical_json(Generation((1,), '{"claims":[]}', StopReason.EOS))

    def answer(request):
        last = request.messages[-1].content
        if "P-1-00 " in last and "[1] Reference" in last:
            preimage = request_preimage(request)
            store.put_record(preimage)
            store.put_generation(preimage.key, first, b"{}")
            flip_inline(tmp_path / "store", "blob", "digest", blob_digest(first))
        return generate(last)

    built = run_build(root, store, executor=FakeExecutor(answer=answer))
    leaf = "//dossier:S-1/leaf-00"
    assert built.report.exit_code == 0
    assert [event.label for event in built.of(Equivocation)] == [leaf]
    entry = store.entries([built.universe.keys.actions[leaf].key]).popitem()[1]
    assert entry.generation == store.generation_for(entry.request) != blob_digest(first)
    assert "P-1-00" in str(results(built, store)[leaf].claims)


class Watched:
    """A store that notes for each generation put whether its transaction is durable, and how each one was opened."""

    def __init__(self, store):
        self._store = store
        self._open: list[bool] = []
        self.opened: list[bool] = []
        self.generations: list[bool] = []

    def __getattr__(self, name):
        return getattr(self._store, name)

    @contextlib.contextmanager
    def transaction(self, *, durable=False):
        self._open.append(durable)
        self.opened.append(durable)
        try:
            with self._store.transaction(durable=durable):
                yield
        finally:
            self._open.pop()

    def put_generations(self, made):
        self.generations += [any(self._open)] * len(made)
        return self._store.put_generations(made)


def test_a_generation_is_committed_durably_and_what_costs_no_call_is_not(root, store):
    watched = Watched(store)
    run_build(root, watched)
    assert watched.generations == [True] * 16
    workspaces.edit_text(root, "S-1", "D-11", workspaces.document_text("S-1", 11) + "\n\n")
    watched = Watched(store)
    assert run_build(root, watched).report.cut_off
    assert watched.generations == []
    assert not any(watched.opened)


def test_the_journal_holds_the_events_and_the_record(root, store):
    built = run_build(root, store)
    kept = [decode_event(data) for data in store.events(built.report.invocation)]
    assert kept == built.events
    assert all(event.reason is Miss.NEVER_BUILT for event in kept if isinstance(event, ActionFinished))
    (record,) = store.invocations(5)
    assert record.id == built.report.invocation
    assert record.labels("generated") == built.report.generated
    assert record.status is InvocationStatus.OK
    assert record.new_tokens == built.report.new_tokens > 0


def test_events_tell_hits_and_how_each_action_was_finished(root, store):
    run_build(root, store)
    workspaces.activate(root, "S-1", "D-00", "2")
    built = run_build(root, store, "//dossier:S-1")
    cached = {event.label.rsplit("/")[-1] for event in built.of(ActionCached)}
    assert cached == {"leaf-01", "leaf-02", "leaf-03", "reduce-01", "reduce-02"}
    assert [event.how for event in built.of(ActionFinished)] == [How.GENERATED.value] * 3
    assert all(event.previous is not None for event in built.of(ActionFinished))


def test_a_stored_request_holds_no_version_digest_or_offset(root, store):
    built = run_build(root, store)
    entry = store.entries([built.universe.keys.actions["//dossier:S-1/leaf-00"].key]).popitem()[1]
    request = json.loads(store.get_record(entry.request).data)
    asked = json.dumps(request["messages"])
    assert "D-00" not in asked
    assert built.universe.keys.actions["//dossier:S-1/leaf-00"].key[:12] not in asked
