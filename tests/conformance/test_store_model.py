"""Random sequences of calls: a local store answers as the plain dictionaries of the reference model do."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.memory_store import MemoryStore
from support.store_examples import example, invocation, target

from gsum.store.api import Built, Made
from gsum.store.digests import Digest, RecordKind, blob_digest
from gsum.store.faults import BlobMissing
from gsum.store.local import open_store
from gsum.store.records import InvocationStatus

NUMBERS = st.integers(0, 5)
CONTENTS = {"none": b"", "small": b"a", "pages": b"b" * 5000, "file": b"c" * 70_000, "file2": b"d" * 70_001}
BLOBS = st.sampled_from(list(CONTENTS)).map(lambda name: CONTENTS[name])
NAMES = st.sampled_from(["a", "b"])


class UndoError(Exception):
    """Ends a block that shall leave no trace."""


class StoreAgainstModel(RuleBasedStateMachine):
    """Every rule does the same to both stores; the invariant compares all that can be read."""

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gsum-model-"))
        self.store = open_store(self.folder / "store")
        self.model = MemoryStore()
        self.open_blocks: list[ExitStack] = []

    def both(self, call):
        ours, theirs = (self.outcome(call, store) for store in (self.store, self.model))
        assert ours == theirs

    @staticmethod
    def outcome(call, store):
        try:
            return call(store)
        except BlobMissing as error:
            return type(error), error.facts

    @rule(data=BLOBS)
    def put_blob(self, data):
        self.both(lambda store: store.put_blob(data))

    @rule(number=NUMBERS, kind=st.sampled_from([RecordKind.ACTION, RecordKind.REQUEST]))
    def put_record(self, number, kind):
        parts = {RecordKind.ACTION: example(number).action, RecordKind.REQUEST: example(number).request}
        self.both(lambda store: store.put_record(parts[kind]))

    @rule(number=NUMBERS, data=BLOBS, observation=st.sampled_from([b"o", b"p"]))
    def put_generation(self, number, data, observation):
        self.both(lambda store: store.put_generation(example(number).request.key, data, observation))

    @rule(number=NUMBERS, data=st.tuples(BLOBS, BLOBS, BLOBS), pure=st.booleans(), by=NAMES)
    def put_entry(self, number, data, pure, by):
        entry = example(number).entry(*map(blob_digest, data))
        if pure:
            entry = msgspec.structs.replace(entry, request=None, generation=None)
        self.both(lambda store: store.put_entry(msgspec.structs.replace(entry, invocation=by)))

    @rule(label=NAMES, number=NUMBERS, toolchain=NAMES, by=NAMES)
    def put_target(self, label, number, toolchain, by):
        ref = target(label, example(number).action.key, toolchain=toolchain, invocation=by)
        self.both(lambda store: store.put_target(ref))

    @rule(contents=st.lists(BLOBS, max_size=4))
    def put_blobs(self, contents):
        self.both(lambda store: store.put_blobs(contents))

    @rule(numbers=st.lists(NUMBERS, max_size=4))
    def put_records(self, numbers):
        self.both(lambda store: store.put_records([example(number).request for number in numbers]))

    @rule(made=st.lists(st.tuples(NUMBERS, BLOBS, st.sampled_from([b"o", b"p"])), max_size=4))
    def put_generations(self, made):
        batch = [Made(example(number).request, data, observation) for number, data, observation in made]
        self.both(lambda store: store.put_generations(batch))

    @rule(made=st.lists(st.tuples(NUMBERS, BLOBS, NAMES), max_size=4))
    def put_entries(self, made):
        plain = [(example(number).entry(*[blob_digest(data)] * 3), by) for number, data, by in made]
        batch = [msgspec.structs.replace(entry, request=None, generation=None, invocation=by) for entry, by in plain]
        self.both(lambda store: store.put_entries(batch))

    @rule(
        made=st.lists(st.tuples(NUMBERS, st.tuples(BLOBS, BLOBS, BLOBS), st.booleans(), NAMES, NAMES), max_size=4),
        label=NAMES,
    )
    def put_built(self, made, label):
        batch = []
        for number, data, pure, by, toolchain in made:
            whole = example(number)
            entry = msgspec.structs.replace(whole.entry(*map(blob_digest, data)), invocation=by, label=label)
            if pure:
                entry = msgspec.structs.replace(entry, request=None, generation=None)
            batch.append(Built(entry, whole.action, whole.perimeter, "reader-demo", toolchain))
        self.both(lambda store: store.put_built(batch))

    @rule(made=st.lists(st.tuples(NAMES, NUMBERS, NAMES, NAMES), max_size=4))
    def put_targets(self, made):
        batch = [
            target(label, example(number).action.key, toolchain=toolchain, invocation=by)
            for label, number, toolchain, by in made
        ]
        self.both(lambda store: store.put_targets(batch))

    @rule(name=NAMES, status=st.sampled_from(InvocationStatus))
    def finish(self, name, status):
        self.both(lambda store: store.finish(msgspec.structs.replace(invocation(name), status=status)))

    @rule(name=NAMES)
    def begin(self, name):
        self.both(lambda store: store.begin(invocation(name)))

    @rule(name=NAMES, events=st.lists(st.binary(max_size=3), max_size=3))
    def append_events(self, name, events):
        self.both(lambda store: store.append_events(name, events))

    @rule(durable=st.booleans())
    def enter(self, durable):
        block = ExitStack()
        for store in (self.store, self.model):
            block.enter_context(store.transaction(durable=durable))
        self.open_blocks.append(block)

    @rule(undo=st.booleans())
    def leave(self, undo):
        if not self.open_blocks:
            return
        block = self.open_blocks.pop()
        if not undo:
            block.close()
            return
        with pytest.raises(UndoError), block:
            raise UndoError

    @rule()
    def reopen(self):
        if not self.open_blocks:
            self.store.close()
            self.store = open_store(self.folder / "store")

    @invariant()
    def all_that_can_be_read_is_equal(self):
        requests = [example(number).request.key for number in range(6)]
        self.both(lambda store: store.entries([example(number).action.key for number in range(6)]))
        self.both(lambda store: [store.generations(request) for request in requests])
        self.both(lambda store: [store.generation_for(request) for request in requests])
        self.both(lambda store: [store.observations(request) for request in requests])
        self.both(lambda store: [store.target_history(label, "reader-demo") for label in "ab"])
        self.both(lambda store: [store.latest(label, "reader-demo", "a") for label in "ab"])
        self.both(lambda store: store.latest_of(["a", "b", "c"], "reader-demo", "b"))
        self.both(lambda store: store.generations_for(requests))
        self.both(lambda store: (store.invocations(9), store.events("a"), store.events("b")))
        names = self.model.find("")
        self.both(lambda store: store.find(""))
        self.both(lambda store: store.missing_blobs(map(Digest, names)))
        self.both(lambda store: [store.get_blob(digest) for digest in self.model.blobs])
        self.both(lambda store: store.get_blobs(self.model.blobs))
        self.both(lambda store: [store.get_record(key) for key in self.model.records])

    def teardown(self) -> None:
        if hasattr(self, "store"):
            while self.open_blocks:
                self.open_blocks.pop().close()
            self.store.close()
            shutil.rmtree(self.folder)


TestStoreAgainstModel = StoreAgainstModel.TestCase
TestStoreAgainstModel.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
