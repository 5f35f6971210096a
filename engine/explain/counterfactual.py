"""The smallest set of changes to put back so that a target is served again, verified by recomputing its key. Pure.

An earlier key hits again only if everything that differs from it is put back; so the set is that of the earlier key
with the fewest causes between. What is proposed is applied, field by field, to the present preimages, the keys are
computed anew with the engine's own structs, and a proposal that does not give the earlier key is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from gsum.engine.explain.causes import INPUT_TOKENS, Reader
from gsum.engine.explain.fields import same
from gsum.engine.explain.model import Cause, CauseKind, Counterfactual, FieldChange
from gsum.engine.explain.named import SHORT
from gsum.engine.explain.records import Records, Shape, same_shape
from gsum.engine.keys import ActionPreimage, LeafPerimeter, NodePerimeter
from gsum.rules.snapshot import Scope
from gsum.store.digests import Key, RecordKind, preimage_of
from gsum.store.records import TargetRef

MOST_CANDIDATES = 16
"""How many of the newest earlier keys of a target are tried."""

FIXED = frozenset({CauseKind.ACCESS, CauseKind.NEVER_BUILT, CauseKind.INCOMPLETE, CauseKind.FORCED, CauseKind.UNKNOWN})
"""Causes that nobody can put back: an access revision only grows, and what is lost is lost."""

_WHOLE_SCOPE = (CauseKind.WITHDRAWN, CauseKind.RESTORED)
_NAMED = {"toolchain": RecordKind.TOOLCHAIN, "prompt": RecordKind.PROMPT, "schema": RecordKind.SCHEMA}


def smallest_way_back(
    records: Records,
    reader: Reader,
    label: str,
    now: Key,
    earlier: Sequence[TargetRef],
    causes_since: Callable[[Key], Sequence[Cause]],
) -> Counterfactual | None:
    """Return what to put back so that `label` has one of its `earlier` keys (newest first) again, None where no edit
    can; `causes_since` says what differs between an earlier key and now.
    """
    best: Counterfactual | None = None
    for ref in earlier[:MOST_CANDIDATES]:
        causes = tuple(causes_since(ref.key))
        if not causes or any(cause.kind in FIXED for cause in causes):
            continue
        if best is not None and len(causes) >= len(best.causes):
            continue
        if _recomputed(records, reader, label, now, ref.key, causes) == ref.key:
            best = Counterfactual(ref.key, ref.invocation, causes)
    return best


def _recomputed(
    records: Records, reader: Reader, label: str, now: Key, earlier: Key, causes: Sequence[Cause]
) -> Key | None:
    """Return the key of a target when all of `causes` are put back; None where a preimage is not of this schema."""
    try:
        return _PutBack(records, reader, label, now, earlier, causes).key()
    except (msgspec.ValidationError, KeyError):
        return None


class _PutBack:
    """Applies causes backwards to the present preimages of one tree."""

    def __init__(
        self, records: Records, reader: Reader, label: str, now: Key, earlier: Key, causes: Sequence[Cause]
    ) -> None:
        self._records, self._reader, self._label = records, reader, label
        self._earlier, self._now = Shape(records, earlier), Shape(records, now)
        self._reshaped = not same_shape(records, earlier, now)
        self._by_subject: dict[str, list[Cause]] = {}
        self._shared: list[tuple[str, FieldChange]] = []
        for cause in causes:
            self._by_subject.setdefault(cause.subject, []).append(cause)
            if cause.kind in (CauseKind.PROMPT, CauseKind.SCHEMA, CauseKind.TOOLCHAIN, CauseKind.SETTING):
                self._shared += [(cause.subject, change) for change in cause.fields]
        self._kinds: dict[str, ActionPreimage] = {}
        for keys in self._now.inner.values():
            for key in keys:
                found = self._preimage(key)
                self._kinds.setdefault(found.kind, found)

    def key(self) -> Key:
        """Return the key of the whole tree: of its former shape where that changed."""
        return self._node(self._earlier.root if self._reshaped else self._now.root)[0]

    def _node(self, key: Key) -> tuple[Key, Key]:
        """Return a node's key and perimeter when all is put back."""
        standing = self._preimage(key)
        children = [self._node(child) for child in standing.children]
        base = self._base(standing) if self._reshaped else standing
        record = self._with_settings(base)
        source = None if record.source is None else self._source(record.source)
        if source is None or children:
            perimeter: object = NodePerimeter(tuple(child[1] for child in children))
        else:
            perimeter = LeafPerimeter(
                source.id, source.active, source.eligible, source.access_revision, record.principal
            )
        perimeter_key = preimage_of(RecordKind.PERIMETER, perimeter).key
        put_back = msgspec.structs.replace(
            record, source=source, children=tuple(child[0] for child in children), perimeter=perimeter_key
        )
        return preimage_of(RecordKind.ACTION, put_back).key, perimeter_key

    def _base(self, former: ActionPreimage) -> ActionPreimage:
        """Return what stands now in the place of a node of the former shape; a removed document comes as it was."""
        if former.source is None or former.children:
            return self._kinds[former.kind]
        key = self._now.leaves.get(former.source.id)
        return former if key is None else self._preimage(key)

    def _with_settings(self, record: ActionPreimage) -> ActionPreimage:
        values: dict[str, Any] = {}
        for subject, change in self._shared:
            head, *rest = change.path
            if head in _NAMED and rest:
                continue
            if head == "input_tokens" and subject != INPUT_TOKENS.get(record.kind, head):
                continue
            if hasattr(record, head) and same(getattr(record, head), change.after):
                values[head] = change.before
        for name, kind in _NAMED.items():
            key = values.get(name, getattr(record, name))
            if key is not None:
                values[name] = self._named(kind, Key(key))
        return msgspec.convert({**msgspec.structs.asdict(record), **values}, ActionPreimage, from_attributes=True)

    def _named(self, kind: RecordKind, key: Key) -> Key:
        """Return the key of a toolchain, prompt or schema with the fields put back that differ in it."""
        record = self._records.get(key)
        subjects = {*self._reader.names(kind, key), key[:SHORT]}
        changes = [
            change
            for cause in (cause for subject in subjects for cause in self._by_subject.get(subject, ()))
            for change in cause.fields
            if change.path[0] == kind.value and len(change.path) > 1
        ]
        if record is None or not changes:
            return key
        patched: object = record
        for change in changes:
            path = change.path[1:]
            if kind is not RecordKind.TOOLCHAIN and path != ("key_schema",):
                path = change.path
            patched = _patched(patched, path, change)
        return preimage_of(kind, patched).key

    def _source(self, scope: Scope) -> Scope:
        causes = self._by_subject.get(self._reader.document(self._label, scope.id), ())
        if any(cause.kind in _WHOLE_SCOPE for cause in causes):
            former = self._preimage(self._earlier.leaves[scope.id]).source
            assert former is not None
            return former
        values = {change.path[1]: change.before for cause in causes for change in cause.fields if len(change.path) == 2}
        known = {name: value for name, value in values.items() if name in Scope.__struct_fields__}
        return msgspec.convert({**msgspec.structs.asdict(scope), **known}, Scope)

    def _preimage(self, key: Key) -> ActionPreimage:
        record = self._records.get(key)
        if record is None:
            raise KeyError(key)
        return msgspec.convert(record, ActionPreimage)


def _patched(record: object, path: Sequence[str], change: FieldChange) -> object:
    """Return a record with the value before in place of the value after at a path, where that is what stands there."""
    if not path:
        return change.before if same(record, change.after) else record
    if not isinstance(record, Mapping):
        return record
    copy: dict[str, object] = dict(record)
    value = _patched(copy.get(path[0], msgspec.UNSET), path[1:], change)
    if value is msgspec.UNSET:
        copy.pop(path[0], None)
    else:
        copy[path[0]] = value
    return copy
