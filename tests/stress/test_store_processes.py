"""Several processes on one store, and processes that are killed: nothing acknowledged is lost, nothing is torn."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing

import pytest
from support.store_examples import example, keep
from support.store_workers import LARGE, NEW, OWN, SHARED

from gsum.store.digests import blob_digest
from gsum.store.faults import StoreBusy, StoreMisused
from gsum.store.local import open_store

WORKERS = 4


def start(role, folder, number):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "support.store_workers", role, str(folder), str(number)]
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def assert_sound(folder):
    """SQLite itself finds no fault, and no blob was set aside."""
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT count(*) FROM damaged").fetchall() == [(0,)]
    assert not (folder / "damaged").exists()


@pytest.mark.timeout(60)
def test_processes_that_compete_agree_on_one_first_of_everything(tmp_path):
    folder = tmp_path / "store"
    workers = [start("compete", folder, worker) for worker in range(WORKERS)]
    for worker in workers:  # all have made or opened the new store at once
        assert worker.stdout.readline() == "ready\n", worker.communicate()[1]
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    keys = [example(number).action.key for number in range(SHARED)]
    with open_store(folder) as store:
        while any(worker.poll() is None for worker in workers):
            for entry in store.entries(keys).values():  # what is a hit can be read, at any moment
                assert entry.generation == store.generation_for(entry.request)
                assert store.get_blob(entry.result) and store.get_blob(entry.sources[0]).startswith(LARGE)
    ended = [(worker.communicate(), worker.returncode) for worker in workers]
    assert [code for _, code in ended] == [0] * WORKERS, ended
    reports = [json.loads(out) for (out, _), _ in ended]

    for number in range(SHARED):
        assert sum(number in report["won"] for report in reports) == 1
        assert sum(number in report["equivocations"] for report in reports) == WORKERS - 1
    with open_store(folder) as store:
        assert set(store.entries(keys)) == set(keys)
        for number in range(SHARED):
            generations = store.generations(example(number).request.key)
            assert sorted(generations) == sorted(blob_digest(b"by %d" % worker) for worker in range(WORKERS))
            (first,) = (worker for worker in range(WORKERS) if number not in reports[worker]["equivocations"])
            assert generations[0] == blob_digest(b"by %d" % first)
        own = [example(1000 * (w + 1) + number).action.key for w in range(WORKERS) for number in range(OWN)]
        assert set(store.entries(own)) == set(own)
        events = [event.split(b":") for event in store.events("shared")]
    assert Counter(worker for worker, _ in events) == {b"%d" % worker: SHARED for worker in range(WORKERS)}
    for worker in range(WORKERS):  # each one's events are in its order
        assert [int(number) for who, number in events if int(who) == worker] == list(range(SHARED))
    assert_sound(folder)


@pytest.mark.timeout(60)
def test_processes_that_make_a_store_at_once_make_one(tmp_path):
    workers = [start("make", tmp_path, worker) for worker in range(WORKERS)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    ended = [(worker.communicate()[1], worker.returncode) for worker in workers]
    assert ended == [("", 0)] * WORKERS
    for number in range(NEW):
        with open_store(tmp_path / f"store-{number}") as store:
            assert store.missing_blobs(blob_digest(b"by %d" % worker) for worker in range(WORKERS)) == set()
        assert_sound(tmp_path / f"store-{number}")


@pytest.mark.timeout(60)
def test_killed_writers_lose_nothing_they_acknowledged(tmp_path):
    folder = tmp_path / "store"
    choice = random.Random(7)
    acknowledged, tried = [], []
    for turn in range(4):
        pair = [start("stream", folder, first) for first in (10_000 * (turn + 1), 10_000 * (turn + 1) + 5000)]
        for worker in pair:
            for _ in range(choice.randrange(5, 40)):
                acknowledged.append(int(worker.stdout.readline()))
        for worker in pair:
            worker.send_signal(signal.SIGKILL)
            out, _ = worker.communicate()
            acknowledged.extend(int(line) for line in out.split("\n")[:-1])
            assert worker.returncode == -signal.SIGKILL
        tried.extend(range(max(acknowledged) - 4, max(acknowledged) + 5))
    with open_store(folder) as store:
        keys = {number: example(number).action.key for number in {*acknowledged, *tried}}
        hits = store.entries(list(keys.values()))
        assert [number for number in acknowledged if keys[number] not in hits] == []
        for entry in hits.values():
            assert store.get_blob(entry.result)
            assert store.get_blob(entry.sources[0])
            assert store.get_blob(entry.generation)
            assert store.get_record(entry.request)
        for number in {*tried} - {*acknowledged}:  # what was not acknowledged is there whole or not at all
            if keys[number] not in hits:
                assert store.missing_blobs([blob_digest(example(number).result)])
        keep(store, example(1))
    assert_sound(folder)


def test_a_store_is_not_used_across_a_fork_or_by_another_thread(tmp_path):
    from threading import Thread

    store = open_store(tmp_path / "store")
    digest = store.put_blob(b"x")
    child = os.fork()
    if child == 0:
        try:
            store.get_blob(digest)
        except StoreMisused:
            os._exit(3)
        os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    seen = []

    def use():
        try:
            store.get_blob(digest)
        except StoreMisused as error:
            seen.append(error)

    thread = Thread(target=use)
    thread.start()
    thread.join()
    assert len(seen) == 1
    assert store.get_blob(digest) == b"x"
    store.close()
    with pytest.raises(StoreMisused):
        store.get_blob(digest)


def test_a_store_locked_for_too_long_is_said_so(tmp_path):
    from gsum.store.blobs import BlobFiles
    from gsum.store.database import Database
    from gsum.store.fs import PosixFileSystem
    from gsum.store.local import LocalStore

    with open_store(tmp_path) as holder, holder.transaction():
        connection = sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None, timeout=0.05)
        blobs = BlobFiles(tmp_path, PosixFileSystem())
        database = Database(connection, tmp_path / "store.sqlite", writable=True, before_durable=blobs.sync)
        with pytest.raises(StoreBusy) as caught, LocalStore(tmp_path, database, blobs) as other:
            other.put_blob(b"x")
    assert caught.value.exit_code == 5 and "other build" in (caught.value.hint or "")
