"""The state of targets: what a store holds for the current keys. Reads the store, decides nothing else.

STALE: the label was built before, for this principal and toolchain name, and the current key has no complete entry.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

import msgspec

from gsum.engine.universe import Universe
from gsum.store.api import Store
from gsum.store.digests import Key
from gsum.store.records import ActionEntry, TargetRef


class State(enum.Enum):
    """A target's state: its result's status while that is current, else STALE or NOT BUILT."""

    VALID = "VALID"
    PARTIAL = "PARTIAL"
    INVALID = "INVALID"
    INELIGIBLE = "INELIGIBLE"
    STALE = "STALE"
    NOT_BUILT = "NOT BUILT"

    @property
    def current(self) -> bool:
        """Whether the store holds the result of the current key."""
        return self not in (State.STALE, State.NOT_BUILT)


class TargetState(msgspec.Struct, frozen=True):
    """A target's state; `entry` if current, `previous` (what it was last built as) if stale."""

    label: str
    key: Key
    state: State
    entry: ActionEntry | None = None
    previous: TargetRef | None = None


def target_states(universe: Universe, store: Store, labels: Iterable[str]) -> dict[str, TargetState]:
    """Return the states of `labels`, which must be in the universe's graph.

    Raises:
        GoldError: if one is an audit whose gold can't be used: its key is not known.
    """
    wanted = list(dict.fromkeys(labels))
    universe.require(wanted)
    keys = {label: universe.keys.actions[label].key for label in wanted}
    entries = store.entries(list(dict.fromkeys(keys.values())))
    return {label: _state(universe, store, label, keys[label], entries.get(keys[label])) for label in wanted}


def _state(universe: Universe, store: Store, label: str, key: Key, entry: ActionEntry | None) -> TargetState:
    if entry is not None:
        return TargetState(label, key, State(entry.status), entry=entry)
    action = universe.graph.actions[label]
    previous = store.latest(label, action.principal, action.toolchain or "")
    state = State.NOT_BUILT if previous is None else State.STALE
    return TargetState(label, key, state, previous=previous)
