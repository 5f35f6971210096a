"""The record of an audit: counts of one summary, or of many added up, and ratios of counts. Pure, and knows no gold.

Ratios are taken of sums, never averaged, and are null where there is nothing to divide.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Decimal

import msgspec

AUDIT_SCHEMA = 1
_PLACES = Decimal("0.0001")


class Counts(msgspec.Struct, frozen=True):
    """What an audit counts. Reference validity and support are two measures: the one says nothing of the other.

    `supported` is null where the schema declares no fact pattern, by which alone support is defined.
    """

    claims: int = 0
    references: int = 0
    """Citations in all claims."""
    valid_references: int = 0
    reference_valid: int = 0
    """Claims all of whose references are valid."""
    supported: int | None = 0
    """Claims that are reference-valid and cite a line that states exactly them."""
    predicted: int = 0
    """Distinct claims."""
    correct: int = 0
    """Distinct claims that stand in the gold of the eligible sources, whatever they cite."""
    expected: int = 0
    """Distinct facts in the gold of the eligible sources; INVALID summaries have them too."""

    @property
    def unsupported(self) -> int | None:
        """Claims − supported."""
        return None if self.supported is None else self.claims - self.supported

    @property
    def duplicates(self) -> int:
        """Claims − distinct claims."""
        return self.claims - self.predicted


class Ratios(msgspec.Struct, frozen=True):
    """Ratios as decimal strings of four places, or null."""

    precision: str | None
    """Correct / predicted."""
    recall: str | None
    """Correct / expected."""
    support: str | None
    """Supported / claims."""
    reference_validity: str | None
    """Reference-valid / claims."""


class Audit(msgspec.Struct, frozen=True):
    """The audit of one summary. `gold` names the dossier's split; `summary` is the status of what was audited."""

    dossier: str
    split: str
    summary: str
    counts: Counts
    unsupported: int | None
    duplicates: int
    ratios: Ratios
    schema: int = AUDIT_SCHEMA


class Total(msgspec.Struct, frozen=True):
    """The audits of a group, added up: counts first, ratios of the sums after. `statuses` counts summaries."""

    summaries: int
    statuses: dict[str, int]
    counts: Counts
    unsupported: int | None
    duplicates: int
    ratios: Ratios


def ratios(counts: Counts) -> Ratios:
    """Return precision = correct / predicted, recall = correct / expected, support and reference validity per claim."""
    return Ratios(
        precision=ratio(counts.correct, counts.predicted),
        recall=ratio(counts.correct, counts.expected),
        support=None if counts.supported is None else ratio(counts.supported, counts.claims),
        reference_validity=ratio(counts.reference_valid, counts.claims),
    )


def ratio(part: int, whole: int) -> str | None:
    """Return part / whole, rounded half to even to four places; null where `whole` is 0."""
    if whole == 0:
        return None
    return str((Decimal(part) / Decimal(whole)).quantize(_PLACES, ROUND_HALF_EVEN))


def total(audits: Iterable[Audit]) -> Total:
    """Add up the counts of audits and take the ratios of the sums; support is null if it is so in any of them."""
    taken = list(audits)
    statuses: dict[str, int] = {}
    for audit in taken:
        statuses[audit.summary] = statuses.get(audit.summary, 0) + 1
    counts = added(audit.counts for audit in taken)
    ordered = dict(sorted(statuses.items()))
    return Total(len(taken), ordered, counts, counts.unsupported, counts.duplicates, ratios(counts))


def added(all_counts: Iterable[Counts]) -> Counts:
    """Return the sums of counts, name by name."""
    sums: dict[str, int] = dict.fromkeys(Counts.__struct_fields__, 0)
    undefined = False
    for counts in all_counts:
        undefined = undefined or counts.supported is None
        for name in sums:
            sums[name] += getattr(counts, name) or 0
    supported = None if undefined else sums.pop("supported")
    sums.pop("supported", None)
    return Counts(**sums, supported=supported)
