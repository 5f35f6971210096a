"""Many labels as few values: consecutive ones that differ in their heads alone share their ends. Pure.

A build of 100,000 targets of dossiers of one shape lists each dossier once and the shape once.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import msgspec


class LabelRun(msgspec.Struct, frozen=True, array_like=True):
    """The labels `head + end`, for each head all ends, in order."""

    ends: tuple[str, ...]
    heads: tuple[str, ...]


def pack_labels(labels: Iterable[str]) -> tuple[LabelRun, ...]:
    """Return runs that `unpack_labels` turns into the same labels in the same order, whatever they are."""
    cut = ((label[: (place := label.rfind("/") + 1)], label[place:]) for label in labels)
    groups = [(head, tuple(end for _, end in parts)) for head, parts in groupby(cut, lambda pair: pair[0])]
    return tuple(
        LabelRun(ends, tuple(head for head, _ in same)) for ends, same in groupby(groups, lambda group: group[1])
    )


def unpack_labels(runs: Iterable[LabelRun]) -> tuple[str, ...]:
    """Return the labels of runs."""
    return tuple(head + end for run in runs for head in run.heads for end in run.ends)


def count_labels(runs: Iterable[LabelRun]) -> int:
    """Return how many labels runs hold."""
    return sum(len(run.heads) * len(run.ends) for run in runs)
