"""Former preimages made by hand: the present ones with one field changed, and all keys above it redone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from support.memory_store import MemoryStore

from gsum.engine.universe import Universe
from gsum.store.digests import Key, RecordKind, preimage_of
from gsum.store.records import ActionEntry, How, TargetRef

Change = Callable[[RecordKind, str, dict[str, Any]], dict[str, Any]]
"""From a record's kind, the label (or the key, for what has none) and the record to the record as it was."""

REFERENCES = ("toolchain", "prompt", "schema", "perimeter")


class Former:
    """The preimages that a universe's targets had before, as `change` makes them of the present ones."""

    def __init__(self, universe: Universe, change: Change) -> None:
        self.store = MemoryStore()
        self.keys: dict[str, Key] = {}
        self._universe = universe
        self._change = change
        self._perimeters: dict[str, Key] = {}
        for label, action in universe.graph.actions.items():
            self.keys[label] = self._action(label)
            ref = TargetRef(label, action.principal, action.toolchain or "", self.keys[label], "before", "then")
            self.store.put_target(ref)
            self.store.put_entry(
                ActionEntry(
                    key=self.keys[label],
                    label=label,
                    result=self.store.put_blob(b"result"),
                    request=None,
                    generation=None,
                    sources=(),
                    how=How.PURE,
                    status="VALID",
                    invocation="before",
                    created="then",
                )
            )

    def _action(self, label: str) -> Key:
        record = json.loads(self._universe.keys.actions[label].action.data)
        children = self._universe.graph.actions[label].children
        for name in REFERENCES:
            if name != "perimeter" and record[name] is not None:
                record[name] = self._keep(RecordKind(name), record[name], self._record(record[name]))
        perimeter = self._record(record["perimeter"])
        if children:
            perimeter["children"] = [self._perimeters[child] for child in children]
            record["children"] = [self.keys[child] for child in children]
        record["perimeter"] = self._keep(RecordKind.PERIMETER, label, perimeter)
        self._perimeters[label] = record["perimeter"]
        return self._keep(RecordKind.ACTION, label, record)

    def _record(self, key: str) -> dict[str, Any]:
        return json.loads(self._universe.keys.records[Key(key)].data)

    def _keep(self, kind: RecordKind, name: str, record: dict[str, Any]) -> Key:
        return self.store.put_record(preimage_of(kind, self._change(kind, name, record)))


def paths(value: Any, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every field of a decoded record that is no object itself."""
    for name, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield from paths(inner, (*prefix, name))
        else:
            yield (*prefix, name)


def with_other(record: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """Return a record in which the field at `path` has another value of a similar kind."""
    copy = dict(record)
    head, *rest = path
    copy[head] = with_other(record[head], tuple(rest)) if rest else other(record[head])
    return copy


def other(value: Any) -> Any:
    """Return another value."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return f"{value}x" if len(value) != 64 else value[:-1] + ("0" if value[-1] != "0" else "1")
    if isinstance(value, list):
        return [*value, "x"]
    return "x"
