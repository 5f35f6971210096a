r"""Documents: canonical text, lines, and evidence records over them. Pure.

Offsets are indices of Python characters in the exact text of one version. Lines end at "\n" only; a BOM at the
start and a trailing "\r" stay outside the interval of a line.
"""

from __future__ import annotations

import msgspec

BOM = "\ufeff"


class Line(msgspec.Struct, frozen=True):
    """A non-empty line: its number among the non-empty ones (from 1) and its interval [start, end)."""

    number: int
    start: int
    end: int
    text: str


class Evidence(msgspec.Struct, frozen=True):
    """A resolved citation; `id` is `DOC@VERSION:START:END` with DOC and VERSION percent-escaped where needed."""

    id: str
    doc_id: str
    version: str
    start: int
    end: int
    quote: str
    text_sha256: str


def lines(text: str) -> tuple[Line, ...]:
    r"""Return the non-empty lines of a text, numbered from 1, with `line.text == text[line.start:line.end]`.

    A line is non-empty if its interval holds a character that is not whitespace. Only "\n" ends a line: form feed,
    U+0085, U+2028 and a lone "\r" are characters of the line they stand in.
    """
    found: list[Line] = []
    position = 0
    for raw in text.split("\n"):
        start, end, content = position, position + len(raw), raw
        position = end + 1
        if start == 0 and raw.startswith(BOM):
            start, content = 1, raw[1:]
        if content and not content.isspace():
            if content[-1] == "\r":
                end, content = end - 1, content[:-1]
            found.append(Line(len(found) + 1, start, end, content))
    return tuple(found)
