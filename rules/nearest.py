"""What a wrong name was perhaps meant to be. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most like `name`, or None where none is near."""
    pool = sorted(set(candidates))
    folded = {candidate.casefold(): candidate for candidate in pool}
    if name.casefold() in folded:
        return folded[name.casefold()]
    return next(iter(difflib.get_close_matches(name, pool, 1, 0.6)), None)


def suggest(name: str, candidates: Iterable[str], noun: str) -> str:
    """Return a hint: the nearest candidate, or the list of them."""
    pool = sorted(set(candidates))
    close = nearest(name, pool)
    if close is not None:
        return f"did you mean `{close}`?"
    return f"{noun}: " + ", ".join(f"`{candidate}`" for candidate in pool) if pool else f"{noun}: none is declared"
