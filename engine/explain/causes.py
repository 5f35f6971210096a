"""What differs between an action's two preimages, as root causes. Pure.

Children and perimeters that changed because of something else are consequences and are left out. Nothing is said, read
or computed of the version and text of a document that the reader may not read now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import UNSET, UnsetType

from gsum.engine.explain.fields import change_text, field_changes, same, value_text
from gsum.engine.explain.model import Cause, CauseKind, FieldChange
from gsum.engine.explain.named import Names, named_causes
from gsum.engine.explain.records import Record, Records
from gsum.engine.explain.textdiff import compare_texts, in_words, unified
from gsum.store.digests import Digest, Key, RecordKind

CONTENT = ("version", "text")
RIGHTS = ("eligible", "access_revision")
OPEN = ("id", "active", *RIGHTS)
SCOPE = (*OPEN, *CONTENT)

_NOTES = {
    "rule_version": "this gsum's rule differs from the one that built it: no declaration changed",
    "key_schema": "this gsum makes keys otherwise than the one that built it: no declaration changed",
    "fan_in": "it decides which documents stand in one group",
    "input_tokens": "a budget is part of the key even where no input reaches it",
}
"""Why a setting matters that a person may not have thought of."""

INPUT_TOKENS = {"map": "map_input_tokens", "reduce": "reduce_input_tokens"}
_NAMED = {"toolchain": RecordKind.TOOLCHAIN, "prompt": RecordKind.PROMPT, "schema": RecordKind.SCHEMA}


class Reader(Names, Protocol):
    """Names, rights and texts: what an explanation needs beside preimages."""

    def document(self, label: str, document: str) -> str:
        """Return the label of a document below `label`."""

    def may_read(self, label: str, document: str) -> bool:
        """Whether the reader may read a document below `label` now."""

    def text(self, label: str, digest: Digest) -> str | None:
        """Return a text by its digest, null where it is not kept. Only asked for what may be read."""


def find_causes(reader: Reader, records: Records, label: str, before: Record, now: Record) -> list[Cause]:
    """Return the causes for which an action's own fields differ; consequences (children, perimeters) give none."""
    found: list[Cause] = []
    if not same(before.get("source"), now.get("source")):
        found += _source_causes(reader, label, before, now)
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name, UNSET), now.get(name, UNSET)
        if name in ("source", "children") or same(old, new):
            continue
        if name == "perimeter":
            found += _perimeter_causes(records, before, now)
        elif name in _NAMED:
            found += named_causes(reader, records, label, _NAMED[name], _key(old), _key(new))
        else:
            found.append(_setting(name, old, new, now))
    return found


def _key(value: object | UnsetType) -> Key | None:
    return Key(value) if isinstance(value, str) else None


def _setting(name: str, before: object | UnsetType, after: object | UnsetType, now: Record) -> Cause:
    change = FieldChange((name,), before, after)
    shown = f"`{name}`"
    if name == "input_tokens":
        shown = f"`{INPUT_TOKENS.get(str(now.get('kind')), name)}`"
    elif name == "rule_version":
        shown = f"version of rule `{now.get('rule')}`"
    elif name == "key_schema":
        shown = "key schema"
    text = f"{shown}: {change_text(change)}"
    return Cause(CauseKind.SETTING, shown.strip("`"), text, (change,), note=_NOTES.get(name))


def _source_causes(reader: Reader, label: str, before: Record, now: Record) -> list[Cause]:
    """Compare the scopes of a leaf's document."""
    old, new = before.get("source"), now.get("source")
    if old is None or new is None:
        change = FieldChange(("source",), old and old["id"], new and new["id"])
        return [Cause(CauseKind.SETTING, "source", f"`source`: {change_text(change)}", (change,))]
    document = str(new["id"])
    subject = reader.document(label, document)
    admitted = reader.may_read(label, document)
    changes = {change.path[0]: change for change in field_changes(_visible(old, admitted), _visible(new, admitted))}
    if "id" in changes:
        text = f"document {value_text(document)} stands in the place of {value_text(old['id'])}"
        return [Cause(CauseKind.REPLACED, subject, text, _below("source", [changes["id"]]))]
    found: list[Cause] = []
    if "active" in changes:
        kind, fate = (CauseKind.RESTORED, "restored") if new["active"] else (CauseKind.WITHDRAWN, "withdrawn")
        found.append(Cause(kind, subject, f"document `{document}` {fate}", _below("source", [changes["active"]])))
    rights = [changes[name] for name in RIGHTS if name in changes]
    if rights:
        text = _access_text(str(now["principal"]), document, old, new)
        found.append(Cause(CauseKind.ACCESS, subject, text, _below("source", rights)))
    content = [changes[name] for name in CONTENT if name in changes]
    if content and _readable(old) and _readable(new):
        found.append(_content_cause(reader, label, subject, old, new, content))
    for name in sorted(changes.keys() - set(SCOPE)):
        path = _below("source", [changes[name]])
        text = f"`{path[0].name}` of `{document}`: {change_text(changes[name])}"
        found.append(Cause(CauseKind.SETTING, f"{subject} {name}", text, path))
    return found


def _visible(scope: Record, admitted: bool) -> dict[str, object]:
    """Return what may be compared of a scope: of a document that may not be read, its id and rights."""
    return {name: value for name, value in scope.items() if admitted or name in OPEN}


def _readable(scope: Record) -> bool:
    return bool(scope["active"]) and bool(scope["eligible"])


def _access_text(principal: str, document: str, old: Record, new: Record) -> str:
    revision = f"revision {old['access_revision']} → {new['access_revision']}"
    if same(old["access_revision"], new["access_revision"]):
        revision = f"revision {new['access_revision']}"
    if same(old["eligible"], new["eligible"]):
        return f"access of `{principal}` to `{document}`: {revision}"
    return f"access of `{principal}` to `{document}` {'granted' if new['eligible'] else 'revoked'} ({revision})"


def _content_cause(
    reader: Reader, label: str, subject: str, old: Record, new: Record, content: Sequence[FieldChange]
) -> Cause:
    version = f"version {new['version']}"
    if not same(old["version"], new["version"]):
        version = f"version {old['version']} → {new['version']}"
    words, details = "same text", tuple[str, ...]()
    if not same(old["text"], new["text"]):
        words, details = _text_change(reader, label, old["text"], new["text"])
    text = f"document `{new['id']}`: {version}, {words}"
    note = "a version's name is part of the key even where its text is the same" if words == "same text" else None
    return Cause(CauseKind.DOCUMENT, subject, text, _below("source", content), details, note)


def _text_change(reader: Reader, label: str, old: Digest, new: Digest) -> tuple[str, tuple[str, ...]]:
    before, after = reader.text(label, old), reader.text(label, new)
    if before is None or after is None:
        return f"text changed (its {'former' if before is None else 'later'} text is not kept)", ()
    change = compare_texts(before, after)
    return in_words(change), unified(change)


def _perimeter_causes(records: Records, before: Record, now: Record) -> list[Cause]:
    """Return what differs in the perimeters' records and does not follow from scope, principal or children."""
    old, new = (records.get(Key(record["perimeter"])) for record in (before, now))
    if old is None or new is None:
        if _follows(records, before, now, "children") or not same(before.get("source"), now.get("source")):
            return []
        change = FieldChange(("perimeter",), before.get("perimeter"), now.get("perimeter"))
        return [Cause(CauseKind.SETTING, "perimeter", "the perimeter changed (its record is not kept)", (change,))]
    return [
        Cause(CauseKind.SETTING, change.name, f"`{change.name}`: {change_text(change)}", (change,))
        for change in field_changes(old, new, ("perimeter",))
        if not _follows(records, before, now, change.path[1])
    ]


def _follows(records: Records, before: Record, now: Record, name: str) -> bool:
    """Whether a perimeter's field changed because that which it repeats did."""
    if name == "principal":
        return not same(before["principal"], now["principal"])
    if name == "children":
        return _perimeters(records, before) != _perimeters(records, now)
    old, new = before.get("source") or {}, now.get("source") or {}
    return not same(old.get(name, UNSET), new.get(name, UNSET))


def _perimeters(records: Records, record: Record) -> list[object]:
    children = [records.get(Key(key)) for key in record["children"]]
    return [None if child is None else child["perimeter"] for child in children]


def _below(head: str, changes: Sequence[FieldChange]) -> tuple[FieldChange, ...]:
    return tuple(FieldChange((head, *change.path), change.before, change.after) for change in changes)
