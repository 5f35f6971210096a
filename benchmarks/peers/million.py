"""gsum at a million actions: `PYTHONPATH=HARNESS python million.py --dir /dev/shm/million --json FILE`.

The workload is the harness's, built cold in slices of dossiers (one process a slice, so that memory is that of a
slice), then timed as a whole: nothing changed, one document touched, one edited. GSUM names the command.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from common import PER, Tree, dname  # the harness's
from gsum_tool import GSUM, Gsum

MIB = 1024


def run(folder: Path, store: Path, patterns: list[str], log: Path) -> dict[str, float]:
    """Build, and return wall and CPU seconds, the peak memory in MiB, and how many actions ran."""
    log.write_bytes(b"")
    environment = dict(os.environ, ACTLOG=str(log), GSUM_STORE=str(store))
    began = time.perf_counter()
    # `time` forks the command from a small process: the peak that a child inherits would be ours
    command = ["/usr/bin/time", "-q", "-f", "%M %U %S", "-o", f"{log}.time", GSUM, "build", *patterns, "--quiet"]
    subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True
    )
    wall = time.perf_counter() - began
    peak, user, system = Path(f"{log}.time").read_text().split()
    ran = sum(1 for _ in log.open("rb"))
    return {"s": wall, "cpu": float(user) + float(system), "rss": int(peak) / MIB, "ran": ran}


def main() -> None:
    """Make the tree, build it, time what is left to do when little or nothing changed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, required=True, help="where the tree is made and left")
    parser.add_argument("--store", type=Path, help="the store; else beside the tree")
    parser.add_argument("--dossiers", type=int, default=62_500)
    parser.add_argument("--slice", type=int, default=6_250)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--built", action="store_true", help="the tree is there and built: only time it")
    parser.add_argument("--json", type=Path, required=True)
    given = parser.parse_args()
    folder, store = given.dir / "tree", given.store or given.dir / "store"
    tree, log = Tree(folder, given.dossiers), given.dir / "log"
    found: list[dict[str, object]] = []

    def note(scenario: str, patterns: list[str]) -> None:
        row = {"scenario": scenario, "actions": PER * given.dossiers, **run(folder, store, patterns, log)}
        row["load"] = os.getloadavg()[0]
        found.append(row)
        print(row, file=sys.stderr, flush=True)
        given.json.write_text(json.dumps(found, indent=1))

    if not given.built:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        tree.generate()
        Gsum().prepare(folder, given.dossiers)
    for start in range(0, given.dossiers, given.slice):
        names = [dname(number) for number in range(start, min(start + given.slice, given.dossiers))]
        note("slice", [f"//bench:{name}" for name in names])
    everything = ["//bench:all"]
    time.sleep(0.1)
    note("settle", everything)
    for number in range(given.reps):
        note("null", everything)
        tree.touch(number, number)
        note("touch", everything)
        note("null after touch", everything)
        tree.edit(number + 10, number)
        note("edit", everything)


if __name__ == "__main__":
    main()
