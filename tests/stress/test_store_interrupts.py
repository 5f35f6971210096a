"""Ctrl-C at any moment: the store stays usable at once, and every group of puts is kept whole or not at all."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from contextlib import closing

import pytest
from support.store_examples import example, keep

from gsum.store.digests import blob_digest
from gsum.store.local import open_store

SECONDS = 3.0


@pytest.fixture
def interrupts():
    """Yield a function that arms an interrupt in so many seconds; 0 disarms."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_an_interrupt_at_any_moment_leaves_a_usable_store(tmp_path, interrupts):
    choice = random.Random(11)
    store = open_store(tmp_path / "store")
    numbers, acknowledged, hits = 0, [], 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            interrupts(choice.uniform(0.00002, 0.0015))
            for number in range(numbers, numbers + 100):
                numbers = number + 1
                with store.transaction(durable=number % 3 == 0):
                    keep(store, example(number, size=70_000 * (number % 10 == 0)))
                acknowledged.append(number)
            interrupts(0)
        except KeyboardInterrupt:
            hits += 1
        after = store.put_blob(b"after interrupt %d" % hits)
        assert store.missing_blobs([after]) == set()
    store.close()
    assert hits > 100
    with open_store(tmp_path / "store") as store:
        keys = {number: example(number).action.key for number in range(numbers)}
        kept = store.entries(list(keys.values()))
        assert [number for number in acknowledged if keys[number] not in kept] == []
        for number in range(numbers):
            if keys[number] not in kept:
                assert store.missing_blobs([blob_digest(example(number).result)]), number
        assert store.missing_blobs([blob_digest(b"after interrupt %d" % hit) for hit in range(1, hits + 1)]) == set()
    with closing(sqlite3.connect(tmp_path / "store" / "store.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert list((tmp_path / "store" / "blobs").rglob(".tmp-*")) == []
