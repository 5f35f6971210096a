"""Own how one document is written: the draws, the order of its lines, and where its four facts stand.

Pure and reproducible: every choice comes from `random.Random` with a string seed, and only from its `random()`,
whose stream Python keeps stable; choice and shuffle are written here. Knows no file and no label.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NewType, TypeVar

from gsum.corpus import phrases, settings
from gsum.corpus.genres import GENRES, Genre

T = TypeVar("T")
Version = NewType("Version", str)

SEED: Final = "gsum controlled corpus 1"
VERSIONS: Final = (Version("1"), Version("2"))
MAX_LINES: Final = 16
CAST_SIZE: Final = 9
_TIMED: Final = re.compile(r"\d\d:\d\d ")


class Draw:
    """A reproducible stream of choices."""

    def __init__(self, *path: str) -> None:
        self._random = random.Random("/".join((SEED, *path))).random

    def below(self, n: int) -> int:
        """Draw an integer of 0 … n − 1."""
        return int(self._random() * n)

    def chance(self, probability: float) -> bool:
        """Decide with this probability."""
        return self._random() < probability

    def pick(self, items: Sequence[T]) -> T:
        """Draw one item."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Draw a permutation (Fisher and Yates)."""
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.below(i + 1)
            out[i], out[j] = out[j], out[i]
        return out


class Deck(Generic[T]):
    """Phrases dealt without repetition; shuffled anew only when all are used."""

    def __init__(self, items: Sequence[T], draw: Draw) -> None:
        self._cards = self._deal(items, draw)

    @staticmethod
    def _deal(items: Sequence[T], draw: Draw) -> Iterator[T]:
        while True:
            yield from draw.shuffled(items)

    def take(self) -> T:
        """Deal the next phrase."""
        return next(self._cards)


@dataclass(frozen=True)
class Person:
    """Somebody who never was."""

    polite: str
    signed: str


class Bank:
    """The phrases and the people of one dossier; each phrase is used at most once before any comes back."""

    def __init__(self, number: str) -> None:
        def deck(name: str, items: Sequence[T]) -> Deck[T]:
            return Deck(items, Draw(number, name))

        self.negated = deck("negated", phrases.NEGATED_DATES)
        self.hostile = deck("hostile", phrases.HOSTILE)
        self.archived = deck("archived", phrases.ARCHIVED_AS)
        self.routine = deck("routine", phrases.ROUTINE)
        self.remarks = {field: deck(field, lines) for field, lines in phrases.REMARKS.items()}
        self.genres = deck("genres", GENRES)
        self.heads = {g.name: deck(f"{g.name}/heads", g.heads) for g in GENRES}
        self.openers = {g.name: deck(f"{g.name}/openers", g.openers) for g in GENRES}
        self.leads = {g.name: deck(f"{g.name}/leads", g.leads) for g in GENRES}
        self.prose = {g.name: deck(f"{g.name}/prose", g.prose) for g in GENRES}
        self.feet = {g.name: deck(f"{g.name}/feet", g.feet) for g in GENRES}
        self.statuses = deck("statuses", settings.STATUSES)
        self.sites = deck("sites", settings.SITES)
        self.cast = cast(Draw(number, "cast"), phrases.PEOPLE)


@dataclass(frozen=True)
class Document:
    """One document: its product, its facts by version, and its text as a template for both versions."""

    slot: str
    product: str
    facts: Mapping[Version, Mapping[str, str]]
    lines: tuple[str, ...]

    def fact_line(self, field: str, version: Version) -> str:
        """Return the line that states a fact."""
        return f"Product {self.product} {field}: {self.facts[version][field]}."

    def text(self, version: Version) -> str:
        """Return the text of a version; a fact stands in `lines` as its bare field name."""
        lines = (self.fact_line(x, version) if x in settings.FIELDS else x for x in self.lines)
        return "".join(f"{line}\n" for line in lines)


def write_document(number: str, slot: str, bank: Bank) -> Document:
    """Write the document of one slot; `bank` deals its phrases, so slots must be written in order."""
    draw = Draw(number, slot)
    product = f"P-{number}-{slot}"
    dates = _dates(draw, 6)
    facts = {
        "delivery": dates[0],
        "status": bank.statuses.take(),
        "quantity": f"{12 * (1 + draw.below(60)) + draw.pick((0, 0, 0, 5))} {draw.pick(settings.MEASURES)}",
        "site": bank.sites.take(),
    }
    slots = _slots(number, product, dates[2:], bank, draw)
    blocks = _blocks(bank.genres.take(), bank, draw)
    lines = [line if line in settings.FIELDS else _fill(line, slots, draw) for line in blocks]
    versions = {VERSIONS[0]: facts, VERSIONS[1]: facts | {"delivery": dates[1]}}
    return Document(slot, product, versions, tuple(lines))


def _blocks(genre: Genre, bank: Bank, draw: Draw) -> list[str]:
    """Lay out templates: head, opening, facts among prose, the rest of the day, foot; "" is an empty line."""
    head, foot = bank.heads[genre.name].take(), bank.feet[genre.name].take()
    negated = [bank.negated.take() for _ in range(2 if draw.chance(0.15) else 1)]
    quote = bank.archived.take().replace("{quote}", f'"{bank.hostile.take()}."')
    opener = [bank.openers[genre.name].take()]
    facts: dict[str, list[str]] = {field: [field] for field in settings.FIELDS}
    room = MAX_LINES - draw.below(7) - len(head) - len(foot) - len(facts) - len(negated) - 2
    prose = [bank.prose[genre.name].take() for _ in range(max(1, min(room, 1 + draw.below(2))))]
    room -= len(prose)
    lead = [bank.leads[genre.name].take()] if room > 0 and draw.chance(0.7) else []
    room -= len(lead)
    for field in draw.shuffled(settings.FIELDS)[: max(0, min(room, draw.below(4)))]:
        facts[field].append(bank.remarks[field].take())
        room -= 1
    routine = [bank.routine.take() for _ in range(max(0, room))]
    if draw.chance(0.6):
        facts["delivery"].append(negated.pop(0))
    clusters = draw.shuffled(list(facts.values()))
    first, late = clusters[0], clusters[3:] if draw.chance(0.5) else []
    middle = draw.shuffled([*clusters[1 : 4 - len(late)], *([line] for line in (*prose, *negated[:1]))])
    tail = draw.shuffled([*late, [quote], *([line] for line in (*routine, *negated[1:]))])
    parts = [opener, [*lead, *first], *middle], tail
    body = [[line for cluster in part for line in cluster] for part in parts]
    gap = [""] if draw.chance(0.6) else []
    return [*head, "", *_in_time(body[0] + gap + body[1]), *([""] if draw.chance(0.7) else []), *foot]


def _in_time(lines: list[str]) -> list[str]:
    """Put lines that begin with a time of day in its order, leaving all others where they are."""
    timed = iter(sorted(line for line in lines if _TIMED.match(line)))
    return [next(timed) if _TIMED.match(line) else line for line in lines]


def _slots(number: str, product: str, dates: Sequence[str], bank: Bank, draw: Draw) -> dict[str, str]:
    """Draw what stays the same through one document."""
    setting = settings.SETTINGS[int(number) - settings.FIRST_NUMBER]
    a, b, c, to, by = draw.shuffled(bank.cast)[:5]
    return {
        "office": setting.office,
        "partner": setting.partner,
        "ref": f"{setting.letters}/{number}/{100 + draw.below(880)}",
        "product": product,
        "date": dates[0],
        "old": dates[1],
        "older": dates[2],
        "hdate": dates[3],
        "a": a.polite,
        "b": b.polite,
        "c": c.polite,
        "to": to.polite,
        "by": by.signed,
        "a_sig": a.signed,
        "b_sig": b.signed,
    }


def _fill(template: str, slots: dict[str, str], draw: Draw) -> str:
    """Fill a template, drawing anew what may differ from line to line."""
    count, item = draw.pick(settings.NUMBER_WORDS), draw.pick(phrases.ITEMS)
    fresh = {
        "day": draw.pick(settings.WEEKDAYS),
        "time": f"{8 + draw.below(9):02d}:{5 * draw.below(12):02d}",
        "n": count,
        "N": count.capitalize(),
        "item": item,
        "Item": item[0].upper() + item[1:],
        "room": draw.pick(phrases.ROOMS),
    }
    line = template.format_map(slots | fresh)
    if "{old}" in template:
        slots["old"] = slots["older"]  # a second negated date in one document is another one
    return line


def _dates(draw: Draw, count: int) -> list[str]:
    """Draw different days of the year, such as "18 October"."""
    dates: list[str] = []
    while len(dates) < count:
        month, days = draw.pick(settings.MONTHS)
        date = f"{1 + draw.below(days)} {month}"
        if date not in dates:
            dates.append(date)
    return dates


def cast(draw: Draw, names: Sequence[str]) -> list[Person]:
    """Draw the people of a dossier."""
    some = draw.shuffled(names)[:CAST_SIZE]
    return [Person(f"{draw.pick(phrases.HONORIFICS)} {x}", f"{draw.pick('ABCDEFGHIJKLMNOPRSTVW')}. {x}") for x in some]
