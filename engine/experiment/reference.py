"""The figures of the reference experiment, as data: 20 test and 10 development dossiers, its own model and prompts.

Quality figures were made with prompts that differ from ours and are context; the counters are not.
"""

from __future__ import annotations

from typing import Any

from gsum.rules.audit import Counts, Total, ratios

TOOLCHAIN = "Qwen2.5-1.5B-Instruct, BF16, eager attention, one RTX 3090, one request at a time"
DOSSIERS = 20
"""How many dossiers were mutated; counters scale with them."""

GENERATIONS = 1559
PAIRS = 62

COUNTERS: dict[str, dict[str, int]] = {
    "incremental": {"recomputed": 180, "hits": 780, "ineligible": 40, "model_calls": 140, "new_tokens": 29_689},
    "full": {"recomputed": 960, "hits": 0, "ineligible": 60, "model_calls": 900, "new_tokens": 104_024},
}
SECONDS = {"incremental": 1118.18, "full": 4021.82}


def _total(
    statuses: dict[str, int], claims: int, valid: int | None, supported: int, facts: tuple[int, int, int]
) -> Total:
    predicted, correct, expected = facts
    counts = Counts(
        claims=claims,
        references=0,
        valid_references=0,
        reference_valid=claims if valid is None else valid,
        supported=supported,
        predicted=predicted,
        correct=correct,
        expected=expected,
    )
    summaries = sum(statuses.values())
    return Total(summaries, statuses, counts, counts.unsupported, counts.duplicates, ratios(counts))


GROUPS: dict[tuple[str, str], Total] = {
    ("initial-development", "model"): _total({"INVALID": 5, "PARTIAL": 5}, 20, None, 5, (19, 6, 480)),
    ("initial-test", "model"): _total({"INVALID": 6, "PARTIAL": 14}, 55, None, 20, (54, 20, 960)),
    ("mutations-test", "incremental"): _total(
        {"INVALID": 26, "PARTIAL": 30, "VALID": 4}, 132, 132, 63, (127, 65, 2640)
    ),
    ("initial-development", "extractive"): _total({"VALID": 10}, 480, 480, 480, (480, 480, 480)),
    ("initial-test", "extractive"): _total({"VALID": 20}, 960, 960, 960, (960, 960, 960)),
    ("mutations-test", "extractive"): _total({"VALID": 60}, 2640, 2640, 2640, (2640, 2640, 2640)),
}
"""By group and system. The full builds equalled the incremental ones."""

REFERENCE_VALID_GIVEN = {("mutations-test", "incremental")}
"""Groups whose count of reference-valid claims is given; elsewhere it is not known and not shown."""


def scaled(value: int, dossiers: int) -> int | None:
    """Return a counter of the reference for another number of mutated dossiers; null where it does not divide."""
    whole, rest = divmod(value * dossiers, DOSSIERS)
    return None if rest else whole


def document() -> dict[str, Any]:
    """Return what of the figures is not in a table of its own."""
    return {
        "toolchain": TOOLCHAIN,
        "dossiers": DOSSIERS,
        "generations": GENERATIONS,
        "pairs": PAIRS,
        "seconds": SECONDS,
    }
