"""Times the embedded model: start, prefill, decoding and a whole leaf. `python benchmarks/bench_generate.py [REPEATS]`.

Prints machine, versions, repeats and medians. The model must have been fetched.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from pathlib import Path

import platformdirs

from gsum.engine.executors.make import make_executor
from gsum.engine.executors.protocol import ExecRequest, Executor, Generated
from gsum.rules.config import LocalToolchain
from gsum.rules.loader import load_workspace
from gsum.rules.requests import Message, Request, Role

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("GSUM_CACHE") or platformdirs.user_cache_path("gsum"))
LINES = "\n".join(f"[{n}] Crate MB-{n:03d} site: North shed {n}." for n in range(1, 41))
ENDLESS = "start: /[a-z ]{2000}/"


def _request(lines: str, grammar: str, new: int) -> Request:
    messages = (Message(Role.SYSTEM, "You copy facts. " * 60), Message(Role.USER, lines))
    return Request(messages, 1, grammar, new, 4096, "bench", "bench")


def _run(executor: Executor, request: Request, salt: int) -> Generated:
    executor.submit([ExecRequest(f"{salt:064d}", request, 600)])
    outcomes = executor.wait(None)
    if not isinstance(outcomes[0], Generated):
        raise SystemExit(f"{outcomes[0].message}: {outcomes[0].facts}")
    return outcomes[0]


def _round(made: Executor) -> dict[str, float]:
    """Run one fresh worker through a cold prompt, warm ones and a long answer."""
    began = time.monotonic()
    cold = _run(made, _request(LINES, 'start: "{}"', 8), 1)
    started = time.monotonic() - began - cold.seconds
    one = _run(made, _request(LINES, 'start: ("a" | "b")', 8), 2)
    long = _run(made, _request(LINES, ENDLESS, 65), 3)
    decoding = (long.seconds - one.seconds) / (long.sampled - one.sampled)
    return {
        "worker start, s": started,
        "warm prompt and one token, s": one.seconds,
        "prefill, tokens/s": one.prefilled / one.seconds,
        "decoding, tokens/s": 1 / decoding,
        "tokens of the prefix reused": one.reused,
    }


def main() -> None:
    """Print a table of medians."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    workspace = load_workspace(ROOT)
    declared = workspace.toolchains["smollm2"]
    if not isinstance(declared, LocalToolchain):
        raise SystemExit("the toolchain `smollm2` is not a local one")
    numerics = workspace.numerics[declared.numerics]
    rounds: list[dict[str, float]] = []
    for _ in range(repeats):
        made = make_executor(
            declared, numerics, cache_dir=CACHE, workspace_root=ROOT, name="smollm2", environ=os.environ
        )
        try:
            rounds.append(_round(made))
        finally:
            made.close()
    versions = ", ".join(f"{name} {version}" for name, version in numerics.libraries.items())
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; {versions}")
    print(f"{declared.dtype.value}, {numerics.instruction_set}, {numerics.threads} threads; {repeats} repeats, medians")
    for name in rounds[0]:
        print(f"  {name:32} {statistics.median(one[name] for one in rounds):10.2f}")


if __name__ == "__main__":
    main()
