"""Checks and times the schemes of CUDA profiles on this machine's GPU: `single-2` (cuda-2) and `fixed-1` (cuda-3).

A random Qwen2 of the reference model's shape, in bfloat16 with eager attention; then the reference model itself where
`gsum fetch --toolchain qwen` has brought it. With --write, the results are benchmarks/results/gpu.json and gpu.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # as the engine starts its workers

import platformdirs
import torch
from generate.prompts import leaf_requests
from gpu.measure import Run, answer, compared
from gpu.model import SHAPES, random_model, requests

from gsum.engine.llm.load import LoadedModel, load
from gsum.engine.llm.ragged import uneven_rows
from gsum.engine.llm.schemes import SCHEMES, SINGLE
from gsum.engine.llm.sources import ToolchainError, locate_model
from gsum.rules.config import LocalToolchain
from gsum.rules.loader import load_workspace
from gsum.rules.requests import Request

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("GSUM_CACHE") or platformdirs.user_cache_path("gsum"))
RESULTS = ROOT / "benchmarks" / "results"
FIXED = SCHEMES["fixed-1"]
REAL = "qwen"
LIBRARIES = ("torch", "transformers", "tokenizers")


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: to try this script itself")
    parser.add_argument("--shape", choices=tuple(SHAPES), default="qwen2.5-1.5b", help="the random model's")
    parser.add_argument("--requests", type=int, default=16, help="how many (default: 16)")
    parser.add_argument("--single", type=int, default=4, help="of these, how many under single-2 (default: 4)")
    parser.add_argument("--new-tokens", type=int, default=128, help="of each request at most (default: 128)")
    parser.add_argument("--no-real", action="store_true", help="leave the reference model out")
    parser.add_argument("--write", action="store_true", help="write gpu.json and gpu.md")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR", help="where (default: benchmarks/results)")
    return parser.parse_args(given)


def check(name: str, loaded: LoadedModel, asked: Sequence[Request], single: int) -> dict[str, Any]:
    """Answer requests under both schemes, alone and together in three orders, and compare all of it."""
    numbered = list(enumerate(asked))
    answer("warming up", loaded, SINGLE, numbered[:1], together=False)
    answer("warming up", loaded, FIXED, numbered[:2], together=True)
    reference = answer("single-2, one at a time", loaded, SINGLE, numbered[:single], together=False)
    again = answer("single-2, again", loaded, SINGLE, numbered[:single], together=False)
    alone = answer("fixed-1, one at a time", loaded, FIXED, numbered, together=False)
    orders = {"": numbered, ", reversed": numbered[::-1], ", from the middle": _turned(numbered)}
    together = [
        answer(f"fixed-1, up to {FIXED.width} together{said}", loaded, FIXED, order, together=True)
        for said, order in orders.items()
    ]
    runs: list[Run] = [reference, again, alone, *together]
    invariance = [compared(reference, again), *(compared(alone, one) for one in together)]
    exact = all(one["same logits at every step"] == one["requests"] for one in invariance)
    return {
        "model": name,
        "bitwise invariant": exact,
        "products whose rows move": uneven_rows(loaded.model, FIXED),
        "invariance": invariance,
        "across schemes, which promise nothing to each other": compared(reference, alone),
        "ways": [run.row() for run in runs],
    }


def _turned(numbered: list[tuple[int, Request]]) -> list[tuple[int, Request]]:
    half = len(numbered) // 2
    return numbered[half:] + numbered[:half]


def real_model(device: str) -> tuple[LoadedModel, list[Request]] | str:
    """Return the reference model with leaves of the corpus, or why it is not here."""
    workspace = load_workspace(ROOT)
    toolchain = workspace.toolchains[REAL]
    if not isinstance(toolchain, LocalToolchain) or toolchain.device.value != device:
        return f"`{REAL}` is declared for another device"
    try:
        found = locate_model(REAL, toolchain, cache_dir=CACHE, workspace_root=ROOT, environ=os.environ)
        loaded = load(REAL, toolchain, found.folder, CACHE)
    except ToolchainError as error:
        return error.message
    return loaded, leaf_requests(workspace, toolchain, 16)


def report(given: argparse.Namespace) -> dict[str, Any]:
    """Run all checks."""
    began = time.monotonic()
    torch.set_num_threads(1)
    loaded = random_model(SHAPES[given.shape], given.device, torch.bfloat16)
    asked = requests(given.requests, given.new_tokens)
    models = [check(f"random Qwen2, {given.shape}, bfloat16, eager", loaded, asked, given.single)]
    del loaded
    real = "left out" if given.no_real else real_model(given.device)
    if not isinstance(real, str):
        models.append(check(REAL, real[0], real[1][: given.requests], given.single))
    return {
        "device": torch.cuda.get_device_name() if given.device == "cuda" else f"cpu, {platform.machine()}",
        "cuda": torch.version.cuda if given.device == "cuda" else None,
        "system": platform.platform(),
        "versions": {name: metadata.version(name) for name in LIBRARIES} | {"python": platform.python_version()},
        "workspace of cublas": os.environ["CUBLAS_WORKSPACE_CONFIG"],
        "reference model": "run" if not isinstance(real, str) else f"not run: {real}",
        "seconds": round(time.monotonic() - began),
        "models": models,
    }


def markdown(found: dict[str, Any]) -> str:
    """Return a report as a page."""
    lines = ["# The GPU check", "", "Written by `make gpu-check`; figures of one run.", ""]
    facts = ("device", "cuda", "system", "versions", "workspace of cublas", "reference model", "seconds")
    lines += [f"- {name}: {found[name]}" for name in facts]
    for model in found["models"]:
        exact = "yes" if model["bitwise invariant"] else "NO"
        moved = ", ".join(model["products whose rows move"]) or "none"
        lines += ["", f"## {model['model']}", "", f"Bitwise invariant: {exact}. Products whose rows move: {moved}.", ""]
        lines += [*_table(model["ways"]), ""]
        lines += _table([*model["invariance"], model["across schemes, which promise nothing to each other"]])
        lines += ["", "The last row compares two schemes, which promise nothing to each other."]
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[dict[str, Any]]) -> list[str]:
    names = list(rows[0])
    cells = ["| " + " | ".join("-" if row[name] is None else str(row[name]) for name in names) + " |" for row in rows]
    return ["| " + " | ".join(names) + " |", "|" + "---|" * len(names), *cells]


def main(given: argparse.Namespace) -> int:
    """Print the report, and write it if asked; return 8 if a scheme is not invariant."""
    if given.device == "cuda" and not torch.cuda.is_available():
        print("gpu_check: this machine has no CUDA device that torch sees; nothing was measured")
        return 0
    found = report(given)
    print(markdown(found), end="")
    if given.write:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "gpu.json").write_text(json.dumps(found, indent=1) + "\n")
        (given.out / "gpu.md").write_text(markdown(found))
    return 0 if all(model["bitwise invariant"] for model in found["models"]) else 8


if __name__ == "__main__":
    sys.exit(main(arguments(sys.argv[1:])))
