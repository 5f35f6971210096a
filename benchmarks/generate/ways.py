"""What a way to generate is, and what one turn of it took. Pure; knows no engine."""

from __future__ import annotations

import os
import statistics
from pathlib import Path
from typing import Any, Protocol

import msgspec

Prompt = tuple[int, ...]


class Asked(msgspec.Struct, frozen=True):
    """A prompt as token ids, and how many tokens are to be generated after it."""

    prompt: Prompt
    new_tokens: int


class Turn(msgspec.Struct, frozen=True):
    """One run of a way over its prompts. `cpu`: seconds of the processes that hold the model.

    `forced` of the new tokens were set by a grammar and fed together; each of the others took a step of the model.
    """

    requests: int
    prompt_tokens: int
    new_tokens: int
    wall: float
    cpu: float
    outputs: tuple[tuple[int, ...], ...] = ()
    forced: int = 0


class Way(Protocol):
    """A way to generate, with its model loaded. `turn` may be called any number of times."""

    name: str
    start: float
    """Seconds until it could be asked."""

    def turn(self) -> Turn:
        """Answer all prompts once."""

    def close(self) -> None:
        """End its processes."""


class Measured(msgspec.Struct):
    """A way's turns so far."""

    way: Way
    turns: list[Turn] = []
    loads: list[float] = []

    def measure(self) -> None:
        """Run one more turn."""
        self.turns.append(self.way.turn())
        self.loads.append(os.getloadavg()[0])

    def row(self) -> dict[str, Any]:
        """Return what is published: medians over the turns, and their lowest and highest."""
        first = self.turns[0]
        rates = [turn.requests / turn.wall for turn in self.turns]
        return {
            "way": self.way.name,
            "turns": len(self.turns),
            "requests": first.requests,
            "prompt tokens": first.prompt_tokens,
            "new tokens": first.new_tokens,
            "forced": first.forced,
            "sampled": first.new_tokens - first.forced,
            "tokens a step": round(first.new_tokens / max(1, first.new_tokens - first.forced), 2),
            "requests a s": round(statistics.median(rates), 3),
            "from": round(min(rates), 3),
            "to": round(max(rates), 3),
            "new tokens a s": round(statistics.median([turn.new_tokens / turn.wall for turn in self.turns]), 1),
            "cpu s a request": round(self.cpu_per_request(), 2),
            "start s": round(self.way.start, 1),
            "load": round(max(self.loads), 1),
        }

    def rate(self) -> float:
        """Return the median of requests a second."""
        return statistics.median([turn.requests / turn.wall for turn in self.turns])

    def cpu_per_request(self) -> float:
        """Return the median of processor seconds a request."""
        return statistics.median([turn.cpu / turn.requests for turn in self.turns])


def cpu_of(pids: list[int]) -> float:
    """Return the processor seconds of running processes, from the system's table."""
    total = 0.0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def same_outputs(one: Measured, other: Measured) -> str:
    """Say how many of the outputs that both made are equal, token by token."""
    pairs = list(zip(one.turns[0].outputs, other.turns[0].outputs, strict=False))
    return f"{sum(a == b for a, b in pairs)} of {len(pairs)}"
