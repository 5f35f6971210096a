"""What a null build shares with every other command: folders, the time, words. Imports no click, no msgspec."""

from __future__ import annotations

import time
from collections.abc import Iterable

STORE_FOLDER = ".gsum"
INDEX_FOLDER = "index"


def utc_now() -> str:
    """Return the time as records have it: ISO 8601, UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 target`, `1,200 targets`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """Return a duration as people read it: `0.4 s`, `12.3 s`, `3 min 5 s`, `2 h 4 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def counts_line(
    targets: int, cached: int, cut_off: int, generated: int, rest: Iterable[str], tokens: int, seconds: float
) -> str:
    """Return the counts of a build; `rest` are those that are named only where there are any."""
    counts = [counted(targets, "target"), f"{cached} cached", f"{cut_off} cut off", f"{generated} generated", *rest]
    return ", ".join([*counts, counted(tokens, "token"), duration(seconds)])
