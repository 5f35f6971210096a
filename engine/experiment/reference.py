"""The figures of the reference experiment, as data: 20 test and 10 development dossiers, its own model and prompts.

Quality figures were made with prompts that differ from ours and are context; the counters are not.
"""

from __future__ import annotations

import msgspec

from gsum.rules.audit import ratio

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


class Figures(msgspec.Struct, frozen=True):
    """The reference's run as a whole; `counters` and `seconds` by kind of build."""

    toolchain: str
    dossiers: int
    generations: int
    pairs: int
    equal_pairs: int
    counters: dict[str, dict[str, int]]
    seconds: dict[str, float]


class Published(msgspec.Struct, frozen=True):
    """A group's quality as it was published; null where no figure is known. `statuses` counts summaries."""

    summaries: int
    statuses: dict[str, int]
    claims: int
    reference_valid: int | None
    supported: int
    unsupported: int
    predicted: int
    duplicates: int
    correct: int
    expected: int
    precision: str | None
    recall: str | None


def _published(
    statuses: dict[str, int], claims: int, reference_valid: int | None, supported: int, facts: tuple[int, int, int]
) -> Published:
    """Return a group's figures; `facts` are predicted, correct and expected, and ratios are taken of them."""
    predicted, correct, expected = facts
    return Published(
        summaries=sum(statuses.values()),
        statuses=statuses,
        claims=claims,
        reference_valid=reference_valid,
        supported=supported,
        unsupported=claims - supported,
        predicted=predicted,
        duplicates=claims - predicted,
        correct=correct,
        expected=expected,
        precision=ratio(correct, predicted),
        recall=ratio(correct, expected),
    )


def _extractive(summaries: int, facts: int) -> Published:
    return _published({"VALID": summaries}, facts, facts, facts, (facts, facts, facts))


GROUPS: dict[tuple[str, str], Published] = {
    ("initial-development", "model"): _published({"INVALID": 5, "PARTIAL": 5}, 20, None, 5, (19, 6, 480)),
    ("initial-test", "model"): _published({"INVALID": 6, "PARTIAL": 14}, 55, None, 20, (54, 20, 960)),
    ("mutations-test", "incremental"): _published(
        {"INVALID": 26, "PARTIAL": 30, "VALID": 4}, 132, 132, 63, (127, 65, 2640)
    ),
    ("initial-development", "extractive"): _extractive(10, 480),
    ("initial-test", "extractive"): _extractive(20, 960),
    ("mutations-test", "extractive"): _extractive(60, 2640),
}
"""By group and system. The full builds equalled the incremental ones."""


def scaled(value: int, dossiers: int) -> int | None:
    """Return a counter of the reference for another number of mutated dossiers; null where it does not divide."""
    whole, rest = divmod(value * dossiers, DOSSIERS)
    return None if rest else whole


def figures() -> Figures:
    """Return the figures that no group has."""
    return Figures(TOOLCHAIN, DOSSIERS, GENERATIONS, PAIRS, PAIRS, COUNTERS, SECONDS)
