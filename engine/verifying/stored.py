"""Which requests the store has answers to, below some targets as they are declared now. Reads the store.

Only current keys of the universe's principal are looked at, so nothing is found that this reader may not read now.
"""

from __future__ import annotations

import msgspec

from gsum.engine.universe import Universe
from gsum.engine.verifying.plan import Stored
from gsum.rules.config import CommandToolchain, ToolchainSection
from gsum.rules.requests import Request
from gsum.store.api import Store
from gsum.store.digests import Key

_DECODER = msgspec.json.Decoder(Request)


class Found(msgspec.Struct, frozen=True):
    """Stored requests, each once, and how many targets of a model have no current result."""

    requests: tuple[Stored, ...]
    not_built: int


def stored_requests(universe: Universe, store: Store) -> Found:
    """Return the requests behind the current results of a universe's targets."""
    actions = {
        label: action
        for label, action in universe.graph.actions.items()
        if action.prompt is not None and action.toolchain is not None
    }
    keys = {label: universe.keys.actions[label].key for label in actions}
    entries = store.entries(list(dict.fromkeys(keys.values())))
    found: dict[Key, Stored] = {}
    not_built = 0
    for label, action in actions.items():
        entry = entries.get(keys[label])
        if entry is None:
            not_built += 1
        elif entry.request is not None and entry.generation is not None:
            before = found.get(entry.request)
            labels = (*(before.labels if before else ()), label)
            found[entry.request] = Stored(entry.request, entry.generation, action.toolchain or "", labels)
    return Found(tuple(found.values()), not_built)


def load_request(store: Store, key: Key) -> Request:
    """Return a stored request; its bytes hash to its key."""
    return _DECODER.decode(store.get_record(key).data)


def promises(toolchain: ToolchainSection) -> bool:
    """Whether equal requests must give equal answers."""
    return not isinstance(toolchain, CommandToolchain) or toolchain.reproducible
