"""Damage to a local store: nothing wrong is ever served, the error says what is wrong, and the next build mends it."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing

import pytest
from support.store_damage import (
    blob_file,
    faulty_store,
    flip_file,
    flip_inline,
    flipped,
    settle,
    sql,
    truncate,
)
from support.store_examples import example, invocation, keep, target

from gsum.store.digests import RecordKind, blob_digest, preimage_of
from gsum.store.errors import ExitCode, StoreError
from gsum.store.faults import (
    BlobCorrupt,
    BlobMissing,
    StoreDamaged,
    StoreInputOutput,
    StoreMissing,
    StoreNewer,
)
from gsum.store.local import open_store
from gsum.store.schema import STORE_SCHEMA

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
        with pytest.raises(BlobCorrupt):
            store.get_blob(entry.sources[0])
        keep(store, example(1, size=100_000))
        assert store.entries([entry.key]) == {entry.key: entry}


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


@pytest.mark.parametrize("part", ["source", "generation", "result", "action", "request"])
def test_what_needs_damaged_bytes_is_a_miss_until_made_again(folder, part):
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
            flip_inline(folder, "record", "key", key)
            with pytest.raises(BlobCorrupt):
                store.get_record(key)
        assert store.entries([entry.key]) == {}
        keep(store, whole)
        assert store.entries([entry.key]) == {entry.key: entry}


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


@pytest.mark.parametrize("column", ["label", "how", "invocation", "created", "schema", "seal", "sources"])
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


def test_a_list_of_tables_that_is_no_text_is_damage(folder):
    filled(folder)
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("UPDATE sqlite_master SET sql = CAST(x'b2ff80' AS TEXT) WHERE name = 'blob'")
        connection.commit()
    with pytest.raises(StoreDamaged):
        open_store(folder)


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
    assert store.missing_blobs([digest]) == {digest}
    with pytest.raises(BlobCorrupt):
        store.get_blob(digest)


def test_a_disk_that_fails_to_read_is_no_reason_to_set_aside(folder):
    store, files = faulty_store(folder)
    digest = store.put_blob(LARGE)
    files.failing = {"read": 5}
    with pytest.raises(StoreInputOutput) as caught:
        store.get_blob(digest)
    assert caught.value.exit_code is ExitCode.STORE
    files.failing = {}
    assert store.get_blob(digest) == LARGE


def filled(folder):
    """Make a store with a little of everything, settled in one file; return what must be readable or refused."""
    with open_store(folder) as store:
        entries = [keep(store, example(number)) for number in range(12)]
        digests = [store.put_blob(data) for data in (SMALL, b"p" * 9000, LARGE)]
        store.begin(invocation("i-1"))
        store.append_events("i-1", [b"event"] * 5)
        for entry in entries:
            store.put_target(target(entry.label, entry.key))
    settle(folder)
    return entries, digests


@pytest.mark.parametrize("keep_bytes", [1, 50, 100, 511, 4096, 4097, -4096, -1])
def test_a_truncated_database_is_reported_as_damage(folder, keep_bytes):
    filled(folder)
    path = folder / "store.sqlite"
    truncate(path, keep_bytes if keep_bytes > 0 else path.stat().st_size + keep_bytes)
    for read_only in (False, True):
        with pytest.raises(StoreDamaged) as caught:
            open_store(folder, read_only=read_only)
        assert caught.value.exit_code is ExitCode.DAMAGE
        assert "store.sqlite" in str(caught.value.facts["place"]) and caught.value.hint


@pytest.mark.parametrize("content", [b"", None])
def test_an_emptied_or_removed_database_is_no_new_store(folder, content):
    filled(folder)
    path = folder / "store.sqlite"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    for options in ({}, {"read_only": True}, {"create": False}):
        with pytest.raises(StoreDamaged):
            open_store(folder, **options)
    assert not path.exists() or path.stat().st_size == 0


@pytest.mark.parametrize("content", [b"garbage " * 1000, b"SQLite format 3\x00" + b"\xff" * 5000, b"\x00" * 8192])
def test_garbage_for_a_database_is_reported_and_left_as_it_is(folder, content):
    filled(folder)
    (folder / "store.sqlite").write_bytes(content)
    for read_only in (False, True):
        with pytest.raises(StoreDamaged):
            open_store(folder, read_only=read_only)
    assert (folder / "store.sqlite").read_bytes() == content


def test_a_database_of_another_program_is_refused_and_left_as_it_is(folder):
    folder.mkdir()
    sql(folder, "CREATE TABLE theirs (x)")
    before = (folder / "store.sqlite").read_bytes()
    with pytest.raises(StoreDamaged, match="damaged") as caught:
        open_store(folder)
    assert "no gsum store" in str(caught.value.facts["reason"])
    assert (folder / "store.sqlite").read_bytes() == before


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_store_is_refused_with_both_versions_and_left_as_it_is(folder, read_only):
    filled(folder)
    sql(folder, "PRAGMA user_version=7")
    settle(folder)
    before = (folder / "store.sqlite").read_bytes()
    with pytest.raises(StoreNewer) as caught:
        open_store(folder, read_only=read_only)
    assert caught.value.exit_code is ExitCode.STORE
    assert caught.value.facts == {"store": folder, "its schema": 7, "newest known schema": STORE_SCHEMA}
    assert "pip install --upgrade gsum" in (caught.value.hint or "")
    assert (folder / "store.sqlite").read_bytes() == before


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}])
def test_no_store_is_said_so_and_none_is_made(folder, options):
    with pytest.raises(StoreMissing) as caught:
        open_store(folder, **options)
    assert caught.value.exit_code is ExitCode.STORE
    assert not folder.exists()


def test_a_file_in_the_place_of_the_store_is_reported(tmp_path):
    (tmp_path / "store").write_bytes(b"")
    with pytest.raises(StoreError):
        open_store(tmp_path / "store")


def read_all(store, entries, digests):
    """Read all that `filled` made; raise AssertionError for anything wrong that is served as right."""
    for digest in digests:
        assert outcome(store.get_blob, digest) in (None, SMALL, b"p" * 9000, LARGE)
    for number, entry in enumerate(entries):
        whole = example(number)
        assert outcome(store.get_blob, entry.result) in (None, whole.result)
        assert outcome(store.get_record, entry.key) in (None, whole.action)
        assert outcome(store.generation_for, whole.request.key) in (None, entry.generation)
        outcome(store.observations, whole.request.key)
        outcome(store.latest, entry.label, "reader-demo", "fake")
    found = outcome(store.entries, [entry.key for entry in entries]) or {}
    for entry in entries:
        if entry.key in found:
            hit = found[entry.key]
            assert (hit.result, hit.generation, hit.sources) == (entry.result, entry.generation, entry.sources)
    outcome(store.events, "i-1")
    outcome(store.invocations, 10)
    outcome(store.find, "")
    outcome(store.put_blob, b"new")


def outcome(call, *arguments):
    """Call; a `StoreError` counts as nothing found, any other error fails the test."""
    try:
        return call(*arguments)
    except StoreError:
        return None


def test_any_flipped_bit_of_the_database_is_refused_or_harmless(folder, tmp_path):
    entries, digests = filled(folder)
    size = (folder / "store.sqlite").stat().st_size
    choice = random.Random(20261130)
    refused = 0
    for _ in range(250):
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        bit = choice.randrange(size * 8)
        flip_file(copy / "store.sqlite", bit)
        try:
            with open_store(copy) as store:
                read_all(store, entries, digests)
        except StoreError:
            refused += 1
        except sqlite3.Error as error:
            pytest.fail(f"bit {bit}: {error!r} leaked")
        shutil.rmtree(copy)
    assert refused > 0


def test_flipping_helper_turns_exactly_one_bit():
    assert flipped(b"\x00\x00", 9) == b"\x00\x02"
