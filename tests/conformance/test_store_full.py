"""A full disk: the error says so, nothing kept is lost, and the same command works once there is room."""

from __future__ import annotations

import errno
import sqlite3
import subprocess
import sys
import textwrap

import pytest
from support.store_damage import FaultyFileSystem, faulty_store
from support.store_examples import example, keep

from gsum.store.blobs import BlobFiles
from gsum.store.database import Database
from gsum.store.digests import blob_digest
from gsum.store.errors import ExitCode
from gsum.store.faults import StoreFull, StoreInputOutput, StoreMisused, StoreReadOnly
from gsum.store.local import LocalStore, open_store

LARGE = b"large " * 20_000


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


@pytest.mark.parametrize("room", [0, 1, 100_000])
def test_a_full_disk_while_a_blob_file_is_written_leaves_no_trace(folder, room):
    store, files = faulty_store(folder)
    before = keep(store, example(1))
    files.room = room
    with pytest.raises(StoreFull) as caught:
        store.put_blob(LARGE)
    assert caught.value.exit_code is ExitCode.STORE and "free some space" in (caught.value.hint or "")
    assert [path for path in (folder / "blobs").rglob("*") if path.is_file()] == []
    assert store.missing_blobs([blob_digest(LARGE)])
    files.room = None
    assert store.get_blob(store.put_blob(LARGE)) == LARGE
    assert store.entries([before.key])


@pytest.mark.parametrize(
    ("call", "number", "error"),
    [
        ("replace", errno.ENOSPC, StoreFull),
        ("replace", errno.EDQUOT, StoreFull),
        ("write", errno.EROFS, StoreReadOnly),
        ("write", errno.EACCES, StoreReadOnly),
        ("write", errno.EIO, StoreInputOutput),
    ],
)
def test_a_failing_call_becomes_a_store_error_and_the_put_keeps_nothing(folder, call, number, error):
    store, files = faulty_store(folder)
    files.failing = {call: number}
    with pytest.raises(error):
        store.put_blob(LARGE)
    files.failing = {}
    assert [path for path in (folder / "blobs").rglob("*") if path.is_file()] == []
    assert store.missing_blobs([blob_digest(LARGE)])
    assert store.get_blob(store.put_blob(LARGE)) == LARGE


def test_a_durable_commit_whose_names_can_not_be_synced_keeps_nothing(folder):
    store, files = faulty_store(folder)
    files.failing = {"sync": errno.EIO}
    with pytest.raises(StoreInputOutput), store.transaction(durable=True):
        store.put_blob(LARGE)
        small = store.put_blob(b"small")
    assert store.missing_blobs([small, blob_digest(LARGE)]) == {small, blob_digest(LARGE)}
    files.failing = {}
    with store.transaction(durable=True):
        store.put_blob(LARGE)
    assert store.get_blob(blob_digest(LARGE)) == LARGE


def limited(folder, pages):
    """Open a store whose database may grow by so many pages only."""
    open_store(folder).close()
    connection = sqlite3.connect(folder / "store.sqlite", isolation_level=None)
    (used,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={used + pages}")
    blobs = BlobFiles(folder, FaultyFileSystem())
    database = Database(connection, folder / "store.sqlite", writable=True, before_durable=blobs.sync)
    return LocalStore(folder, database, blobs), connection


@pytest.mark.parametrize("durable", [False, True])
def test_a_database_without_room_keeps_what_was_committed(folder, durable):
    store, connection = limited(folder, 60)
    kept = []
    with pytest.raises(StoreFull):
        for number in range(1000):
            with store.transaction(durable=durable):
                entry = keep(store, example(number, size=5000))
            kept.append(entry)
    assert 3 < len(kept) < 100
    assert store.entries([entry.key for entry in kept]) == {entry.key: entry for entry in kept}
    lost = example(len(kept), size=5000)
    assert store.missing_blobs([blob_digest(lost.source), blob_digest(lost.result)])
    connection.execute("PRAGMA max_page_count=100000")
    keep(store, lost)
    assert store.entries([lost.action.key])


def test_a_full_disk_that_is_caught_within_a_transaction_lets_no_half_of_it_through(folder):
    store, connection = limited(folder, 30)
    with pytest.raises(StoreMisused, match="rolled back"), store.transaction():
        store.put_blob(b"first")
        with pytest.raises(StoreFull):
            for number in range(4):
                keep(store, example(number, size=60_000))
        with pytest.raises(StoreMisused, match="rolled back"):
            store.put_blob(b"second")
    assert len(store.missing_blobs([blob_digest(b"first"), blob_digest(b"second")])) == 2
    connection.execute("PRAGMA max_page_count=100000")
    assert store.get_blob(store.put_blob(b"second")) == b"second"


CHILD = """
    import resource, sys
    from pathlib import Path
    from support.store_examples import example, keep
    from gsum.store.errors import StoreError
    from gsum.store.local import open_store

    store = open_store(Path(sys.argv[1]))
    if len(sys.argv) > 2:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
    done = 0
    try:
        for number in range(2000):
            with store.transaction(durable=number % 2 == 0):
                keep(store, example(number, size=1000))
            done += 1
    except StoreError as error:
        print(done, type(error).__name__, error.exit_code.name)
"""


def run_child(folder, *arguments, prefix=()):
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    command = [*prefix, sys.executable, "-c", textwrap.dedent(CHILD), str(folder), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def test_a_file_size_limit_is_a_store_error_and_loses_nothing(folder):
    ran = run_child(folder, str(400_000))
    done, name, code = ran.stdout.split()
    assert (name, code) == ("StoreInputOutput", "STORE"), ran
    check(folder, int(done))


def test_a_really_full_file_system_is_said_so_and_loses_nothing(tmp_path):
    place = tmp_path / "full"
    place.mkdir()
    script = f'mount -t tmpfs -o size=1m full {place} && "$@"; status=$?; cp -a {place} {tmp_path}/copy; exit $status'
    ran = run_child(
        place / "store", prefix=("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh")
    )
    if ran.returncode != 0 and ("unshare" in ran.stderr or "mount" in ran.stderr):
        pytest.skip(f"no file system can be mounted here: {ran.stderr.strip()}")
    done, name, code = ran.stdout.split()
    assert (name, code) == ("StoreFull", "STORE"), ran
    check(tmp_path / "copy" / "store", int(done))


def check(folder, done):
    """Everything committed is there, nothing of the rest, and the store works on."""
    assert done > 5
    with open_store(folder) as store:
        keys = [example(number).action.key for number in range(done + 1)]
        assert set(store.entries(keys)) == set(keys[:done])
        keep(store, example(done))
        assert set(store.entries(keys)) == set(keys)
