"""Own how a document of the second corpus comes about: its facts, its kind, and what stands between its values.

Pure and reproducible: every choice comes from `gsum.corpus.writing.Draw`. Knows no file and no label.
"""

from typing import Final

from gsum.corpus.second import settings
from gsum.corpus.second.draft import CORPUS, Bank, Calendar, Draft
from gsum.corpus.second.kinds import KINDS, Kind, Mix
from gsum.corpus.second.lines import EMPTY, Block, Document, Fact, Line
from gsum.corpus.settings import FIELDS
from gsum.corpus.writing import VERSIONS, Draw

SHARES: Final = ((4,), (4,), (2, 2), (2, 2), (3, 1), (1, 3), (2, 1, 1), (1, 2, 1), (1, 1, 2))
"""How many of the four facts each product of a document has."""


def write_documents(number: str) -> tuple[Document, ...]:
    """Write the documents of a dossier; phrases are dealt in the order of its slots."""
    bank = Bank(number)
    kinds = bank.deck("kinds", KINDS)
    values = Values(bank)
    return tuple(_document(number, slot, bank, values, kinds.take()) for slot in range(settings.DOCUMENTS))


class Values:
    """The values of one dossier, dealt so that no document meets one twice."""

    def __init__(self, bank: Bank) -> None:
        self._decks = {
            "status": bank.deck("statuses", settings.STATUSES),
            "site": bank.deck("sites", settings.SITES),
        }

    def take(self, field: str, calendar: Calendar, draw: Draw, taken: set[str]) -> tuple[str, str]:
        """Deal a current and an old value that are not among those taken, and take them."""
        most, measure = draw.pick((60, 400, 400, 3000)), draw.pick(settings.MEASURES)
        pair: list[str] = []
        while len(pair) < 2:
            if field == "delivery":
                value = calendar.ahead()
            elif field == "quantity":
                value = f"{most // 4 + draw.below(most):,} {measure}"
            else:
                value = self._decks[field].take()
            if value not in taken:
                taken.add(value)
                pair.append(value)
        return pair[0], pair[1]


def _document(number: str, slot: int, bank: Bank, values: Values, kind: Kind) -> Document:
    draw = Draw(CORPUS, number, f"{slot:02d}")
    setting = settings.SETTINGS[int(number) - settings.FIRST_NUMBER]
    calendar = Calendar(draw, setting.year)
    facts = _facts(slot, bank, values, calendar, draw)
    voided = draw.shuffled(range(len(facts)))
    denials = 2 if draw.chance(0.25) else 1
    earlier = sorted(voided[denials : denials + 1 + draw.below(2)])
    a, b, c, by = draw.shuffled(bank.cast)[:4]
    slots = {"office": setting.office, "partner": setting.partner, "today": calendar.today}
    slots |= {"a": a.polite, "b": b.polite, "c": c.polite, "by": by.signed, "ref": f"{100 + draw.below(900)}-{slot}"}
    said = dict(zip(earlier, calendar.ago(20, 55, len(earlier)), strict=True))
    draft = Draft(bank, draw, calendar, facts, slots, tuple(voided[:denials]), said)
    return Document(f"{slot:02d}", calendar.today, facts, tuple(_compose(kind, draft)))


def _facts(slot: int, bank: Bank, values: Values, calendar: Calendar, draw: Draw) -> tuple[Fact, ...]:
    """Draw four facts; a document that will be edited has a delivery date among them."""
    shares = draw.pick(SHARES)
    fields: list[tuple[str, str]] = []
    for share in shares:
        product = bank.products.take()
        fields += [(product, field) for field in draw.shuffled(FIELDS)[:share]]
    edited = slot in settings.EDITED_SLOTS
    if edited and all(field != "delivery" for _, field in fields):
        fields[0] = (fields[0][0], "delivery")
    taken: set[str] = set()
    facts: list[Fact] = []
    for product, field in fields:
        value, old = values.take(field, calendar, draw, taken)
        facts.append(Fact(product, field, dict.fromkeys(VERSIONS if edited else VERSIONS[:1], value), old))
    if edited:
        moved = next(i for i, fact in enumerate(facts) if fact.field == "delivery")
        facts[moved] = _postponed(facts[moved], calendar.ahead())
    return tuple(facts)


def _postponed(fact: Fact, value: str) -> Fact:
    """Give a fact another value in version 2."""
    values = dict(fact.values)
    values[VERSIONS[1]] = value
    return Fact(fact.product, fact.field, values, fact.old)


def _compose(kind: Kind, draft: Draft) -> list[Line]:
    """Put head, body and foot together, with the other lines among or after the blocks of the body."""
    draw = draft.draw
    body = draw.pick(kind.layouts)(draft)
    more = draw.shuffled(_others(kind, draft))
    opener: list[Block] = [(Line(draft.words(draw.pick(kind.openers))),)]
    if kind.mix is Mix.AFTER:
        blocks = [*body, (EMPTY, *(line for block in more for line in block))]
    elif kind.mix is Mix.BEFORE_LAST:
        blocks = [*_among(body[:-1], more, draw), body[-1]]
    else:
        blocks = _among(body, more, draw)
    if kind.mix is Mix.NUMBERED:
        blocks = [(Line(f"{n}. {head.text}", head.old), *rest) for n, (head, *rest) in enumerate(blocks, start=1)]
    lines = [Line(draft.words(text)) for text in draw.pick(kind.heads)]
    lines.append(EMPTY)
    for block in [*opener, *blocks]:
        apart = len(block) > 1 and kind.mix is not Mix.NUMBERED
        lines += [EMPTY, *block, EMPTY] if apart else block
    return _squeezed([*lines, EMPTY, Line(draft.words(draw.pick(kind.feet)))])


def _others(kind: Kind, draft: Draft) -> list[Block]:
    """Write what stands around the values: old ones, some said again, an archived order, the talk of the house."""
    draw = draft.draw
    lines = [draft.denied(fact) for fact in draft.negated]
    if not kind.dates_itself:
        lines += [draft.then(fact, draft.bank.earlier) for fact in draft.earlier]
    again = draw.shuffled(range(len(draft.facts)))[: draw.below(3)]
    lines += [draft.now(fact, draft.bank.sentences) for fact in again]
    lines.append(draft.hostile())
    lines += [draft.talk() for _ in range(1 + draw.below(3))]
    return [(line,) for line in lines]


def _among(body: list[Block], more: list[Block], draw: Draw) -> list[Block]:
    """Put other blocks at drawn places, keeping the body's own order."""
    blocks = list(body)
    for block in more:
        blocks.insert(draw.below(len(blocks) + 1), block)
    return blocks


def _squeezed(lines: list[Line]) -> list[Line]:
    """Leave one empty line where several follow each other."""
    return [line for i, line in enumerate(lines) if line is not EMPTY or (i > 0 and lines[i - 1] is not EMPTY)]
