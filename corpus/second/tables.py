"""Own the layouts in which values stand in rows, columns and blocks. Pure: draft in, blocks of lines out."""

from collections.abc import Mapping, Sequence

from gsum.corpus.second import settings
from gsum.corpus.second.draft import Draft
from gsum.corpus.second.lines import EARLIER, Block, Line, Old

NOTHING = "-"


def wide(draft: Draft) -> list[Block]:
    """Lay out aligned columns, one row a product; what is not known of a product is a dash."""
    rows = _grid(draft)
    widths = _widths(draft, rows)
    lines = [Line("  ".join(_pad(cell, width) for cell, width in zip(row, widths, strict=True))) for row in rows]
    rule = [Line("  ".join("-" * width for width in widths))] if draft.draw.chance(0.5) else []
    return [(lines[0], *rule, *lines[1:])]


def pipes(draft: Draft) -> list[Block]:
    """Lay out rows between upright strokes."""
    rows = _grid(draft)
    lines = [Line(f"| {' | '.join(row)} |") for row in rows]
    rule = [Line("|" + "---|" * len(rows[0]))] if draft.draw.chance(0.5) else []
    return [(lines[0], *rule, *lines[1:])]


def transposed(draft: Draft) -> list[Block]:
    """Lay out aligned columns, one column a product, so that only the heading names it."""
    rows = [list(row) for row in zip(*_grid(draft), strict=True)]
    widths = _widths(draft, rows)
    return [tuple(Line("  ".join(_pad(cell, w) for cell, w in zip(row, widths, strict=True))) for row in rows)]


def long(draft: Draft) -> list[Block]:
    """Lay out one row a fact; the product is repeated in every row, or named only where it changes."""
    labels, ditto = labels_of(draft), draft.draw.chance(0.3)
    rows = [[draft.draw.pick(settings.ARTICLES), "Particular", "Entry"]]
    for product in draft.products:
        for nth, fact in enumerate(draft.of(product)):
            rows.append(["" if ditto and nth else product, labels[draft.facts[fact].field].lower(), f"{{{fact}}}"])
    widths = _widths(draft, rows)
    return [tuple(Line("  ".join(_pad(cell, w) for cell, w in zip(row, widths, strict=True))) for row in rows)]


def blocks(draft: Draft) -> list[Block]:
    """Lay out a block of keys and values for each product, or one dotted line for each fact."""
    labels = labels_of(draft)
    if draft.draw.chance(0.5):
        rows = [(f"{fact.product}, {labels[fact.field].lower()} ", i) for i, fact in enumerate(draft.facts)]
        return [tuple(Line(f"{text:.<34} {{{i}}}") for text, i in rows)]
    article = draft.draw.pick(settings.ARTICLES)
    return [
        (
            Line(f"{article}: {product}"),
            *(Line(f"  {labels[draft.facts[i].field]}: {{{i}}}") for i in draft.of(product)),
        )
        for product in draft.products
    ]


def records(draft: Draft) -> list[Block]:
    """Lay out one line a product, its parts divided by semicolons or strokes."""
    labels, mark = labels_of(draft), draft.draw.pick(("; ", " / ", ", "))
    parts = {p: [f"{labels[draft.facts[i].field].lower()} {{{i}}}" for i in draft.of(p)] for p in draft.products}
    return [tuple(Line(mark.join((product, *parts[product]))) for product in draft.products)]


def revision(draft: Draft) -> list[Block]:
    """Lay out an earlier state and the present one, each under its date; the earlier has only what changed."""
    labels = labels_of(draft)
    width = max(len(label) for label in labels.values())

    def row(fact: int, value: str, old: Old | None = None) -> Line:
        return Line(f"{draft.facts[fact].product}  {labels[draft.facts[fact].field]:<{width}}  {value}", old)

    said = next(iter(draft.earlier.values()))  # one table, one date
    before = [row(i, draft.facts[i].old, Old(i, EARLIER, said)) for i in sorted(draft.earlier)]
    present = tuple(row(i, f"{{{i}}}") for i in range(len(draft.facts)))
    old_head, new_head = Line(f"As of {said} (replaced)"), Line(f"As of {draft.calendar.today}")
    tables: list[Block] = [(old_head, *before), (new_head, *present)]
    return tables if draft.draw.chance(0.5) else tables[::-1]


def labels_of(draft: Draft) -> dict[str, str]:
    """Draw the word that this paper has for each field."""
    return {field: draft.draw.pick(words) for field, words in settings.LABELS.items()}


def _grid(draft: Draft) -> list[list[str]]:
    labels = labels_of(draft)
    fields = draft.draw.shuffled([field for field in labels if any(fact.field == field for fact in draft.facts)])
    cells = {(fact.product, fact.field): f"{{{i}}}" for i, fact in enumerate(draft.facts)}
    head = [draft.draw.pick(settings.ARTICLES), *(labels[field] for field in fields)]
    return [head, *([p, *(cells.get((p, field), NOTHING) for field in fields)] for p in draft.products)]


def _widths(draft: Draft, rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column, the same in every version."""
    longest: Mapping[str, int] = {
        f"{{{i}}}": max(len(value) for value in fact.values.values()) for i, fact in enumerate(draft.facts)
    }
    return [max(longest.get(cell, len(cell)) for cell in column) for column in zip(*rows, strict=True)]


def _pad(cell: str, width: int) -> str:
    """Pad a cell; one that stands for a value is padded when the value is filled in."""
    return f"{cell[:-1]}:<{width}}}" if cell.startswith("{") else f"{cell:<{width}}"
