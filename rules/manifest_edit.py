"""Edits of a manifest's text that keep comments and layout. Pure: text to text; writing is the caller's work.

Access revisions only ever grow. Every edit is checked: its text parses to exactly the value that was meant.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

import msgspec
import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from gsum.rules.manifest import MANIFEST, DocumentSection, ManifestFile, Reader
from gsum.rules.nearest import suggest
from gsum.rules.toml import DeclarationError, TomlText, decode
from gsum.store.errors import ExitCode, GsumError

Entry = MutableMapping[str, Any]
"""A document's table in the tomlkit document."""


class ManifestEditError(GsumError):
    """An edit names a document or version that the manifest doesn't have."""

    exit_code = ExitCode.USAGE


class Edit(msgspec.Struct, frozen=True):
    """The new text, and whether anything changed: an edit that is already in force changes nothing."""

    text: str
    changed: bool


def activate(text: str, document: str, version: str, file: str = MANIFEST) -> Edit:
    """Make a version the active one.

    Raises:
        ManifestEditError: if the manifest has no such document or version.
        DeclarationError: if the manifest is not valid as it stands.
    """
    section = _section(text, document, file)
    if version not in section.versions:
        raise ManifestEditError(
            f"document `{document}` has no version `{version}`",
            facts={"file": file},
            hint=suggest(version, section.versions, "its versions are"),
        )
    return _apply(text, section, msgspec.structs.replace(section, active=version), file)


def withdraw(text: str, document: str, file: str = MANIFEST) -> Edit:
    """Withdraw a document from everyone. Raises as `activate`."""
    section = _section(text, document, file)
    return _apply(text, section, msgspec.structs.replace(section, withdrawn=True), file)


def restore(text: str, document: str, file: str = MANIFEST) -> Edit:
    """Restore a withdrawn document. Raises as `activate`."""
    section = _section(text, document, file)
    return _apply(text, section, msgspec.structs.replace(section, withdrawn=False), file)


def grant(text: str, document: str, reader: str, file: str = MANIFEST) -> Edit:
    """Let a reader read a document and raise its access revision, which starts at 1. Raises as `activate`."""
    return _set_right(text, document, reader, True, file)


def revoke(text: str, document: str, reader: str, file: str = MANIFEST) -> Edit:
    """Take a document from a reader and raise its access revision. Raises as `activate`.

    A reader that is not listed may not read the document: nothing changes.
    """
    return _set_right(text, document, reader, False, file)


def _set_right(text: str, document: str, reader: str, granted: bool, file: str) -> Edit:
    section = _section(text, document, file)
    right = section.readers.get(reader, Reader(False, 0))
    if right.granted is granted:
        return Edit(text, False)
    readers = section.readers | {reader: Reader(granted, right.revision + 1)}
    return _apply(text, section, msgspec.structs.replace(section, readers=readers), file)


def _section(text: str, document: str, file: str) -> DocumentSection:
    documents = decode(TomlText(file, text), ManifestFile).documents
    found = [section for section in documents if section.id == document]
    if len(found) == 1:
        return found[0]
    if found:
        raise DeclarationError(f"document `{document}` is declared twice", facts={"file": file})
    raise ManifestEditError(
        f"the manifest has no document `{document}`",
        facts={"file": file},
        hint=suggest(document, [section.id for section in documents], "its documents are"),
    )


def _apply(text: str, old: DocumentSection, new: DocumentSection, file: str) -> Edit:
    """Write the difference of two sections into the text, and hold the outcome against what was meant."""
    if old == new:
        return Edit(text, False)
    before = decode(TomlText(file, text), ManifestFile)
    meant = msgspec.structs.replace(before, documents=tuple(new if item == old else item for item in before.documents))
    try:
        edited = _rewrite(text, old.id, lambda entry: _write(entry, old, new))
        outcome = decode(TomlText(file, edited), ManifestFile)
    except (TOMLKitError, DeclarationError):
        outcome = None
    if outcome != meant:
        raise DeclarationError(
            f"the layout of document `{old.id}` can't be edited in place",
            facts={"file": file},
            hint="write its section as `[[documents]]` with one key a line, or edit it by hand",
        )
    return Edit(edited, True)


def _rewrite(text: str, document: str, write: Callable[[Entry], None]) -> str:
    parsed = tomlkit.parse(text)
    for entry in parsed["documents"]:
        if entry["id"] == document:
            write(entry)
    edited = tomlkit.dumps(parsed)
    if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
        return edited.replace("\r\n", "\n").replace("\n", "\r\n")
    return edited


def _write(entry: Entry, old: DocumentSection, new: DocumentSection) -> None:
    if new.active != old.active:
        _set(entry, "active", new.active)
    if new.withdrawn is not old.withdrawn:
        _set(entry, "withdrawn", new.withdrawn)
    for name, right in new.readers.items():
        if right == old.readers.get(name):
            continue
        if "readers" not in entry:
            _set(entry, "readers", tomlkit.inline_table())
        readers = entry["readers"]
        if name not in readers:
            _set(readers, name, _new_right(readers, right))
        else:
            _set(readers[name], "granted", right.granted)
            _set(readers[name], "revision", right.revision)


def _new_right(readers: Entry, right: Reader) -> object:
    """Return a table for a reader in the layout of the readers before it."""
    text = f"granted = {str(right.granted).lower()}"
    if isinstance(readers, Table) and readers.is_super_table():
        return tomlkit.parse(f"[r]\n{text}\nrevision = {right.revision}\n")["r"]
    return tomlkit.parse(f"r = {{ {text}, revision = {right.revision} }}")["r"]


def _set(table: Entry, key: str, value: object) -> None:
    """Set a key; a new one goes behind the last key, before blank lines and comments that lead to the next table."""
    if key in table or not isinstance(table, Table):
        table[key] = value
        return
    body = table.value.body
    trailing = []
    while body and body[-1][0] is None:
        trailing.append(body.pop())
    table[key] = value
    body.extend(reversed(trailing))
