"""Causes in toolchains, prompts and schemas: what preimages refer to by key, and people know by name. Pure.

Names are in no key: an old record has one only while the workspace still declares it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from gsum.engine.explain.fields import change_text, field_changes, value_text
from gsum.engine.explain.model import Cause, CauseKind, FieldChange
from gsum.engine.explain.records import Record, Records
from gsum.engine.explain.textdiff import compare_texts, unified
from gsum.store.digests import Key, RecordKind

SHORT = 12
"""Hex digits of a key that stand for a record without a name."""

_KINDS = {
    RecordKind.PROMPT: CauseKind.PROMPT,
    RecordKind.SCHEMA: CauseKind.SCHEMA,
    RecordKind.TOOLCHAIN: CauseKind.TOOLCHAIN,
}
_NOTES = (
    (("numerics", "profile", "libraries"), "the version of a library is part of the key"),
    (("numerics",), "the numerics profile is part of the key"),
    (("grammar", "version"), "the version of the grammar backend is part of the key"),
    (("chat_template",), "the chat template is part of the key"),
)


class Names(Protocol):
    """The names of records."""

    def name(self, label: str, kind: RecordKind, key: Key) -> str | None:
        """Return the name under which `label` refers to a record, null where it is not known."""

    def names(self, kind: RecordKind, key: Key) -> frozenset[str]:
        """Return all names under which the workspace now declares the record with this key."""

    def declared(self, kind: RecordKind, key: Key) -> str | None:
        """Return a name under which the workspace now declares the record with this key."""


def named_causes(
    names: Names, records: Records, label: str, kind: RecordKind, before: Key | None, after: Key | None
) -> list[Cause]:
    """Return the causes for which an action refers to another toolchain, prompt or schema: of a prompt one in all,
    of the others one for each field.
    """
    old = None if before is None else records.get(before)
    new = None if after is None else records.get(after)
    shown = _shown(names, label, kind, before, after)
    if old is None or new is None:
        change = FieldChange((kind.value,), before, after)
        return [Cause(_KINDS[kind], shown.subject, f"{kind.value} {shown.text}{_lost(before, after, old)}", (change,))]
    changes = [
        FieldChange((kind.value, *path[path[0] == kind.value :]), change.before, change.after)
        for change in field_changes(old, new)
        for path in (change.path,)
    ]
    if kind is RecordKind.PROMPT:
        return [_prompt(shown, before, changes, old, new)]
    found = []
    for change in changes:
        text = f"{kind.value} {shown.text}: `{_inner(change)}` {change_text(change)}"
        found.append(Cause(_KINDS[kind], shown.subject, text, (change,), note=_note(change.path[1:])))
    return found


class _Shown(msgspec.Struct, frozen=True):
    """How a change of record is shown: its names, and the newest one alone."""

    text: str
    subject: str
    renamed: bool


def _shown(names: Names, label: str, kind: RecordKind, before: Key | None, after: Key | None) -> _Shown:
    old = None if before is None else names.declared(kind, before)
    new = None if after is None else names.name(label, kind, after) or after[:SHORT]
    if before is not None and new is not None and old in (None, new):
        return _Shown(f"`{new}`", new, renamed=False)
    left = None if before is None else old or before[:SHORT]
    return _Shown(f"{value_text(left)} → {value_text(new)}", new or left or "", renamed=True)


def _lost(before: Key | None, after: Key | None, old: Record | None) -> str:
    """Say which record is not kept, where both were there once."""
    if before is None or after is None:
        return ""
    return f" changed (its {'former' if old is None else 'later'} record is not kept)"


def _prompt(shown: _Shown, before: Key | None, changes: Sequence[FieldChange], old: Record, new: Record) -> Cause:
    text = f"prompt {shown.text}"
    if not shown.renamed:
        parts = " and ".join(f"`{_inner(change)}`" for change in changes)
        text += f": {parts} changed (was `{str(before)[:SHORT]}`)"
    details = unified(compare_texts(_prompt_text(old), _prompt_text(new)))
    return Cause(CauseKind.PROMPT, shown.subject, text, tuple(changes), details)


def _prompt_text(record: Record) -> str:
    """Return a prompt as text: one part after the other, each under its name."""
    prompt = record.get("prompt")
    lines: list[str] = []
    for name, value in sorted(prompt.items()) if isinstance(prompt, Mapping) else ():
        if not isinstance(value, list):
            lines += [f"[{name}]", *str(value).split("\n")]
            continue
        for number, example in enumerate(value, 1):
            parts = example if isinstance(example, Mapping) else {"text": example}
            for part, text in sorted(parts.items()):
                lines += [f"[{name} {number} {part}]", *str(text).split("\n")]
    return "".join(f"{line}\n" for line in lines)


def _inner(change: FieldChange) -> str:
    return FieldChange(change.path[1:]).name


def _note(path: tuple[str, ...]) -> str | None:
    if path[0] == "files" and "token" in path[-1].lower():
        return "the tokenizer is part of the key"
    return next((note for prefix, note in _NOTES if path[: len(prefix)] == prefix), None)
