"""Own the layouts in which values stand in sentences: letters, lists, threads, minutes, diaries, questions. Pure."""

from gsum.corpus.second.draft import Draft
from gsum.corpus.second.lines import EMPTY, Block, Line


def letter(draft: Draft) -> list[Block]:
    """Write each product as one paragraph with other talk in it, as sentences line by line, or under a lead."""
    paragraphs: list[Block] = []
    for product in draft.products:
        facts, manner = draft.of(product), draft.draw.below(3)
        if manner == 0:
            more = [draft.now(i, draft.bank.continued).text for i in facts[1:]]
            first = draft.now(facts[0], draft.bank.sentences).text
            paragraphs.append((Line(" ".join((first, *more, draft.talk().text, draft.talk().text))),))
        elif manner == 1:
            paragraphs += [(draft.now(i, draft.bank.sentences),) for i in facts]
        else:
            lead = Line(f"You ask about {product}, and here is the answer.")
            paragraphs.append((lead, *(draft.now(i, draft.bank.continued) for i in facts)))
    return paragraphs


def bullets(draft: Draft) -> list[Block]:
    """Write a list, an item for each fact or one for each product."""
    mark = draft.draw.pick(("- ", "* ", "o "))
    lead = Line(draft.words(draft.draw.pick(("For the list:", "{a} dictated:", "To be copied by {b}:", "In hand:"))))
    if draft.draw.chance(0.5):
        order = draft.draw.shuffled(range(len(draft.facts)))
        return [(lead, *(draft.now(i, draft.bank.short, f"{mark}{draft.facts[i].product}: ") for i in order))]
    parts = {p: [draft.now(i, draft.bank.short).text for i in draft.of(p)] for p in draft.products}
    return [(lead, *(Line(f"{mark}{product}: {', '.join(parts[product])}") for product in draft.products))]


def thread(draft: Draft) -> list[Block]:
    """Write an answer above the message that it answers; the older one speaks in the present tense of its day."""
    answer: list[Block] = [(draft.now(i, draft.bank.sentences),) for i in draft.draw.shuffled(range(len(draft.facts)))]
    quoted: list[Line] = []
    for fact, said in draft.earlier.items():
        quoted += [Line(draft.words("> {c} wrote on {d}:", d=said)), draft.then(fact, draft.bank.sentences, "> ")]
    return [*answer, (EMPTY, *quoted)]


def minutes(draft: Draft) -> list[Block]:
    """Write an item for each product, the later sentences belonging to its number."""
    items: list[Block] = []
    for product in draft.products:
        first, *rest = [draft.now(i, draft.bank.sentences) for i in draft.of(product)]
        who = draft.words(draft.draw.pick(("{a} spoke. ", "{b} reported. ", "From the chair. ", "{c}, when asked. ")))
        items.append((Line(who + first.text), *rest))
    return items


def diary(draft: Draft) -> list[Block]:
    """Write dated entries in the order of their days; a later entry on the same matter replaces the earlier."""
    entries = [
        draft.then(i, draft.bank.short, f"{said}: {draft.facts[i].product} ") for i, said in draft.earlier.items()
    ]
    order = draft.draw.shuffled(range(len(draft.facts)))
    for fact, day in zip(order, draft.calendar.ago(1, 14, len(order)), strict=True):
        entries.append(draft.now(fact, draft.bank.short, f"{day}: {draft.facts[fact].product} "))
    return [
        tuple(
            Line(entry.text + draft.words(draft.draw.pick((" ({a})", ", {b}", "", ""))), entry.old) for entry in entries
        )
    ]


def questions(draft: Draft) -> list[Block]:
    """Write questions and answers, in one line or in two; in two only the question names the product."""
    pairs: list[Block] = []
    for fact in draft.draw.shuffled(range(len(draft.facts))):
        asked = Line(draft.question(fact))
        answer = draft.now(fact, draft.bank.answers)
        pairs.append((Line(f"Q. {asked.text} A. {answer.text}"),) if draft.draw.chance(0.6) else (asked, answer))
    return pairs
