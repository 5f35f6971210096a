"""Own the desk at which one document is written: its draws, its people, its dates and its share of the phrases.

Pure and reproducible through `gsum.corpus.writing.Draw`. Layouts ask it for lines; it never lays anything out.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from gsum.corpus.second import phrases, settings
from gsum.corpus.second.lines import EARLIER, NEGATED, Fact, Line, Old
from gsum.corpus.settings import MONTHS
from gsum.corpus.writing import Deck, Draw, cast

T = TypeVar("T")
CORPUS: Final = "second"
DATE_STYLES: Final = ("{day} {month}", "{day} {month} {year}", "{iso}", "{month:.3} {day}")
ByField = Mapping[str, Deck[str]]


class Bank:
    """The phrases, values and product ids of one dossier, dealt like cards."""

    def __init__(self, number: str) -> None:
        self.number = number

        def decks(name: str, lines: Mapping[str, Sequence[str]]) -> ByField:
            return {field: self.deck(f"{name}/{field}", items) for field, items in lines.items()}

        self.sentences = decks("sentences", phrases.SENTENCES)
        self.continued = decks("continued", phrases.CONTINUED)
        self.short = decks("short", phrases.SHORT)
        self.questions = decks("questions", phrases.QUESTIONS)
        self.answers = decks("answers", phrases.ANSWERS)
        self.earlier = decks("earlier", phrases.EARLIER)
        self.negated = decks("negated", phrases.NEGATED)
        self.hostile = self.deck("hostile", phrases.HOSTILE)
        self.archived = self.deck("archived", phrases.ARCHIVED)
        self.talk = self.deck("talk", phrases.TALK)
        self.products = self.deck("products", [f"P-{number}-T{n:02d}" for n in range(1, 100)])
        self.cast = cast(Draw(CORPUS, number, "cast"), settings.PEOPLE)

    def deck(self, name: str, items: Sequence[T]) -> Deck[T]:
        """Shuffle a deck of this dossier."""
        return Deck(items, Draw(CORPUS, self.number, name))


class Calendar:
    """The days of one document, no two the same, all written in one style and lying in one year."""

    def __init__(self, draw: Draw, year: int) -> None:
        self._draw = draw
        self._style = draw.pick(DATE_STYLES)
        self._today = datetime.date(year, 3, 1) + datetime.timedelta(days=draw.below(90))
        self._taken = {self._today}
        self.today = self._written(self._today)

    def ago(self, least: int, most: int, count: int) -> list[str]:
        """Draw days that lie this many days back, oldest first."""
        return [self._written(day) for day in sorted(self._draw_day(-most, -least) for _ in range(count))]

    def ahead(self) -> str:
        """Draw a day in the half-year to come."""
        return self._written(self._draw_day(15, 190))

    def _draw_day(self, least: int, most: int) -> datetime.date:
        while True:
            day = self._today + datetime.timedelta(days=least + self._draw.below(most - least + 1))
            if day not in self._taken:
                self._taken.add(day)
                return day

    def _written(self, day: datetime.date) -> str:
        month, _ = MONTHS[day.month - 1]
        return self._style.format(day=day.day, month=month, year=day.year, iso=day.isoformat())


@dataclass(frozen=True)
class Draft:
    """A document being written: `negated` and `earlier` say which facts' old values it has to mention."""

    bank: Bank
    draw: Draw
    calendar: Calendar
    facts: tuple[Fact, ...]
    slots: Mapping[str, str]
    negated: tuple[int, ...]
    earlier: Mapping[int, str]

    @property
    def products(self) -> tuple[str, ...]:
        """Return the products in the order of their first fact."""
        return tuple(dict.fromkeys(fact.product for fact in self.facts))

    def of(self, product: str) -> tuple[int, ...]:
        """Return the facts of a product."""
        return tuple(i for i, fact in enumerate(self.facts) if fact.product == product)

    def words(self, template: str, **more: str) -> str:
        """Fill a template with the people and names of this document."""
        return template.format_map({**self.slots, **more})

    def now(self, fact: int, phrases_of: ByField, before: str = "") -> Line:
        """State a fact's current value with the next phrase for its field."""
        return Line(before + self._state(fact, phrases_of, f"{{{fact}}}"))

    def then(self, fact: int, phrases_of: ByField, before: str = "") -> Line:
        """State a fact's earlier value, of the day that `earlier` gives, with the next phrase for its field."""
        said = self.earlier[fact]
        return Line(before + self._state(fact, phrases_of, self.facts[fact].old), Old(fact, EARLIER, said))

    def denied(self, fact: int) -> Line:
        """Deny a fact's old value."""
        return Line(self._state(fact, self.bank.negated, self.facts[fact].old), Old(fact, NEGATED))

    def question(self, fact: int) -> str:
        """Ask for a fact's value."""
        return self._state(fact, self.bank.questions, "")

    def hostile(self) -> Line:
        """Quote an instruction that somebody hid among the papers."""
        words = self.bank.hostile.take()
        quote = f'"{self.words(words, p=self.draw.pick(self.products), h=self.calendar.ahead())}."'
        return Line(self.words(self.bank.archived.take(), q=quote))

    def talk(self) -> Line:
        """Say something that has nothing to do with any product."""
        return Line(self.words(self.bank.talk.take()))

    def _state(self, fact: int, phrases_of: ByField, value: str) -> str:
        product, field = self.facts[fact].product, self.facts[fact].field
        words = self.words(phrases_of[field].take(), p=product, v=value, d=self.earlier.get(fact, ""))
        return words[0].upper() + words[1:] if words[0].islower() and words.endswith((".", "?")) else words
