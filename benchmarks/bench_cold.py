"""A whole dossier cold: 16 generations, from the command to its last line, with no store and no worker.

    .venv/bin/python benchmarks/bench_cold.py --write     # writes benchmarks/results/cold.json and .md

The model is converted beforehand, as it is once on each machine. Two ways alternate: with the prefixes that the worker
of an earlier build kept, and without any. Not for a machine that does else.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import platformdirs
from readme import LABEL, workspace

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "cold"
GOAL = 25.0
WITHOUT, WITH = "no prefix kept", "prefixes kept"


class Bench:
    """A workspace with one dossier and a cache of its own, which shares what was downloaded and converted."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "workspace"
        self.place.mkdir()
        workspace(self.place)
        self.cache, sockets = folder / "cache", folder / "run"
        self.cache.mkdir()
        sockets.mkdir(mode=0o700)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GSUM_")},
            "GSUM_CACHE": str(self.cache),
            "XDG_RUNTIME_DIR": str(sockets),
        }
        usual = Path(os.environ.get("GSUM_CACHE") or platformdirs.user_cache_path("gsum"))
        for name in ("models", "converted", "probes"):
            if (usual / name).is_dir():
                (self.cache / name).symlink_to(usual / name)

    def gsum(self, *arguments: str) -> str:
        """Run gsum in the workspace and return what it printed."""
        command = [sys.executable, "-m", "gsum.cli", *arguments]
        done = subprocess.run(command, cwd=self.place, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"`gsum {' '.join(arguments)}` failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def forget_prefixes(self) -> None:
        """Remove what workers kept of the prefixes that they computed."""
        shutil.rmtree(self.cache / "prefixes", ignore_errors=True)

    def cold(self) -> dict[str, Any]:
        """Build with no store and no worker; end the worker afterwards."""
        shutil.rmtree(self.place / ".gsum", ignore_errors=True)
        began = time.monotonic()
        report = json.loads(self.gsum("--json", "build", LABEL))
        seconds = time.monotonic() - began
        cpu = sum(one["cpu_seconds"] for one in self.workers())
        self.gsum("worker", "stop")
        return {
            "wall s": seconds,
            "workers' cpu s": cpu,
            "generations": len(report["generated"]),
            "new tokens": report["new_tokens"],
            "load": os.getloadavg()[0],
        }

    def workers(self) -> list[dict[str, float]]:
        """Return the CPU seconds of each worker that runs."""
        tick = os.sysconf("SC_CLK_TCK")
        found = []
        for one in json.loads(self.gsum("--json", "worker", "status"))["workers"]:
            fields = Path(f"/proc/{one['pid']}/stat").read_text().rpartition(")")[2].split()
            found.append({"cpu_seconds": (int(fields[11]) + int(fields[12])) / tick})
        return found


def table(rows: list[dict[str, Any]], processors: int | None) -> str:
    """Return the page."""
    names = [name for name in rows[0] if name != "way"]
    lines = [
        "# A dossier cold",
        "",
        f"`gsum build {LABEL}` with no store and no worker, on {processors} processors: from the command to its end,",
        "the start of the workers included, the model converted before. Medians (least to most) of the repeats.",
        "",
        "| way | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for way in (WITHOUT, WITH):
        columns = [[row[name] for row in rows if row["way"] == way] for name in names]
        cells = [f"{statistics.median(one):.4g} ({min(one):.4g}–{max(one):.4g})" for one in columns]
        lines.append(f"| {way} | " + " | ".join(cells) + " |")
    lines += ["", f"| goal: at most {GOAL:.0f} s | |", "|---|---|"]
    for way in (WITHOUT, WITH):
        reached = statistics.median(row["wall s"] for row in rows if row["way"] == way)
        lines.append(f"| {way} | {reached:.1f}: {'met' if reached <= GOAL else 'NOT MET'} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/cold.json and .md")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for _ in range(given.repeats):
            for way in (WITHOUT, WITH):
                if way is WITHOUT:
                    bench.forget_prefixes()
                rows.append({"way": way, **bench.cold()})
                print(json.dumps(rows[-1]), flush=True)
    text = table(rows, os.cpu_count())
    print(text)
    if given.write:
        RESULTS.with_suffix(".json").write_text(
            json.dumps({"processors": os.cpu_count(), "rows": rows}, indent=1) + "\n"
        )
        RESULTS.with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
