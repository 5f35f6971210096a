"""The least that a durable engine in Python does for a cold build: read, hash, ask, keep; without gsum's code.

Per action of the peers' workload: one request line to a program and its answer, the canonical bytes and BLAKE3 hashes
of what gsum keeps (three blobs a leaf, two an inner node; three preimages), and gsum's rows, in groups, each group one
durable transaction. No analysis, no plan, no parsing, no checks. Run: `python benchmarks/floor_durable.py FOLDER`.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from blake3 import blake3

from gsum.store.schema import DDL

LEAVES, INNER = 12, 4
GROUP = 256
Done = TypeVar("Done")
ANSWER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    text = json.dumps({"claims": [{"out": request["messages"][1]["content"][:160], "evidence": [1, 2, 3, 4]}]})
    sys.stdout.write(json.dumps({"key": request["key"], "text": text, "token_ids": [0], "stop": "eos"}) + "\\n")
    sys.stdout.flush()
"""
_JSON = msgspec.json.Encoder(order="sorted")


class Floor:
    """One run over `dossiers` dossiers, with CPU seconds by step."""

    def __init__(self, folder: Path, dossiers: int) -> None:
        self.seconds: dict[str, float] = {}
        self._documents = [folder / f"{number}.txt" for number in range(dossiers * LEAVES)]
        for number, path in enumerate(self._documents):
            path.write_text(f"document {number}\n" + "alpha beta gamma delta invoice payment ledger\n" * 12)
        self._db = sqlite3.connect(folder / "floor.sqlite", isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=4096"):
            self._db.execute(f"PRAGMA {pragma}")
        for statement in DDL:
            self._db.execute(statement)
        self._model = subprocess.Popen([sys.executable, "-c", ANSWER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self) -> None:
        """Do the leaves of all dossiers, then as many inner nodes, group by group."""
        inner = len(self._documents) // LEAVES * INNER
        for start in range(0, len(self._documents), GROUP):
            group = self._documents[start : start + GROUP]
            texts = self._timed("read documents", partial(_read, group))
            self._group(start, texts, leaves=True)
        for start in range(0, inner, GROUP):
            size = min(GROUP, inner - start)
            texts = [b"[1] out: %d\n" % (start + number) * 8 for number in range(size)]
            self._group(len(self._documents) + start, texts, leaves=False)
        assert self._model.stdin is not None
        self._model.stdin.close()
        self._model.wait()
        self._db.close()

    def _group(self, start: int, texts: list[bytes], *, leaves: bool) -> None:
        requests = self._timed("encode and hash preimages", lambda: [_request(text) for text in texts])
        answers = self._timed("ask and decode", lambda: self._ask(requests))
        rows = self._timed("encode and hash what is kept", lambda: _rows(start, texts, requests, answers, leaves))
        self._timed("write rows", lambda: self._write(rows))
        self._timed("commit", lambda: self._db.execute("COMMIT"))

    def _ask(self, requests: list[tuple[bytes, bytes]]) -> list[dict[str, object]]:
        """Send a group and read its answers, no more ahead than the pipe takes."""
        assert self._model.stdin is not None and self._model.stdout is not None
        answers = []
        for begin in range(0, len(requests), 32):
            part = requests[begin : begin + 32]
            self._model.stdin.write(b"".join(line + b"\n" for _, line in part))
            self._model.stdin.flush()
            answers += [msgspec.json.decode(self._model.stdout.readline()) for _ in part]
        return answers

    def _write(self, rows: dict[str, list[tuple[object, ...]]]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        for table, values in rows.items():
            marks = ",".join("?" * len(values[0]))
            self._db.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", values)

    def _timed(self, step: str, do: Callable[[], Done]) -> Done:
        began = time.process_time()
        result = do()
        self.seconds[step] = self.seconds.get(step, 0.0) + time.process_time() - began
        return result


def _read(documents: list[Path]) -> list[bytes]:
    return [path.read_bytes() for path in documents]


def _request(text: bytes) -> tuple[bytes, bytes]:
    """Return the key of a request and its line."""
    messages = [{"role": "system", "content": "leaf"}, {"role": "user", "content": text.decode()}]
    record = {
        "messages": messages,
        "grammar": None,
        "max_new_tokens": 384,
        "input_tokens": 100000,
        "toolchain": "0" * 64,
    }
    key = blake3(_JSON.encode(record), derive_key_context="floor request").hexdigest()
    return bytes.fromhex(key), msgspec.json.encode({"protocol": 1, "key": key, "messages": messages})


def _rows(
    start: int,
    texts: list[bytes],
    requests: list[tuple[bytes, bytes]],
    answers: list[dict[str, object]],
    leaves: bool,
) -> dict[str, list[tuple[object, ...]]]:
    """Return gsum's rows of a group: values of the right sizes, hashed as often as gsum must."""
    tables: dict[str, list[tuple[object, ...]]] = {name: [] for name in ("blob", "execution", "entry")}
    events: list[bytes] = []
    for number, (text, (request, line), answer) in enumerate(zip(texts, requests, answers, strict=True), start):
        label = f"//bench:d{number // LEAVES:05d}/leaf-{number % LEAVES:02d}"
        action = _JSON.encode(
            {"label": label, "scope": "0" * 64, "children": [], "toolchain": "0" * 64, "prompt": "1" * 64}
        )
        key = blake3(action, derive_key_context="floor action").digest()
        generation, result = _JSON.encode(answer), _JSON.encode({"claims": answer["text"], "evidence": [label] * 4})
        kept = [generation, result, text] if leaves else [generation, result]
        digests = [blake3(data).digest() for data in kept]
        tables["blob"] += [(digest, len(data), data) for digest, data in zip(digests, kept, strict=True)]
        observation = _JSON.encode({"generation": digests[0].hex(), "request": request.hex(), "seconds": "0.0001"})
        tables["execution"].append((request, 1, digests[0], observation, blake3(observation).digest(16), line))
        perimeter = _JSON.encode({"id": label, "active": True, "eligible": True, "principal": "reader"})
        row = (key, digests[1], request, digests[0], digests[-1], label, "generated", "VALID", "i", "now", 1)
        row = (*row, "reader", "act", 1)
        beside = (blake3(perimeter, derive_key_context="floor perimeter").digest(), action, perimeter)
        tables["entry"].append((None, *row, blake3(msgspec.msgpack.encode(row)).digest(16), *beside))
        events += [_JSON.encode({"event": "ActionFinished", "label": label, "key": key.hex()})] * 2
    return tables | {"event": [("i", start, msgspec.msgpack.encode(events))]}


def measure(where: Path, dossiers: int) -> dict[str, Any]:
    """Run once in a folder of its own: seconds of wall, of CPU here and in the program, and of CPU by step."""
    folder = Path(tempfile.mkdtemp(prefix="floor-", dir=where))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        began = time.perf_counter()
        floor = Floor(folder, dossiers)
        prepared, at = time.perf_counter(), time.process_time()
        floor.run()
        wall, cpu = time.perf_counter() - prepared, time.process_time() - at
    finally:
        shutil.rmtree(folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "actions": dossiers * (LEAVES + INNER),
        "wall": wall,
        "cpu": cpu,
        "program": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "prepared": prepared - began,
        "steps": floor.seconds,
    }


def main() -> None:
    """Run once and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where to work: best on the file system that gsum is measured on")
    parser.add_argument("--dossiers", type=int, default=625, help="16 actions each")
    given = parser.parse_args()
    found = measure(given.folder, given.dossiers)
    print(
        f"{found['actions']:,} actions: {found['wall']:.3f} s wall, {found['cpu']:.3f} s CPU here, "
        f"{found['program']:.3f} s CPU in the program (prepared in {found['prepared']:.1f} s)"
    )
    for step, seconds in found["steps"].items():
        print(f"  {step:30} {seconds * 1e6 / found['actions']:7.1f} µs an action")


if __name__ == "__main__":
    main()
