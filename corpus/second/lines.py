"""Own the words for what stands in a document: facts, superseded values, lines that state them, and places.

Pure. A line's text is a format string in which `{0}` … `{3}` stand for the current values of the document's facts, so
what a line states is read off the line itself and holds for every version. Knows no phrase and no layout.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Final

from gsum.corpus.writing import Version

NEGATED: Final = "negated"
EARLIER: Final = "earlier"


@dataclass(frozen=True)
class Fact:
    """One fact: its current value by version, and one value that it does not have any more."""

    product: str
    field: str
    values: Mapping[Version, str]
    old: str


@dataclass(frozen=True)
class Old:
    """A statement of a fact's old value: why it is void, and for an earlier one the date it was made."""

    fact: int
    why: str
    said: str = ""


@dataclass(frozen=True)
class Line:
    """One line: a format string over the current values, and the old value it states if any."""

    text: str
    old: Old | None = None

    @property
    def states(self) -> frozenset[int]:
        """Return which facts this line states with their current values."""
        return frozenset(int(name) for _, name, _, _ in Formatter().parse(self.text) if name is not None)


Block = tuple[Line, ...]
"""Lines that stay together."""
EMPTY: Final = Line("")


@dataclass(frozen=True)
class Place:
    """A line of a text: its number from 1, and the interval of its characters."""

    line: int
    start: int
    end: int
    quote: str


@dataclass(frozen=True)
class Document:
    """One document: its date, its facts and its lines; a text for every version that its facts have."""

    slot: str
    date: str
    facts: tuple[Fact, ...]
    lines: tuple[Line, ...]

    @property
    def versions(self) -> tuple[Version, ...]:
        """Return the versions in which this document exists."""
        return tuple(self.facts[0].values)

    def places(self, version: Version) -> tuple[Place, ...]:
        """Return every line of a version's text with its place."""
        values = [fact.values[version] for fact in self.facts]
        places: list[Place] = []
        start = 0
        for number, line in enumerate(self.lines, start=1):
            quote = line.text.format(*values).rstrip()
            places.append(Place(number, start, start + len(quote), quote))
            start += len(quote) + 1
        return tuple(places)

    def text(self, version: Version) -> str:
        """Return the text of a version."""
        return "".join(f"{place.quote}\n" for place in self.places(version))


def naming(places: Sequence[Place], line: int, product: str) -> Place:
    """Return where a reader of a line learns the product: the line itself, or the nearest above that names it."""
    return next(place for place in reversed(places[:line]) if product in place.quote)
