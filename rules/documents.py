r"""Documents: canonical text, lines, and evidence records over them. Pure.

Offsets are indices of Python characters in the exact text of one version. Lines end at "\n" only; a BOM at the
start and a trailing "\r" stay outside the interval of a line.
"""

from __future__ import annotations

import msgspec


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
