"""What a durable end of a transaction does, in which order: names of files, then a full commit of the database."""

from __future__ import annotations

import sqlite3

import pytest
from support.store_damage import FaultyFileSystem, blob_file

from gsum.store.blobs import BlobFiles
from gsum.store.database import Database
from gsum.store.digests import blob_digest
from gsum.store.local import LocalStore, open_store
from gsum.store.schema import STORE_SCHEMA

LARGE = b"large " * 20_000
OTHER = b"other " * 20_000


@pytest.fixture
def traced(tmp_path):
    """Yield a store and the list of what it does: SQLite's statements and the calls of the file system."""
    open_store(tmp_path).close()
    files = FaultyFileSystem()
    connection = sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.set_trace_callback(files.log.append)
    blobs = BlobFiles(tmp_path, files)
    with LocalStore(
        tmp_path,
        Database(connection, tmp_path / "store.sqlite", writable=True, before_durable=blobs.sync),
        blobs,
    ) as store:
        yield store, files.log


def steps(log):
    """Keep what matters for durability."""
    kept = ("PRAGMA", "BEGIN", "COMMIT", "ROLLBACK", "sync", "write", "replace")
    return [line.partition("-")[0] for line in log if line.startswith(kept)]


def test_an_ordinary_transaction_asks_for_no_sync_of_the_database(traced):
    store, log = traced
    with store.transaction():
        store.put_blob(b"small")
    assert steps(log) == ["PRAGMA synchronous=NORMAL", "BEGIN IMMEDIATE", "COMMIT"]


def test_a_durable_transaction_is_a_full_commit_and_the_next_is_ordinary_again(traced):
    store, log = traced
    with store.transaction(durable=True):
        store.put_blob(b"small")
    store.put_blob(b"next")
    assert steps(log) == [
        "PRAGMA synchronous=FULL",
        "BEGIN IMMEDIATE",
        "COMMIT",
        "PRAGMA synchronous=NORMAL",
        "BEGIN IMMEDIATE",
        "COMMIT",
    ]


def test_a_durable_block_within_another_makes_the_whole_durable(traced):
    store, log = traced
    with store.transaction():
        store.put_blob(b"small")
        with store.transaction(durable=True):
            store.put_blob(b"next")
    assert steps(log) == [
        "PRAGMA synchronous=NORMAL",
        "BEGIN IMMEDIATE",
        "COMMIT",
        "PRAGMA synchronous=FULL",
        "PRAGMA user_version",
        f"PRAGMA user_version={STORE_SCHEMA}",
    ]


def test_a_failed_durable_block_leaves_the_next_ordinary(traced):
    store, log = traced
    with pytest.raises(KeyboardInterrupt), store.transaction(durable=True):
        raise KeyboardInterrupt
    store.put_blob(b"next")
    assert steps(log)[-4:] == ["ROLLBACK", "PRAGMA synchronous=NORMAL", "BEGIN IMMEDIATE", "COMMIT"]


def test_names_of_all_files_so_far_are_synced_before_the_commit(traced):
    store, log = traced
    first, second = (blob_file(store.folder, blob_digest(data)).parent.name for data in (LARGE, OTHER))
    store.put_blob(LARGE)
    assert not any(step.startswith("sync") for step in steps(log))
    log.clear()
    with store.transaction(durable=True):
        store.put_blob(OTHER)
    assert [step for step in steps(log) if step.startswith(("sync", "COMMIT"))] == [
        *(f"sync {name}" for name in sorted({first, second})),
        "sync blobs",
        f"sync {store.folder.name}",
        "COMMIT",
    ]
    log.clear()
    with store.transaction(durable=True):
        store.put_blob(OTHER[1:])
    assert [step for step in steps(log) if step.startswith("sync")][1:] == ["sync blobs"], "its own name was synced"
    log.clear()
    with store.transaction(durable=True):
        store.put_blob(b"small")
    assert not any(step.startswith("sync") for step in steps(log))


def test_a_name_that_another_process_gave_is_synced_too(traced):
    store, log = traced
    with open_store(store.folder) as other:
        other.put_blob(LARGE)
    with store.transaction(durable=True):
        store.put_blob(LARGE)
    assert f"sync {blob_digest(LARGE)[:2]}" in steps(log)
    assert not any(step.startswith(("write", "replace")) for step in steps(log))
