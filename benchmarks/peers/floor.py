"""What the page says of rows, of start-up and of the floor of Python, from the figures of `small.py`. Pure."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
MOST_ROWS, MOST_START = 2.0, 2.0
"""Rows an action beside blobs; CPU of a light command's start as a multiple of Python's with click and msgspec."""
ACTIONS = 100_000
"""Of the large run, whose CPU seconds `floor_lines` is given."""


def small_goals(small: Row) -> list[tuple[str, float, float]]:
    """Return the goals of start-up and of rows: name, most, reached."""
    (base, least), *others = small["start-up"].items()
    found = [(f"start of `{name}`, CPU, of `{base}`", MOST_START, cpu / least) for name, cpu in others]
    return [*found, ("rows an action of a cold build, beside blobs", MOST_ROWS, sum(each_action(small).values()))]


def each_action(small: Row) -> dict[str, float]:
    """Return the kinds of rows that actions have, and how many: not those of a build or of a declaration."""
    return {name: count for name, count in small["rows"].items() if name != "blob" and count > 0.5}


def rows_lines(small: Row) -> list[str]:
    """Say what the rows of an action are for."""
    kinds = each_action(small)
    return [
        f"**Rows.** An action of a cold build writes {sum(kinds.values()):.1f} rows beside its blobs: "
        f"{', '.join(kinds)}. The request's preimage stands in the execution's row, the action's and its perimeter's "
        "in the entry's, which also says what its label was built as: every later miss is explained by them. An entry "
        "is found by its key, its label and its perimeter.",
    ]


def floor_lines(small: Row, theirs: float | None, ours: float | None) -> list[str]:
    """Say what Python needs for the same; `theirs`, `ours`: CPU seconds of `floor-py` and gsum, cold, `ACTIONS`."""
    floor = small["floor"]
    least, program = (
        (seconds * 1e6 / floor["actions"]) for seconds in (floor["cpu"] + floor["program"], floor["program"])
    )
    said = (
        "**Python's floor.** `floor_durable.py` reads, hashes, asks and keeps such rows durably, with no analysis, "
        f"plan or check: {least:,.0f} µs of CPU an action, of which {program:,.0f} in the program that is asked."
    )
    if theirs and ours:
        said += (
            f" `floor-py`, which keeps nothing until it ends and asks no program, takes {theirs * 1e6 / ACTIONS:,.0f}: "
            f"a durable engine in Python is at {least * ACTIONS / theirs / 1e6:.1f} times that before it does anything "
            f"of its own. gsum takes {ours * 1e6 / ACTIONS:,.0f}: {ours * 1e6 / ACTIONS - least:,.0f} µs are no floor "
            "but gsum's own work (graph, keys, requests, strict parsing, evidence, results, scheduling), and that is "
            "where a goal for cold builds is missed. A recipe edit is such a build of a quarter of the actions, after "
            "the look for what changed."
        )
    said += f" Start-up and this floor were taken at a load average of {small['load']:.1f}, in seconds of CPU."
    return [said]
