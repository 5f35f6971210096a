"""Processes that use one store at once; run as `python -m support.store_workers ROLE FOLDER NUMBER`."""

from __future__ import annotations

import json
import sys
import time
from itertools import count
from pathlib import Path

from support.store_examples import example, keep

from gsum.store.local import open_store

SHARED = 60
OWN = 30
NEW = 25
LARGE = b"large " * 20_000


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def compete(folder: Path, worker: int) -> None:
    """Put what all workers put, what only this one puts, and an own generation of each shared request; report."""
    won, equivocations = [], []
    with open_store(folder) as store:
        say("ready")
        sys.stdin.readline()
        for number in range(SHARED):
            whole = example(number)
            store.put_record(whole.request)
            put = store.put_generation(whole.request.key, b"by %d" % worker, b"by %d" % worker)
            if put.equivocation:
                equivocations.append(number)
            store.put_record(whole.action)
            entry = whole.entry(store.put_blob(whole.result), put.first, store.put_blob(LARGE + whole.source[:9]))
            if store.put_entry(entry):
                won.append(number)
            store.append_events("shared", [b"%d:%d" % (worker, number)])
        for number in range(OWN):
            with store.transaction(durable=number % 5 == 0):
                keep(store, example(1000 * (worker + 1) + number))
    say(json.dumps({"won": won, "equivocations": equivocations}))


def make(folder: Path, worker: int) -> None:
    """Open one new store after the other, in step with others that do the same, and put a blob into each."""
    say("ready")
    sys.stdin.readline()
    for number in range(NEW):
        with open_store(folder / f"store-{number}") as store:
            store.put_blob(b"by %d" % worker)


def stream(folder: Path, first: int) -> None:
    """Put actions for ever, each in one transaction, and acknowledge each once it is kept."""
    with open_store(folder) as store:
        for number in count(first):
            with store.transaction(durable=number % 7 == 0):
                keep(store, example(number, size=90_000 * (number % 3 == 0)))
            say(str(number))
            time.sleep(0.002)  # SQLite's lock is not fair: leave the others a gap, as real builds do


if __name__ == "__main__":
    {"compete": compete, "make": make, "stream": stream}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
