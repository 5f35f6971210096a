"""Damage to the database file as a whole: it is refused and left as it is, or nothing wrong is served from it."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing

import pytest
from support.store_damage import (
    flip_file,
    flipped,
    settle,
    sql,
    truncate,
)
from support.store_examples import example, invocation, keep, target

from gsum.store.errors import ExitCode, StoreError
from gsum.store.faults import (
    StoreDamaged,
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


def test_a_list_of_tables_that_is_no_text_is_damage(folder):
    filled(folder)
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("UPDATE sqlite_master SET sql = CAST(x'b2ff80' AS TEXT) WHERE name = 'blob'")
        connection.commit()
    with pytest.raises(StoreDamaged):
        open_store(folder)


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
