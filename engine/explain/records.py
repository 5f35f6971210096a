"""Preimages by key, decoded once each, and what one tree of them holds. Reads through a function; knows no store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gsum.store.digests import Key

Record = Mapping[str, Any]
"""A decoded preimage: what is kept may be of an older key schema, so it is no struct."""


class Records:
    """Decodes preimages; `load` returns a key's canonical bytes, or None where they are not kept."""

    def __init__(self, load: Callable[[Key], bytes | None]) -> None:
        self._load = load
        self._decoded: dict[Key, Record | None] = {}

    def get(self, key: Key) -> Record | None:
        """Return a decoded preimage, None where it is not kept."""
        if key not in self._decoded:
            data = self._load(key)
            self._decoded[key] = None if data is None else msgspec.json.decode(data)
        return self._decoded[key]

    def children(self, key: Key) -> tuple[Key, ...]:
        """Return the keys of an action's children, in slot order."""
        record = self.get(key)
        return () if record is None else tuple(Key(child) for child in record["children"])

    def document(self, key: Key) -> str | None:
        """Return the id of a leaf's document; None for an inner node."""
        record = self.get(key)
        source = None if record is None else record["source"]
        return None if source is None else str(source["id"])


class Shape:
    """Documents and inner nodes of one tree of preimages, gathered when first asked for.

    Preimages that are not kept count as inner nodes without children.
    """

    def __init__(self, records: Records, root: Key) -> None:
        self._records = records
        self._documents: dict[Key, tuple[str, ...]] = {}
        self._heights: dict[Key, int] = {}
        self.leaves: dict[str, Key] = {}
        """By document id: the leaf's key."""
        self.inner: dict[int, list[Key]] = {}
        """By height above the leaves: inner nodes in slot order."""
        self._visit(root)
        self.root = root

    def documents(self, key: Key) -> tuple[str, ...]:
        """Return the documents below a node of the tree, in order."""
        return self._documents[key]

    def height(self, key: Key) -> int:
        """Return the longest way from a node of the tree down to a leaf."""
        return self._heights[key]

    def _visit(self, key: Key) -> None:
        if key in self._documents:
            return
        document = self._records.document(key)
        if document is not None:
            self.leaves[document] = key
            self._documents[key], self._heights[key] = (document,), 0
            return
        children = self._records.children(key)
        for child in children:
            self._visit(child)
        self._documents[key] = tuple(found for child in children for found in self._documents[child])
        self._heights[key] = 1 + max((self._heights[child] for child in children), default=0)
        self.inner.setdefault(self._heights[key], []).append(key)


def same_shape(records: Records, before: Key, now: Key) -> bool:
    """Whether two trees hold the same documents in the same slots. Looks only below keys that differ."""
    if before == now:
        return True
    if records.get(before) is None or records.get(now) is None:
        return True
    if records.document(before) != records.document(now):
        return False
    old, new = records.children(before), records.children(now)
    return len(old) == len(new) and all(same_shape(records, *pair) for pair in zip(old, new, strict=True))
