"""The old answer of a label, offered to an executor as what the new one may say. Never in a key; changes no output.

An answer made under another perimeter is not offered: it may tell of what may not be read now.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gsum.rules.requests import Request
from gsum.store.api import Store
from gsum.store.digests import Key
from gsum.store.errors import StoreError
from gsum.store.records import Generation


class _Asked(msgspec.Struct, frozen=True):
    """What of an old request decides whether its answer may be offered."""

    toolchain: str
    perimeter: str


_REQUESTS = msgspec.json.Decoder(_Asked)
_GENERATIONS = msgspec.json.Decoder(Generation)


def find_drafts(store: Store, wanted: Mapping[Key, Request]) -> dict[Key, tuple[int, ...]]:
    """Return the token ids of answers; `wanted` maps the key a label was last built as to its request now."""
    found = {}
    for key, entry in store.entries(list(wanted)).items():
        if entry.request is None or entry.generation is None:
            continue
        try:
            old, now = _REQUESTS.decode(store.get_record(entry.request).data), wanted[key]
            if (old.toolchain, old.perimeter) == (now.toolchain, now.perimeter):
                found[key] = _GENERATIONS.decode(store.get_blob(entry.generation)).token_ids
        except StoreError:  # an old answer that is damaged or gone is no guess
            continue
    return found
