"""The named edits of an experiment: edits.toml to typed steps, and what a step does to a file's text. Pure.

`{NN}` in a document's name is the number of the dossier, at least two digits: 10 for S-010.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any, Literal

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gsum.rules import manifest_edit
from gsum.rules.config import NonEmpty, Section
from gsum.rules.manifest_edit import Edit
from gsum.rules.toml import DeclarationError, TomlText, decode

EDITS_FILE = "corpus/edits.toml"


class _Named(Section, frozen=True):
    name: NonEmpty
    title: NonEmpty
    recomputed: tuple[NonEmpty, ...]
    """The parts of a dossier that the step must not let be reused."""


class Activate(_Named, frozen=True, tag_field="action", tag="activate"):
    """Make a version of a document the active one."""

    document: NonEmpty
    version: NonEmpty


class Withdraw(_Named, frozen=True, tag_field="action", tag="withdraw"):
    """Withdraw a document."""

    document: NonEmpty


class Revoke(_Named, frozen=True, tag_field="action", tag="revoke"):
    """Take a document from a reader."""

    document: NonEmpty
    reader: NonEmpty


class Declare(_Named, frozen=True, tag_field="action", tag="set"):
    """Write one key of a table of BUILD.toml."""

    table: NonEmpty
    key: NonEmpty
    value: NonEmpty


Step = Activate | Withdraw | Revoke | Declare


class MutationsSection(Section, frozen=True):
    """`[mutations]`: steps for each dossier from `first` to `last`, cumulative."""

    split: NonEmpty
    first: NonEmpty
    last: NonEmpty
    steps: tuple[Step, ...]


class ExerciseSection(Section, frozen=True):
    """`[exercise]`: steps for one dossier, cumulative."""

    dossier: NonEmpty
    steps: tuple[Step, ...]


class EditsFile(Section, frozen=True):
    """A whole edits.toml."""

    schema: Literal[1]
    principal: NonEmpty
    mutations: MutationsSection
    exercise: ExerciseSection


def parse_edits(text: TomlText) -> EditsFile:
    """Validate the text of an edits.toml.

    Raises:
        DeclarationError: with the place, on what it can't hold or a step named twice.
    """
    edits = decode(text, EditsFile)
    names: set[str] = set()
    for table, steps in (("mutations", edits.mutations.steps), ("exercise", edits.exercise.steps)):
        for number, step in enumerate(steps):
            if step.name in names:
                raise text.error(f"step `{step.name}` is declared twice", (table, "steps", number, "name"))
            if not re.fullmatch(r"[a-z0-9-]+", step.name):
                hint = "a step's name is small letters, digits and `-`: a folder is named for it"
                raise text.error("a step has no valid name", (table, "steps", number, "name"), hint=hint)
            names.add(step.name)
    return edits


def document_of(step: Activate | Withdraw | Revoke, dossier: str) -> str:
    """Return the document that a step edits in a dossier."""
    digits = "".join(re.findall(r"[0-9]+", dossier)) or "0"
    return step.document.replace("{NN}", f"{int(digits):02}")


def edit_manifest(step: Activate | Withdraw | Revoke, dossier: str, text: str, file: str) -> Edit:
    """Return a dossier's manifest after a step; one that is in force already changes nothing.

    Raises:
        ManifestEditError, DeclarationError: as `gsum.rules.manifest_edit`.
    """
    document = document_of(step, dossier)
    match step:
        case Activate():
            return manifest_edit.activate(text, document, step.version, file)
        case Withdraw():
            return manifest_edit.withdraw(text, document, file)
        case Revoke():
            return manifest_edit.revoke(text, document, step.reader, file)


def edit_build_file(step: Declare, text: str, file: str) -> Edit:
    """Return a BUILD.toml after a step, comments and layout kept.

    Raises:
        DeclarationError: if it has no such table, or the key is none of its.
    """
    try:
        parsed = tomlkit.parse(text)
    except TOMLKitError as error:
        raise DeclarationError(f"`{file}` can't be edited", facts={"why": str(error)}) from None
    table: MutableMapping[str, Any] = parsed
    for name in step.table.split("."):
        inner = table.get(name)
        if not isinstance(inner, MutableMapping):
            raise DeclarationError(f"`{file}` has no table `[{step.table}]`", facts={"step": step.name})
        table = inner
    if step.key not in table:
        raise DeclarationError(f"`[{step.table}]` has no key `{step.key}`", facts={"file": file, "step": step.name})
    if table[step.key] == step.value:
        return Edit(text, False)
    table[step.key] = step.value
    return Edit(tomlkit.dumps(parsed), True)
