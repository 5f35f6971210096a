"""What the page says beside the harness: store rows an action, start-up, and the floor of a durable engine in Python.

    python benchmarks/peers/small.py --dir /dev/shm/small     # writes benchmarks/results/peers-small.json

GSUM names the command. Rows are counted after a cold build; seconds are of CPU, which the load changes least.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

from floor_durable import INNER, LEAVES, measure  # noqa: E402

GSUM = os.environ.get("GSUM", "gsum")
OUT = HERE.parent / "results" / "peers-small.json"
STARTS = {
    "python -c 'import click, msgspec'": ["-c", "import click, msgspec"],
    "gsum --version": ["-m", "gsum.cli", "--version"],
    "gsum query deps": ["-m", "gsum.cli", "query", "deps //dossier:S-037/root"],
}
BUILD = """\
[workspace]
name = "rows"
principal = "reader"
default_toolchain = "act"

[sources.docs]
path = "docs"

[toolchain.act]
executor = "command"
command = [{python}, "answer.py"]
identity = "act-1"
reproducible = true
network = false
grammar = {{ strength = "none" }}

[prompt.p]
system = "copy"
instruction = "copy"

[schema.bytes]
fields = ["out"]

[package.bench]
rule = "summary_tree"
sources = "docs"
map_prompt = "p"
reduce_prompt = "p"
schema = "bytes"
fan_in = 4
map_input_tokens = 100000
reduce_input_tokens = 100000
"""
ANSWER = """
import hashlib, json, sys
for line in sys.stdin:
    request = json.loads(line)
    out = hashlib.sha256(line.encode()).hexdigest()
    text = json.dumps({"claims": [{"out": out, "evidence": [1]}]})
    print(json.dumps({"key": request["key"], "text": text, "token_ids": [0], "stop": "eos"}), flush=True)
"""


def rows_an_action(folder: Path, dossiers: int) -> dict[str, float]:
    """Build so many dossiers cold and return the rows of each kind an action, blobs and what is one a build apart."""
    (folder / "BUILD.toml").write_text(BUILD.format(python=json.dumps(sys.executable)))
    (folder / "answer.py").write_text(ANSWER)
    for dossier in range(dossiers):
        documents = folder / "docs" / f"d{dossier:05d}"
        documents.mkdir(parents=True)
        for number in range(LEAVES):
            (documents / f"{dossier:05d}-{number:02d}.txt").write_text(f"dossier {dossier} document {number}\n")
    subprocess.run([GSUM, "build", "//bench:all", "--quiet"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    database = sqlite3.connect(f"file:{folder / '.gsum/store.sqlite'}?mode=ro", uri=True)
    counts = {f"{kind} record": n for kind, n in database.execute("SELECT kind, count(*) FROM record GROUP BY kind")}
    for table in ("execution", "entry", "target", "event", "blob"):
        ((counts[table],),) = database.execute(f"SELECT count(*) FROM {table}")
    database.close()
    return {name: round(count / (dossiers * (LEAVES + INNER)), 3) for name, count in counts.items()}


def start_ups(repeats: int) -> dict[str, float]:
    """Return the median CPU seconds of each start, taking turns."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    found: dict[str, list[float]] = {name: [] for name in STARTS}
    for repeat in range(repeats + 1):
        for name, arguments in STARTS.items():
            process = subprocess.Popen(
                [sys.executable, *arguments], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
            )
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit(f"{name} ended with {process.returncode}")
            if repeat:  # the first one compiles
                found[name].append(used.ru_utime + used.ru_stime)
    return {name: round(statistics.median(seconds), 4) for name, seconds in found.items()}


def take(folder: Path) -> dict[str, Any]:
    """Return all figures; what is made under `folder` is taken away again."""
    folder.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="small-", dir=folder))
    try:
        (place / "rows").mkdir()
        floors = [measure(folder, 625) for _ in range(3)]
        return {
            "rows": rows_an_action(place / "rows", 40),
            "start-up": start_ups(9),
            "floor": min(floors, key=lambda one: one["cpu"] + one["program"]),
            "load": os.getloadavg()[0],
        }
    finally:
        shutil.rmtree(place)


def main() -> None:
    """Take the figures and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=Path("/dev/shm/small"), help="where to work")
    given = parser.parse_args()
    OUT.write_text(json.dumps(take(given.dir), indent=1) + "\n")
    print(OUT.read_text(), end="")


if __name__ == "__main__":
    main()
