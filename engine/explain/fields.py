"""The difference of two preimages, field by field: all of both sides, so that none can be forgotten. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import UNSET, UnsetType

from gsum.engine.explain.model import FieldChange
from gsum.store.canonical import canonical_json

NONE = "none"


def field_changes(
    before: object | UnsetType, after: object | UnsetType, path: tuple[str, ...] = ()
) -> Iterator[FieldChange]:
    """Yield every field in which two decoded JSON values differ: objects by member, all else as a whole."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted(before.keys() | after.keys()):
            yield from field_changes(before.get(name, UNSET), after.get(name, UNSET), (*path, name))
    elif not same(before, after):
        yield FieldChange(path, before, after)


def same(before: object | UnsetType, after: object | UnsetType) -> bool:
    """Whether two JSON values have the same canonical form (in Python, `1` equals `True`)."""
    if before is UNSET or after is UNSET:
        return before is after
    return canonical_json(before) == canonical_json(after)


def value_text(value: object | UnsetType) -> str:
    """Return a value as it is shown in a sentence: numbers bare, text in backticks."""
    if value is None or value is UNSET:
        return NONE
    if isinstance(value, str):
        return f"`{value}`" if value else "empty"
    if isinstance(value, int):
        return str(value).lower()
    return f"`{canonical_json(value).decode()}`"


def change_text(change: FieldChange) -> str:
    """Return `before → after`."""
    return f"{value_text(change.before)} → {value_text(change.after)}"
