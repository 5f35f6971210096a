"""What every backend of `gsum.store.api.Store` owes, seen through its interface alone."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.store_examples import example, invocation, keep, target

from gsum.store.api import Made
from gsum.store.digests import Digest, Key, Preimage, RecordKind, blob_digest, derive_key, preimage_of
from gsum.store.faults import BlobCorrupt, BlobMissing
from gsum.store.records import How
from gsum.store.schema import INLINE_LIMIT

ABSENT = Digest("ab" * 32)
SIZES = [0, 1, 4096, INLINE_LIMIT - 1, INLINE_LIMIT, INLINE_LIMIT + 1, 1_000_000]


@pytest.mark.parametrize("size", SIZES)
def test_a_blob_comes_back_from_another_opening(store_factory, size):
    data = bytes(number % 251 for number in range(size))
    digest = store_factory.open().put_blob(data)
    assert digest == blob_digest(data)
    assert store_factory.open().get_blob(digest) == data


@pytest.mark.parametrize("size", [10, INLINE_LIMIT + 10])
def test_putting_a_blob_again_changes_nothing(store, size):
    data = b"x" * size
    assert store.put_blob(data) == store.put_blob(data)
    assert store.get_blob(blob_digest(data)) == data
    assert store.find("") == [blob_digest(data)]


def test_an_absent_blob_is_missing_and_named(store):
    with pytest.raises(BlobMissing, match=ABSENT):
        store.get_blob(ABSENT)


def test_missing_blobs_names_exactly_those_not_kept(store):
    kept = {store.put_blob(b"%d" % number) for number in range(1200)} | {store.put_blob(b"z" * 70_000)}
    absent = {blob_digest(b"absent %d" % number) for number in range(700)}
    assert store.missing_blobs(kept | absent) == absent
    assert store.missing_blobs([]) == set()


@pytest.mark.parametrize("kind", RecordKind)
def test_a_record_comes_back_with_its_kind(store_factory, kind):
    preimage = preimage_of(kind, {"a": [1, None, "ü"]})
    assert store_factory.open().put_record(preimage) == preimage.key
    assert store_factory.open().get_record(preimage.key) == preimage


def test_a_record_that_does_not_hash_to_its_key_is_refused(store):
    lie = Preimage(RecordKind.PROMPT, b"{}", derive_key(RecordKind.SCHEMA, b"{}"))
    with pytest.raises(BlobCorrupt):
        store.put_record(lie)
    with pytest.raises(BlobMissing):
        store.get_record(lie.key)


def test_a_blob_is_no_record_and_a_record_no_blob(store):
    preimage = preimage_of(RecordKind.ACTION, {})
    store.put_record(preimage)
    digest = store.put_blob(preimage.data)
    with pytest.raises(BlobMissing):
        store.get_blob(Digest(preimage.key))
    with pytest.raises(BlobMissing):
        store.get_record(Key(digest))


def test_find_is_sorted_bounded_and_covers_blobs_and_records(store):
    names = sorted(
        [store.put_blob(b"%d" % number) for number in range(300)]
        + [store.put_record(preimage_of(RecordKind.ACTION, {"n": number})) for number in range(300)]
    )
    assert store.find("") == names[:16]
    for name in names[::40]:
        assert store.find(name) == [name]
        for length in (1, 2, 3, 7):
            expected = [other for other in names if other.startswith(name[:length])][:16]
            assert store.find(name[:length]) == expected
            assert store.find(name[:length].upper()) == expected


@pytest.mark.parametrize("prefix", ["g", "0x", "a" * 65, "ü", "%", "_", " "])
def test_find_of_what_is_no_prefix_finds_nothing(store, prefix):
    store.put_blob(b"x")
    assert store.find(prefix) == []


def test_the_first_generation_is_served_for_ever(store_factory):
    store = store_factory.open()
    request = store.put_record(example(1).request)
    assert store.generation_for(request) is None
    first = store.put_generation(request, b"one", b"o1")
    second = store.put_generation(request, b"two", b"o2")
    again = store.put_generation(request, b"two", b"o3")
    same = store.put_generation(request, b"one", b"o4")
    assert [put.equivocation for put in (first, second, again, same)] == [False, True, True, False]
    assert {put.first for put in (first, second, again, same)} == {blob_digest(b"one")}
    assert [put.digest for put in (first, second)] == [blob_digest(b"one"), blob_digest(b"two")]
    for seen in (store, store_factory.open()):
        assert seen.generation_for(request) == blob_digest(b"one")
        assert seen.generations(request) == [blob_digest(b"one"), blob_digest(b"two")]
        assert seen.observations(request) == [b"o1", b"o2", b"o3", b"o4"]
        assert seen.get_blob(second.digest) == b"two"


def test_one_execution_put_twice_is_one_observation(store):
    request = store.put_record(example(1).request)
    assert store.put_generation(request, b"g", b"o") == store.put_generation(request, b"g", b"o")
    assert store.observations(request) == [b"o"]


def test_one_request_answered_twice_in_one_batch_keeps_the_first(store):
    first, second = (example(number).request for number in (1, 2))
    request, other = first.key, second.key
    batch = [Made(first, b"one", b"o1"), Made(second, b"two", b"o2"), Made(first, b"two", b"o3")]
    puts = store.put_generations([*batch, batch[0]])
    assert [put.equivocation for put in puts] == [False, False, True, False]
    assert [put.first for put in puts] == [blob_digest(data) for data in (b"one", b"two", b"one", b"one")]
    assert store.generations(request) == [blob_digest(b"one"), blob_digest(b"two")]
    assert store.observations(request) == [b"o1", b"o3"]
    assert store.generations_for([request, other, example(3).request.key]) == {
        request: blob_digest(b"one"),
        other: blob_digest(b"two"),
    }


def test_a_batch_with_one_bad_member_is_refused_whole(store):
    request = example(1).request
    for wrong in (Preimage(RecordKind.REQUEST, b"{}", request.key), example(2).action):
        with pytest.raises(BlobCorrupt):
            store.put_generations([Made(request, b"g", b"o"), Made(wrong, b"h", b"o")])
    assert store.generations(request.key) == []
    lie = Preimage(RecordKind.PROMPT, b"{}", derive_key(RecordKind.SCHEMA, b"{}"))
    with pytest.raises(BlobCorrupt):
        store.put_records([example(3).action, lie])
    with pytest.raises(BlobMissing):
        store.get_record(example(3).action.key)


def test_more_than_a_statement_s_worth_is_kept_and_read_in_one_call(store):
    wholes = [example(number) for number in range(1100)]
    with store.transaction():
        store.put_records([part for whole in wholes for part in (whole.action, whole.request)])
        puts = store.put_generations([Made(whole.request, b"g%d" % n, b"o") for n, whole in enumerate(wholes)])
        results = store.put_blobs([b"r%d" % n for n in range(1100)])
        source = store.put_blob(b"s")
        entries = [
            whole.entry(result, put.digest, source) for whole, result, put in zip(wholes, results, puts, strict=True)
        ]
        assert store.put_entries(entries) == [True] * 1100
        store.put_targets([target(f"//d:{n}", whole.action.key) for n, whole in enumerate(wholes)])
    assert store.put_entries(entries) == [False] * 1100
    assert store.entries([whole.action.key for whole in wholes]) == {entry.key: entry for entry in entries}
    latest = store.latest_of([f"//d:{n}" for n in range(1200)], "reader-demo", "fake")
    assert {label: ref.key for label, ref in latest.items()} == {
        f"//d:{n}": whole.action.key for n, whole in enumerate(wholes)
    }


def test_two_requests_may_share_a_generation(store):
    requests = [store.put_record(example(number).request) for number in (1, 2)]
    for request in requests:
        assert not store.put_generation(request, b"same", b"o").equivocation
    assert [store.generations(request) for request in requests] == [[blob_digest(b"same")]] * 2


@pytest.mark.parametrize("kind", [None, RecordKind.ACTION])
def test_a_generation_of_a_request_not_kept_is_refused_whole(store, kind):
    preimage = preimage_of(kind or RecordKind.REQUEST, {"prompt": 1})
    if kind is not None:
        store.put_record(preimage)
    with pytest.raises(BlobMissing):
        store.put_generation(preimage.key, b"g", b"o")
    assert store.missing_blobs([blob_digest(b"g")])
    assert store.generations(preimage.key) == []


def test_an_entry_comes_back_whole(store_factory):
    entry = keep(store_factory.open(), example(1))
    assert store_factory.open().entries([entry.key]) == {entry.key: entry}


@pytest.mark.parametrize("how", How)
@pytest.mark.parametrize("sources", [0, 1, 3, 40])
def test_an_entry_without_a_request_comes_back_whole(store, how, sources):
    action = preimage_of(RecordKind.ACTION, {"pure": sources})
    store.put_record(action)
    kept = tuple(store.put_blob(b"source %d" % number) for number in range(sources))
    plain = example(1).entry(store.put_blob(b"result"), ABSENT, ABSENT)
    entry = msgspec.structs.replace(plain, key=action.key, request=None, generation=None, sources=kept, how=how)
    assert store.put_entry(entry)
    assert store.entries([action.key]) == {action.key: entry}


def test_the_first_entry_stays(store):
    entry = keep(store, example(1))
    other = msgspec.structs.replace(entry, result=store.put_blob(b"other"), invocation="i-2")
    assert not store.put_entry(entry)
    assert not store.put_entry(other)
    assert store.entries([entry.key]) == {entry.key: entry}


@pytest.mark.parametrize("lost", ["preimage", "request", "generation", "execution", "source", "result"])
def test_an_entry_that_lacks_a_reference_is_no_hit_until_it_is_there(store, lost):
    whole = example(1)
    if lost != "preimage":
        store.put_record(whole.action)
    if lost != "request":
        store.put_record(whole.request)
        if lost not in ("generation", "execution"):
            store.put_generation(whole.request.key, whole.generation, whole.observation)
    if lost in ("request", "execution"):
        store.put_blob(whole.generation)
    for part in ("source", "result"):
        if lost != part:
            store.put_blob(getattr(whole, part))
    entry = whole.entry(blob_digest(whole.result), blob_digest(whole.generation), blob_digest(whole.source))
    assert store.put_entry(entry)
    assert store.entries([entry.key]) == {}
    keep(store, whole)
    assert store.entries([entry.key]) == {entry.key: entry}


@pytest.mark.parametrize("field", ["request", "generation"])
def test_an_entry_with_half_a_provenance_is_no_hit(store, field):
    entry = msgspec.structs.replace(keep(store, example(1)), **{field: None})
    action = preimage_of(RecordKind.ACTION, {"half": True})
    store.put_record(action)
    store.put_entry(msgspec.structs.replace(entry, key=action.key))
    assert store.entries([action.key]) == {}


def test_a_lost_entry_gives_way_to_a_complete_one_only(store):
    entry = keep(store, example(1))
    lost = msgspec.structs.replace(entry, key=store.put_record(example(2).action), result=ABSENT)
    assert store.put_entry(lost)
    assert not store.put_entry(msgspec.structs.replace(lost, result=Digest("cd" * 32)))
    whole = msgspec.structs.replace(lost, result=store.put_blob(b"made again"))
    assert store.put_entry(whole)
    assert store.entries([whole.key]) == {whole.key: whole}
    assert not store.put_entry(entry)


def test_entries_answers_for_many_keys_at_once(store):
    with store.transaction():
        kept = [keep(store, example(number)) for number in range(1100)]
    absent = [example(number).action.key for number in range(2000, 2100)]
    assert store.entries([*absent, *(entry.key for entry in kept)]) == {entry.key: entry for entry in kept}
    assert store.entries([]) == {}


class Stop(BaseException):
    """Ends a block as an interrupt does."""


@pytest.mark.parametrize("durable", [False, True])
def test_a_transaction_that_fails_keeps_nothing(store_factory, durable):
    store = store_factory.open()
    before = keep(store, example(1))
    with pytest.raises(Stop), store.transaction(durable=durable):
        keep(store, example(2))
        store.put_blob(b"z" * 70_000)
        store.append_events("i", [b"e"])
        store.begin(invocation("i"))
        store.put_target(target("//d:a", before.key))
        raise Stop
    for seen in (store, store_factory.open()):
        assert seen.entries([before.key, example(2).action.key]) == {before.key: before}
        assert seen.missing_blobs([blob_digest(b"z" * 70_000), blob_digest(example(2).result)])
        assert (seen.events("i"), seen.invocations(1), seen.target_history("//d:a", "reader-demo")) == ([], [], [])


@pytest.mark.parametrize("durable", [False, True])
def test_a_transaction_reads_its_own_puts_and_keeps_them(store_factory, durable):
    store = store_factory.open()
    with store.transaction(durable=durable):
        entry = keep(store, example(1))
        assert store.entries([entry.key]) == {entry.key: entry}
    assert store_factory.open().entries([entry.key]) == {entry.key: entry}


def test_an_inner_block_fails_alone_and_is_kept_with_the_outer(store_factory):
    store = store_factory.open()
    with store.transaction():
        first = store.put_blob(b"first")
        with pytest.raises(Stop), store.transaction(durable=True):
            lost = store.put_blob(b"lost")
            raise Stop
        with store.transaction(durable=True):
            last = store.put_blob(b"last")
    assert store_factory.open().missing_blobs([first, lost, last]) == {lost}
    with pytest.raises(Stop), store.transaction():
        with store.transaction():
            taken_along = store.put_blob(b"taken along")
        raise Stop
    assert store_factory.open().missing_blobs([taken_along]) == {taken_along}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300), prefix=st.integers(0, 64))
def test_any_bytes_are_kept_and_found(store, data, prefix):
    digest = store.put_blob(data)
    assert store.get_blob(digest) == data
    assert digest in store.find(digest[:prefix]) or len(store.find(digest[:prefix])) == 16
