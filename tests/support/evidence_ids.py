"""Evidence ids read back into their parts: the inverse of what the product writes, to show that it loses nothing."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

_ID = re.compile(r"([^@:]+)@([^@:]+):(0|[1-9][0-9]*):(0|[1-9][0-9]*)", re.ASCII)


class Citation(NamedTuple):
    """The parts of an evidence id, unescaped."""

    doc_id: str
    version: str
    start: int
    end: int


def parts_of(text: str) -> Citation:
    """Split an evidence id into its parts."""
    match = _ID.fullmatch(text)
    assert match is not None, text
    doc_id, version = (unquote_to_bytes(part.encode("utf-8", "surrogatepass")) for part in match.group(1, 2))
    names = (name.decode("utf-8", "surrogatepass") for name in (doc_id, version))
    return Citation(*names, int(match[3]), int(match[4]))
