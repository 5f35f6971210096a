"""Dossier manifests: the text of a dossier.toml to a validated value. Pure: files are `rules.ingest`'s work.

A folder without a manifest becomes a `Dossier` too: every file readable by everyone, versions named by content.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from gsum.rules import paths
from gsum.rules.config import NonEmpty, Section
from gsum.rules.locate import Point
from gsum.rules.nearest import suggest
from gsum.rules.toml import TomlText, decode

MANIFEST = "dossier.toml"

_UNFIT = re.compile(r"[@:/\s\x00-\x1f\x7f-\x9f]")
"""What an id or a version in a manifest may not hold: evidence ids and labels give it a meaning."""


class Reader(Section, frozen=True):
    """One reader's right to one document. The revision only ever grows."""

    granted: bool
    revision: Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]


class DocumentSection(Section, frozen=True):
    """`[[documents]]` of a manifest. `versions` maps version names to files in the dossier's folder."""

    id: NonEmpty
    active: NonEmpty
    versions: Annotated[dict[str, NonEmpty], msgspec.Meta(min_length=1)]
    withdrawn: bool = False
    readers: dict[str, Reader] = msgspec.field(default_factory=dict)


class ManifestFile(Section, frozen=True):
    """A whole dossier.toml as written."""

    schema: Literal[1]
    id: NonEmpty
    title: str
    documents: tuple[DocumentSection, ...] = ()


class Document(msgspec.Struct, frozen=True):
    """A document at its active version. `path` is relative to the dossier's folder.

    `version` is null where the content names it; `readers` is null where everyone may read.
    """

    id: str
    withdrawn: bool
    version: str | None
    path: str
    readers: dict[str, Reader] | None

    def rights(self, principal: str) -> tuple[bool, int]:
        """Return whether a principal may read the document, and at which access revision."""
        if self.readers is None:
            return True, 0
        reader = self.readers.get(principal)
        return (reader.granted, reader.revision) if reader else (False, 0)


class Dossier(msgspec.Struct, frozen=True):
    """An ordered set of documents. `manifest` is its text, to point at places; null for a plain folder."""

    source: str
    name: str
    title: str
    documents: tuple[Document, ...]
    manifest: TomlText | None = None


def parse_manifest(text: TomlText, source: str, name: str) -> Dossier:
    """Validate a manifest of the dossier in folder `name`.

    Raises:
        DeclarationError: with the place of what is wrong.
    """
    file = decode(text, ManifestFile)
    if file.id != name:
        raise text.error(
            f"the id `{file.id}` differs from the folder's name `{name}`", ("id",), hint=f'write `id = "{name}"`'
        )
    if not file.documents:
        raise text.error(f"dossier `{name}` has no documents", ("documents",), hint="add a `[[documents]]` section")
    seen: set[str] = set()
    for number, document in enumerate(file.documents):
        if document.id in seen:
            raise text.error(f"document `{document.id}` is declared twice", ("documents", number, "id"))
        seen.add(document.id)
        _check_document(text, number, document)
    documents = tuple(
        Document(entry.id, entry.withdrawn, entry.active, entry.versions[entry.active], entry.readers)
        for entry in file.documents
    )
    return Dossier(source, name, file.title, documents, text)


def plain_dossier(source: str, name: str, files: tuple[str, ...]) -> Dossier:
    """Return the dossier of a folder without a manifest, given its file names."""
    documents = tuple(Document(file, False, None, file, None) for file in sorted(files))
    return Dossier(source, name, name, documents)


def _check_document(text: TomlText, number: int, document: DocumentSection) -> None:
    at = ("documents", number)
    if _UNFIT.search(document.id) or document.id.startswith("..."):
        raise text.error(
            f"the document id `{_shown(document.id)}` holds what an id can't",
            (*at, "id"),
            hint="an id has no `@`, `:`, `/`, space or control character",
        )
    for version, path in document.versions.items():
        if not version or _UNFIT.search(version):
            raise text.error(
                f"the version `{_shown(version)}` of document `{document.id}` holds what a version can't",
                (*at, "versions", version),
                point=Point.KEY,
                hint="a version has no `@`, `:`, `/`, space or control character",
            )
        if reason := paths.refusal(path):
            raise text.error(
                f"a path of document `{document.id}` {reason}",
                (*at, "versions", version),
                hint="a path is relative to the dossier's folder and stays inside it",
            )
    if document.active not in document.versions:
        raise text.error(
            f"document `{document.id}` has no version `{_shown(document.active)}`",
            (*at, "active"),
            hint=suggest(document.active, document.versions, "its versions are"),
        )


def _shown(text: str) -> str:
    return text if text.isprintable() else ascii(text)[1:-1]
