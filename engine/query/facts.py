"""What queries ask of a store and of documents, as a protocol, and what they may name of a document. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

_INTERVAL = re.compile(r"(?P<label>.*)\[(?P<start>[0-9]{0,12}):(?P<end>[0-9]{0,12})\]", re.DOTALL)

Cell = str | int | float | None


class Passage(msgspec.Struct, frozen=True):
    """A part of a document: characters [start, end), to its end where that is null."""

    label: str
    start: int = 0
    end: int | None = None

    def overlaps(self, start: int, end: int) -> bool:
        """Whether an interval has a character in common with the passage."""
        return start < end and self.start < end and (self.end is None or start < self.end)


class Table(msgspec.Struct, frozen=True):
    """What a function gives that answers with rows instead of nodes."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Facts(Protocol):
    """What a store holds for the keys of this moment, for one principal; labels are of actions unless said."""

    def states(self, labels: Collection[str]) -> Mapping[str, str]:
        """Return the state of each target, by name as in `gsum.engine.states.State`."""

    def citing(self, passage: Passage, labels: Collection[str]) -> Collection[str]:
        """Return those of `labels` of whose current claims one cites the passage."""

    def uncited(self, passage: Passage, labels: Sequence[str]) -> Table:
        """Return the lines of a document in the passage that no current claim of `labels` cites."""

    def generations(self, labels: Sequence[str]) -> Table:
        """Return what the model's outputs behind the current results are."""

    def cost(self, labels: Sequence[str]) -> Table:
        """Return what building the targets would take."""


def parse_passage(text: str) -> Passage:
    """Return a label with the interval that may follow it: `//s:d/D[10:20]`, `//s:d/D[10:]`, `//s:d/D`."""
    match = _INTERVAL.fullmatch(text)
    if match is None:
        return Passage(text)
    return Passage(match["label"], int(match["start"] or 0), int(match["end"]) if match["end"] else None)
