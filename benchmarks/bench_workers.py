"""One worker with two threads against two with one, a cold start, and what a warm worker costs to find.

    .venv/bin/python benchmarks/bench_workers.py --write     # --again: only the page, of the rows that were kept

Each way first starts a worker that computes everything itself, for one token. Then it starts workers of its own that
read what an earlier one kept of the prefix, has one token of each and one answer (this is not counted), then the same
prompts in the same order. Ways alternate within a repeat. Not for a machine that does else.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import platformdirs
from generate.goals import worker_goals
from generate.prompts import leaf_requests

from gsum.engine.executors.client import LineExecutor
from gsum.engine.executors.make import make_executor
from gsum.engine.executors.protocol import ExecRequest, Executor, Generated
from gsum.engine.executors.slots import Slot
from gsum.engine.executors.staying import Warm
from gsum.engine.executors.workers import look, stop
from gsum.engine.llm.sources import locate_model
from gsum.rules.config import LocalToolchain, NumericsSection
from gsum.rules.loader import load_workspace
from gsum.rules.requests import Request
from gsum.store.digests import Key

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "workers"
WAYS = ((1, "cpu-avx2-2"), (1, "cpu-avx2-2threads-1"), (2, "cpu-avx2-2"))
TICK = os.sysconf("SC_CLK_TCK")


class Bench:
    """The toolchain, its prompts, and a folder of sockets."""

    def __init__(self, prompts: int, sockets: Path) -> None:
        self.workspace = load_workspace(ROOT)
        toolchain = self.workspace.toolchains["smollm2"]
        assert isinstance(toolchain, LocalToolchain)
        self.toolchain = toolchain
        self.requests = leaf_requests(self.workspace, toolchain, prompts)
        self.sockets = sockets
        self.cache = Path(os.environ.get("GSUM_CACHE") or platformdirs.user_cache_path("gsum"))
        locate_model("smollm2", toolchain, cache_dir=self.cache, workspace_root=ROOT, environ=os.environ)
        self._asked = 0

    def executor(self, places: list[int], numerics: NumericsSection, *, alone: bool = False) -> Executor:
        return make_executor(
            self.toolchain,
            numerics,
            cache_dir=self.cache,
            workspace_root=ROOT,
            name="smollm2",
            environ=os.environ,
            warm=Warm(self.sockets, 600),
            places=[Slot(number) for number in places],
            alone=alone,
        )

    def answers(self, executor: Executor, requests: list[Request]) -> list[Generated]:
        """Submit requests and return what came of them."""
        asked = []
        for request in requests:
            self._asked += 1
            asked.append(ExecRequest(Key(f"{self._asked:064x}"), request, 3600))
        executor.submit(asked)
        found: list[Generated] = []
        while len(found) < len(asked):
            for outcome in executor.wait(None):
                if not isinstance(outcome, Generated):
                    raise SystemExit(f"{outcome.message} {outcome.facts}")
                found.append(outcome)
        order = {one.key: place for place, one in enumerate(asked)}
        return sorted(found, key=lambda one: order[one.key])

    def first_token(self, place: int, numerics: NumericsSection, *, alone: bool = False) -> float:
        """Return the seconds from a cold worker's start to its first token; it stays, unless it is `alone`."""
        executor, began = self.executor([place], numerics, alone=alone), time.monotonic()
        self.answers(executor, [first_token(self.requests[0])])
        seconds = time.monotonic() - began
        executor.close()
        return seconds

    def end(self) -> None:
        stop(self.sockets, look(self.sockets), now=True, seconds=20)


def first_token(request: Request) -> Request:
    """Return a request whose answer is one token that the model chose: a grammar could force it before any pass."""
    return msgspec.structs.replace(request, grammar=None, max_new_tokens=1)


def pids(bench: Bench) -> list[int]:
    """Return the process ids of all workers that run."""
    return [worker.status.pid for worker in look(bench.sockets) if worker.status is not None]


def cpu_seconds(processes: list[int]) -> float:
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in processes]
    return sum(int(one[11]) + int(one[12]) for one in fields) / TICK


def memory(processes: list[int]) -> dict[str, int]:
    """Return the resident and the proportional memory of processes in MB: what they share counts once in the second."""
    total = {"resident": 0, "proportional": 0}
    for pid in processes:
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        kb = {row.split(":")[0]: int(row.split()[1]) for row in rows[1:]}
        total["resident"] += kb["Rss"] // 1024
        total["proportional"] += kb["Pss"] // 1024
    return total


def way(bench: Bench, workers: int, profile: str) -> dict[str, Any]:
    """Measure one way: its start, its work, its memory, and how long its worker takes to be found again."""
    numerics = bench.workspace.numerics[profile]
    computed = bench.first_token(0, numerics, alone=True)
    first = {"first token s": bench.first_token(0, numerics), "of it cpu s": cpu_seconds(pids(bench))}
    for place in range(1, workers):
        bench.first_token(place, numerics)
    executor = bench.executor(list(range(workers)), numerics)
    bench.answers(executor, bench.requests[:workers])
    before, began = cpu_seconds(pids(bench)), time.monotonic()
    done = bench.answers(executor, bench.requests)
    wall, cpu = time.monotonic() - began, cpu_seconds(pids(bench)) - before
    held, used = memory(pids(bench)), len(pids(bench))
    executor.close()
    again = bench.executor([0], numerics)
    began = time.monotonic()
    again.submit([ExecRequest(Key("f" * 64), bench.requests[0], 3600)])
    assert isinstance(again, LineExecutor)
    while again.pid is None:
        again.wait(0)
    found = time.monotonic() - began
    again.close()
    bench.end()
    new = sum(one.forced + one.sampled for one in done)
    return {
        "way": f"{used} × {numerics.threads}",
        "profile": profile,
        **first,
        "with no prefix kept s": computed,
        "requests": len(done),
        "new tokens": new,
        "wall s": wall,
        "cpu s": cpu,
        "requests a minute": 60 * len(done) / wall,
        "warm, found in ms": 1000 * found,
        "resident MB": held["resident"],
        "proportional MB": held["proportional"],
        "load": os.getloadavg()[0],
        "ids": hash(tuple(one.generation.token_ids for one in done)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/workers.json and .md")
    parser.add_argument("--again", action="store_true", help="write the page of workers.json again, and run nothing")
    given = parser.parse_args()
    if given.again:
        kept = json.loads(RESULTS.with_suffix(".json").read_text())
        RESULTS.with_suffix(".md").write_text(table(kept["rows"], kept["processors"]))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # end the workers, too
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(given.prompts, Path(folder) / "run")
        try:
            for profile in dict.fromkeys(profile for _, profile in WAYS):
                bench.first_token(0, bench.workspace.numerics[profile])  # so that its prefix is kept
                bench.end()
            for repeat in range(given.repeats):
                for workers, profile in WAYS[:: 1 if repeat % 2 == 0 else -1]:
                    rows.append(way(bench, workers, profile))
                    print(msgspec.json.encode(rows[-1]).decode(), flush=True)
        finally:
            bench.end()
    by_profile: dict[str, set[int]] = {}
    for row in rows:
        by_profile.setdefault(row["profile"], set()).add(row.pop("ids"))
    if any(len(ids) > 1 for ids in by_profile.values()):
        raise SystemExit("one profile gave different token ids in different ways")
    text = table(rows, os.cpu_count())
    print(text)
    if given.write:
        report = {"processors": os.cpu_count(), "rows": rows}
        RESULTS.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
        RESULTS.with_suffix(".md").write_text(text)


def table(rows: list[dict[str, Any]], processors: int | None) -> str:
    """Return the medians over the repeats, and what became of the goals, as a page."""
    prompts, repeats = rows[0]["requests"], sum(row["way"] == rows[0]["way"] for row in rows)
    names = [name for name in rows[0] if name not in ("way", "profile")]
    lines = [
        "# Workers and threads",
        "",
        f"{prompts} leaf prompts of the corpus, medians of {repeats} repeats, ways alternating, on {processors}",
        "processors. A cold worker's first token is its start, without a conversion, with the prefill of one prompt;",
        "what the prompts share is read, as an earlier worker has kept it, or else computed.",
        "",
        "| workers × threads | profile | " + " | ".join(names) + " |",
        "|---" * (len(names) + 2) + "|",
    ]
    for key in dict.fromkeys((row["way"], row["profile"]) for row in rows):
        mine = [row for row in rows if (row["way"], row["profile"]) == key]
        cells = [f"{statistics.median(row[name] for row in mine):.4g}" for name in names]
        lines.append(f"| {key[0]} | {key[1]} | " + " | ".join(cells) + " |")
    goals = [f"| {goal} | {reached} |" for goal, reached in worker_goals(rows).items()]
    lines += ["", "| goal | reached |", "|---|---|", *goals]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
