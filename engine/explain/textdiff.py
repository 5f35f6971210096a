r"""The difference of two texts, by lines that end at "\n" alone: in words, and as a unified diff. Pure.

Large differences are shown as one block: line matching takes time in the product of both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import msgspec

MATCH_LIMIT = 4_000_000
"""Above this many pairs of lines, what lies between the common start and end is one block."""
CONTEXT = 2
MAX_PLACES = 5
"""How many places are named in words."""

NO_NEWLINE = "\\ no newline at the end"


class Block(msgspec.Struct, frozen=True):
    """Lines [a, b) of the old text give way to lines [c, d) of the new one; counted from 0."""

    a: int
    b: int
    c: int
    d: int


class TextChange(msgspec.Struct, frozen=True):
    """Two texts as lines (with their line ends) and the blocks in which they differ."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    blocks: tuple[Block, ...]


def compare_texts(before: str, after: str) -> TextChange:
    """Compare two texts line by line."""
    old, new = _lines(before), _lines(after)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    blocks = _blocks(old[start : len(old) - end], new[start : len(new) - end], start)
    return TextChange(old, new, tuple(blocks))


def in_words(change: TextChange) -> str:
    """Return what changed: `line 4 changed`, `lines 2–3 removed, line 9 added`. Removed lines count in the old text."""
    places: list[str] = []
    for block in change.blocks:
        both = min(block.b - block.a, block.d - block.c)
        if both:
            places.append(f"{_range(block.c, block.c + both)} changed")
        if block.a + both < block.b:
            places.append(f"{_range(block.a + both, block.b)} removed")
        if block.c + both < block.d:
            places.append(f"{_range(block.c + both, block.d)} added")
    more = len(places) - MAX_PLACES
    if more > 0:
        places[MAX_PLACES:] = [f"{more} more {'place' if more == 1 else 'places'}"]
    return ", ".join(_merged(places)) or "same text"


def unified(change: TextChange) -> tuple[str, ...]:
    """Return the lines of a unified diff without file names."""
    return tuple(line for hunk in _hunks(change.blocks) for line in _hunk_lines(change, hunk))


def _lines(text: str) -> tuple[str, ...]:
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return (*lines, last) if last else tuple(lines)


def _blocks(old: Sequence[str], new: Sequence[str], offset: int) -> Iterator[Block]:
    if not old and not new:
        return
    if len(old) * len(new) > MATCH_LIMIT:
        yield Block(offset, offset + len(old), offset, offset + len(new))
        return
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield Block(a + offset, b + offset, c + offset, d + offset)


def _range(start: int, end: int) -> str:
    return f"line {end}" if end == start + 1 else f"lines {start + 1}–{end}"


def _merged(places: list[str]) -> list[str]:
    """Join single lines of one fate: `lines 4 and 7 changed`."""
    found: list[str] = []
    group: list[str] = []
    fate = ""
    for place in [*places, ""]:
        kind, _, rest = place.partition(" ")
        number, _, word = rest.partition(" ")
        if kind == "line" and (not group or word == fate):
            group.append(number)
            fate = word
            continue
        if group:
            found.append(f"line {group[0]} {fate}" if len(group) == 1 else f"lines {_and(group)} {fate}")
        group, fate = ([number], word) if kind == "line" else ([], "")
        if place and kind != "line":
            found.append(place)
    return found


def _and(numbers: list[str]) -> str:
    return ", ".join(numbers[:-1]) + f" and {numbers[-1]}"


def _hunks(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    hunk: list[Block] = []
    for block in blocks:
        if hunk and block.a - hunk[-1].b > 2 * CONTEXT:
            yield hunk
            hunk = []
        hunk.append(block)
    if hunk:
        yield hunk


def _hunk_lines(change: TextChange, hunk: Sequence[Block]) -> Iterator[str]:
    lead = min(CONTEXT, hunk[0].a)
    trail = min(CONTEXT, len(change.before) - hunk[-1].b)
    start, end = hunk[0].a - lead, hunk[-1].b + trail
    new_start, new_end = hunk[0].c - lead, hunk[-1].d + trail
    yield f"@@ -{_header(start, end)} +{_header(new_start, new_end)} @@"
    position = start
    for block in hunk:
        for line in change.before[position : block.a]:
            yield from _shown(" ", line)
        for line in change.before[block.a : block.b]:
            yield from _shown("-", line)
        for line in change.after[block.c : block.d]:
            yield from _shown("+", line)
        position = block.b
    for line in change.before[position:end]:
        yield from _shown(" ", line)


def _header(start: int, end: int) -> str:
    count = end - start
    return f"{start + 1 if count else start},{count}"


def _shown(mark: str, line: str) -> Iterator[str]:
    yield mark + line.removesuffix("\n")
    if not line.endswith("\n"):
        yield NO_NEWLINE
