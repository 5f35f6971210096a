"""The goals of generation, and whether rows of measurements meet them. Pure; what was not measured has no line."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

Row = dict[str, Any]
SEQUENTIAL, LLAMA = 5.0, 1.5
"""How many times the requests a second of `generate` one at a time, and of llama.cpp's server with eight slots."""
FIRST_TOKEN_SECONDS, FOUND_MS = 5.0, 50.0
"""From a cold process to a first token, and to find a warm worker: at most."""


def speed_goals(ways: Sequence[Row]) -> dict[str, str]:
    """Return how many times as fast as others each of the engine's batched ways is, on as many cores."""
    return dict(_speed_goals(ways))


def _speed_goals(ways: Sequence[Row]) -> Iterator[tuple[str, str]]:
    ours = [row for row in ways if row["way"].startswith("gsum ") and not _apart(row["way"])]
    for other in ways:
        name = other["way"]
        if name.startswith("transformers "):
            least = SEQUENTIAL
        elif name.startswith("llama.cpp ") and " 8 slots" in name:
            least = LLAMA
        else:
            continue
        for mine in ours:
            if cores(mine["way"]) == cores(name):
                ratio = mine["requests a s"] / other["requests a s"]
                yield f"{mine['way']} / {name}", f"{ratio:.2f}, at least {least:g}: {_met(ratio >= least)}"


def worker_goals(rows: Sequence[Row]) -> dict[str, str]:
    """Return whether a cold worker's first token and the finding of a warm one are as soon as they shall be."""
    found = {}
    for way in dict.fromkeys(row["way"] for row in rows):
        mine = [row for row in rows if row["way"] == way]
        for name in ("first token s", "with no prefix kept s"):
            seconds = statistics.median(row[name] for row in mine)
            said = _met(seconds <= FIRST_TOKEN_SECONDS)
            found[f"{way}, cold: {name}"] = f"{seconds:.2f}, at most {FIRST_TOKEN_SECONDS:g}: {said}"
        ms = statistics.median(row["warm, found in ms"] for row in mine)
        found[f"{way}, warm: found in ms"] = f"{ms:.1f}, at most {FOUND_MS:g}: {_met(ms <= FOUND_MS)}"
    return found


def cores(way: str) -> int:
    """Return on how many cores a way computes, by its name."""
    return 2 if " 2 workers" in way or " 2 threads" in way else 1


def _apart(way: str) -> bool:
    """Whether one of the engine's ways is there for comparison alone."""
    return ", 1 at a time" in way or ", no grammar" in way


def _met(met: bool) -> str:
    return "met" if met else "NOT MET"
