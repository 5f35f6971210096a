"""Damage to a local store: nothing wrong is ever served, the error says what is wrong, and the next build mends it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from support.store_damage import (
    blob_file,
    faulty_store,
    flip_file,
    flip_inline,
    flip_preimage,
    sql,
    truncate,
)
from support.store_examples import example, invocation, keep, keep_apart

from gsum.store.digests import RecordKind, blob_digest, preimage_of
from gsum.store.errors import ExitCode
from gsum.store.faults import (
    BlobCorrupt,
    BlobMissing,
    StoreDamaged,
    StoreInputOutput,
)
from gsum.store.local import LocalStore, open_store

SMALL = b"small " * 100
LARGE = b"large " * 20_000


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


def damage(folder, digest, data):
    if len(data) > 65_536:
        flip_file(blob_file(folder, digest))
    else:
        flip_inline(folder, "blob", "digest", digest)


def kept_aside(folder):
    """Names of what was set aside, as files and in the database."""
    files = [path.name.partition(".")[0] for path in (folder / "damaged").glob("*")]
    return sorted([*files, *(name.hex() for (name,) in sql(folder, "SELECT name FROM damaged"))])


@pytest.mark.parametrize("data", [SMALL, LARGE])
def test_a_flipped_bit_is_found_set_aside_and_mended_by_the_next_put(folder, data):
    with open_store(folder) as store:
        digest = store.put_blob(data)
        damage(folder, digest, data)
        with pytest.raises(BlobCorrupt) as caught:
            store.get_blob(digest)
        assert caught.value.exit_code is ExitCode.DAMAGE
        assert caught.value.set_aside and digest in caught.value.message and caught.value.hint
        assert store.missing_blobs([digest]) == {digest}
        assert kept_aside(folder) == [digest]
        with pytest.raises(BlobMissing):
            store.get_blob(digest)
        store.put_blob(data)
        assert store.get_blob(digest) == data


@pytest.mark.parametrize("data", [SMALL, LARGE])
def test_a_put_replaces_damaged_bytes_that_nobody_has_read(folder, data):
    with open_store(folder) as store:
        digest = store.put_blob(data)
        damage(folder, digest, data)
        store.put_blob(data)
        assert store.get_blob(digest) == data
        assert kept_aside(folder) == [digest]


def test_what_is_damaged_twice_is_kept_aside_twice(folder):
    with open_store(folder) as store:
        for _ in range(2):
            for data in (SMALL, LARGE):
                damage(folder, store.put_blob(data), data)
                with pytest.raises(BlobCorrupt):
                    store.get_blob(blob_digest(data))
    assert kept_aside(folder) == sorted(2 * [blob_digest(SMALL), blob_digest(LARGE)])


def test_a_flipped_record_is_found_set_aside_and_mended_by_the_next_put(folder):
    preimage = preimage_of(RecordKind.PROMPT, {"system": "text"})
    with open_store(folder) as store:
        store.put_record(preimage)
        flip_inline(folder, "record", "key", preimage.key)
        with pytest.raises(BlobCorrupt):
            store.get_record(preimage.key)
        assert kept_aside(folder) == [preimage.key]
        with pytest.raises(BlobMissing):
            store.get_record(preimage.key)
        store.put_record(preimage)
        flip_inline(folder, "record", "key", preimage.key)
        store.put_record(preimage)
        assert store.get_record(preimage.key) == preimage


def test_a_record_of_the_wrong_kind_does_not_hash_to_its_key(folder):
    preimage = preimage_of(RecordKind.PROMPT, {"system": "text"})
    with open_store(folder) as store:
        store.put_record(preimage)
        for kind in ("schema", "no kind"):
            sql(folder, "UPDATE record SET kind = ?", (kind,))
            with pytest.raises(BlobCorrupt):
                store.get_record(preimage.key)
            store.put_record(preimage)


@pytest.mark.parametrize("size", [0, 1, 70_000])
def test_a_truncated_blob_file_is_missing_and_never_served(folder, size):
    with open_store(folder) as store:
        entry = keep(store, example(1, size=100_000))
        truncate(blob_file(folder, entry.sources[0]), size)
        assert store.missing_blobs(entry.sources) == set(entry.sources)
        assert store.entries([entry.key]) == {}
        with pytest.raises(BlobMissing):
            store.get_blob(entry.sources[0])
        keep(store, example(1, size=100_000))
        assert store.entries([entry.key]) == {entry.key: entry}


@pytest.mark.parametrize("found", [lambda store, digest: store.missing_blobs([digest]), LocalStore.get_blob])
@pytest.mark.parametrize("harm", [Path.unlink, lambda file: truncate(file, 70_000)])
def test_a_blob_file_that_is_gone_or_cut_off_is_a_loss_once_it_is_found(folder, harm, found):
    with open_store(folder) as store:
        digest = store.put_blob(LARGE)
        before = store.epoch()
        harm(blob_file(folder, digest))
        assert store.epoch() == before
        with suppress(BlobCorrupt, BlobMissing), store.transaction():
            found(store, digest)
        lost = store.epoch()
        assert lost != before
        assert store.missing_blobs([digest, blob_digest(b"never kept")]) == {digest, blob_digest(b"never kept")}
        assert store.epoch() == lost
        store.put_blob(LARGE)
        assert store.get_blob(digest) == LARGE


def test_a_removed_blob_file_is_missing_and_can_be_put_again(folder):
    with open_store(folder) as store:
        digest = store.put_blob(LARGE)
        blob_file(folder, digest).unlink()
        assert store.missing_blobs([digest]) == {digest}
        with pytest.raises(BlobMissing):
            store.get_blob(digest)
        store.put_blob(LARGE)
        assert store.get_blob(digest) == LARGE


def test_a_file_without_a_row_is_no_blob_and_a_foreign_one_gives_way(folder):
    digest = blob_digest(LARGE)
    with open_store(folder) as store:
        blob_file(folder, digest).parent.mkdir(parents=True)
        blob_file(folder, digest).write_bytes(b"left over")
        with pytest.raises(BlobMissing):
            store.get_blob(digest)
        store.put_blob(LARGE)
        assert store.get_blob(digest) == LARGE


@pytest.mark.parametrize("keep", [keep, keep_apart])
@pytest.mark.parametrize("part", ["source", "generation", "result", "action", "request"])
def test_what_needs_damaged_bytes_is_a_miss_until_made_again(folder, part, keep):
    with open_store(folder) as store:
        whole = example(1)
        entry = keep(store, whole)
        name = {"source": entry.sources[0], "generation": entry.generation, "result": entry.result}.get(part)
        if name is not None:
            flip_inline(folder, "blob", "digest", name)
            with pytest.raises(BlobCorrupt):
                store.get_blob(name)
        else:
            key = getattr(whole, part).key
            flip_preimage(folder, key)
            with pytest.raises(BlobCorrupt):
                store.get_record(key)
            with pytest.raises(BlobMissing):
                store.get_record(key)
            assert kept_aside(folder) == [key]
        assert store.entries([entry.key]) == {}
        keep(store, whole)
        assert store.entries([entry.key]) == {entry.key: entry}
        assert store.get_record(whole.action.key) == whole.action
        assert store.get_record(whole.request.key) == whole.request


def test_a_flipped_perimeter_costs_the_explanation_and_no_entry(folder):
    with open_store(folder) as store:
        one, same = example(1), example(3)
        entries = [keep(store, whole) for whole in (one, same)]
        assert one.perimeter == same.perimeter
        name = bytes.fromhex(one.action.key)
        sql(folder, "UPDATE entry SET perimeter_preimage = x'00' WHERE key = ?", (name,))
        assert store.get_record(one.perimeter.key) == one.perimeter  # the other entry has it, too
        flip_preimage(folder, one.perimeter.key)
        with pytest.raises(BlobCorrupt):
            store.get_record(one.perimeter.key)
        with pytest.raises(BlobMissing):
            store.get_record(one.perimeter.key)
        assert store.entries([entry.key for entry in entries]) == {entry.key: entry for entry in entries}
        keep(store, one)
        assert store.get_record(one.perimeter.key) == one.perimeter


def test_what_a_label_was_built_as_outlives_its_entry(folder):
    with open_store(folder) as store:
        entry = keep(store, example(1))
        before = store.latest(entry.label, "reader-demo", "fake")
        assert before is not None and before.key == entry.key
        flip_inline(folder, "blob", "digest", entry.result)
        with pytest.raises(BlobCorrupt):
            store.get_blob(entry.result)
        assert store.entries([entry.key]) == {}
        assert store.latest(entry.label, "reader-demo", "fake") == before
        keep_apart(store, example(1))  # says nothing of labels
        assert store.entries([entry.key]) == {entry.key: entry}
        assert store.latest(entry.label, "reader-demo", "fake") == before
        assert store.get_record(example(1).perimeter.key) == example(1).perimeter


def test_a_row_that_points_at_something_else_is_not_believed(folder):
    with open_store(folder) as store:
        one, other = (keep(store, example(number)) for number in (1, 2))
        sql(folder, "UPDATE execution SET generation = ?", (bytes.fromhex(other.generation),))
        sql(folder, "UPDATE entry SET result = ?", (bytes.fromhex(other.result),))
        assert store.generation_for(one.request) is None
        assert store.observations(one.request) == []
        assert store.generation_for(other.request) == other.generation  # this row is as it was
        assert store.entries([one.key, other.key]) == {other.key: other}
        assert keep(store, example(1)) == one
        assert store.entries([one.key]) == {one.key: one}


@pytest.mark.parametrize(
    "column", ["label", "how", "invocation", "created", "schema", "seal", "sources", "principal", "whole"]
)
def test_an_entry_altered_in_any_column_is_a_miss_until_made_again(folder, column):
    with open_store(folder) as store:
        entry = keep(store, example(1))
        sql(folder, f"UPDATE entry SET {column} = ?", (bytes(32),))
        assert store.entries([entry.key]) == {}
        keep(store, example(1))
        assert store.entries([entry.key]) == {entry.key: entry}


def test_executions_that_changed_places_serve_nothing(folder):
    with open_store(folder) as store:
        request = store.put_record(example(1).request)
        for output in (b"first", b"second"):
            store.put_generation(request, output, b"o")
        sql(folder, "UPDATE execution SET number = -number")
        sql(folder, "UPDATE execution SET number = 3 + number")
        assert store.generation_for(request) is None
        again = store.put_generation(request, b"first", b"o")
        assert (again.first, again.equivocation) == (blob_digest(b"first"), False)


@pytest.mark.parametrize("table", ["invocation", "event"])
def test_a_journal_that_can_not_be_decoded_is_damage_and_named(folder, table):
    with open_store(folder) as store:
        store.begin(invocation("i-1"))
        store.append_events("i-1", [b"e"])
        sql(folder, f"UPDATE {table} SET {table.replace('invocation', 'record').replace('event', 'events')} = x'00ff'")
        with pytest.raises(StoreDamaged) as caught:
            store.events("i-1") if table == "event" else store.invocations(1)
        assert "i-1" in str(caught.value.facts["reason"])


def test_damage_found_in_a_failing_transaction_is_set_aside_all_the_same(folder):
    with open_store(folder) as store:
        digest = store.put_blob(SMALL)
        flip_inline(folder, "blob", "digest", digest)
        with pytest.raises(BlobCorrupt), store.transaction():
            store.put_blob(b"gone with the transaction")
            store.get_blob(digest)
        assert store.missing_blobs([digest]) == {digest}
        assert kept_aside(folder) == [digest]


def test_damage_found_and_mended_in_one_transaction_stays_mended(folder):
    with open_store(folder) as store:
        digests = [store.put_blob(data) for data in (SMALL, LARGE)]
        for digest, data in zip(digests, (SMALL, LARGE), strict=True):
            damage(folder, digest, data)
        with store.transaction():
            for digest, data in zip(digests, (SMALL, LARGE), strict=True):
                with pytest.raises(BlobCorrupt):
                    store.get_blob(digest)
                store.put_blob(data)
        assert [store.get_blob(digest) for digest in digests] == [SMALL, LARGE]


def test_a_lost_first_generation_is_replaced_and_the_difference_reported(folder):
    with open_store(folder) as store:
        request = store.put_record(example(1).request)
        first = store.put_generation(request, b"first", b"o1").digest
        flip_inline(folder, "blob", "digest", first)
        with pytest.raises(BlobCorrupt):
            store.get_blob(first)
        assert store.generation_for(request) is None
        second = store.put_generation(request, b"second", b"o2")
        assert second.equivocation
        assert second.first == second.digest == store.generation_for(request)
        mended = store.put_generation(request, b"first", b"o3")
        assert not mended.equivocation
        assert store.generation_for(request) == first


def test_a_read_only_store_reports_damage_and_leaves_it_in_place(folder):
    with open_store(folder) as store:
        digests = [store.put_blob(data) for data in (SMALL, LARGE)]
    for digest, data in zip(digests, (SMALL, LARGE), strict=True):
        damage(folder, digest, data)
    with open_store(folder, read_only=True) as store:
        for digest in digests * 2:
            with pytest.raises(BlobCorrupt) as caught:
                store.get_blob(digest)
            assert not caught.value.set_aside
    assert kept_aside(folder) == []


def test_a_reader_that_lies_once_is_not_believed(folder):
    store, files = faulty_store(folder)
    digest = store.put_blob(LARGE)
    files.lies = 1
    with pytest.raises(BlobCorrupt):
        store.get_blob(digest)
    assert store.get_blob(digest) == LARGE  # the bytes were read again before they were set aside
    assert kept_aside(folder) == []


def test_a_reader_that_goes_on_lying_costs_the_blob_and_serves_nothing_wrong(folder):
    store, files = faulty_store(folder)
    digest = store.put_blob(LARGE)
    files.lies = 2
    with pytest.raises(BlobCorrupt):
        store.get_blob(digest)
    assert store.missing_blobs([digest]) == {digest}
    store.put_blob(LARGE)
    assert store.get_blob(digest) == LARGE


def test_a_torn_write_is_noticed_before_the_blob_gets_its_name(folder):
    store, files = faulty_store(folder)
    files.torn = 1000
    with pytest.raises(StoreInputOutput):
        store.put_blob(LARGE)
    assert [path for path in (folder / "blobs").rglob("*") if path.is_file()] == []
    files.torn = None
    assert store.get_blob(store.put_blob(LARGE)) == LARGE


def test_a_torn_write_that_lies_about_its_size_is_found_by_the_reader(folder):
    store, files = faulty_store(folder)
    files.torn, files.claimed_size = 1000, len(LARGE)
    digest = store.put_blob(LARGE)
    files.torn = files.claimed_size = None
    with pytest.raises(BlobCorrupt):
        store.get_blob(digest)
    assert store.missing_blobs([digest]) == {digest}


def test_a_disk_that_fails_to_read_is_no_reason_to_set_aside(folder):
    store, files = faulty_store(folder)
    digest = store.put_blob(LARGE)
    files.failing = {"read": 5}
    with pytest.raises(StoreInputOutput) as caught:
        store.get_blob(digest)
    assert caught.value.exit_code is ExitCode.STORE
    files.failing = {}
    assert store.get_blob(digest) == LARGE
