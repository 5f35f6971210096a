"""Ingestion: dossiers and documents from the disk to snapshots and canonical texts. All I/O below the loader.

No error names or holds anything of a document's content, and an ineligible document's file is neither
opened, looked up nor resolved.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Protocol

import msgspec

from gsum.rules import paths
from gsum.rules.config import Workspace
from gsum.rules.files import decode_text, read_bytes, read_document, unreadable
from gsum.rules.labels import NAME, document_label
from gsum.rules.manifest import MANIFEST, Document, Dossier, parse_manifest, plain_dossier
from gsum.rules.places import Places
from gsum.rules.snapshot import Scope, Snapshot
from gsum.rules.toml import DeclarationError, TomlText
from gsum.store.digests import Digest, blob_digest
from gsum.store.errors import ExitCode, GsumError

MANIFEST_MAX_BYTES = 16_777_216
PLAIN_VERSION_LENGTH = 16
"""Hex digits of a content digest that name the version of a plain file."""


class SourceChanged(GsumError):
    """A document's file is no longer what the snapshot says."""

    exit_code = ExitCode.STALE


class Digests(Protocol):
    """Where a snapshot gets the digests of readable documents.

    An implementation may answer from an index for a file that `read_document` accepted before and that is
    unchanged since; it must not answer for any other.
    """

    def digest(self, path: str, max_bytes: int) -> Digest:
        """Return the blob digest of a valid document; raise DeclarationError where it is none."""


class FileDigests:
    """Digests read from the files each time."""

    def __init__(self, root: str) -> None:
        self._root = root

    def digest(self, path: str, max_bytes: int) -> Digest:
        """Read, validate and hash a document."""
        data, _ = read_document(self._root, path, max_bytes)
        return blob_digest(data)


class Surveyed(msgspec.Struct, frozen=True):
    """A document before its text is read. `version` and `path` (relative to the root) are null unless readable."""

    id: str
    active: bool
    eligible: bool
    access_revision: int
    version: str | None
    path: str | None


class Survey(msgspec.Struct, frozen=True):
    """A dossier for one principal, with rights, paths and visibility checked and no document opened."""

    source: str
    dossier: str
    title: str
    principal: str
    documents: tuple[Surveyed, ...]


def list_dossiers(workspace: Workspace, source: str) -> tuple[str, ...]:
    """Return the dossiers of a source, sorted by name: its subfolders, hidden ones skipped.

    Raises:
        DeclarationError: if the source's folder can't be listed or a folder's name can't stand in a label.
    """
    declared = workspace.sources[source]
    try:
        names = sorted(_listed(f"{workspace.root}/{declared.path}", folders=True))
    except OSError as error:
        raise unreadable(f"the folder of source `{source}` can't be listed", declared.path, error) from None
    for name in names:
        if not _fit(name):
            shown = ascii(name)[1:-1] if not name.isprintable() else name
            raise DeclarationError(
                f"the folder `{shown}` of source `{source}` can't be named in a label",
                facts={"folder": f"{declared.path}/{shown}"},
                hint="rename it: a dossier's name has no space, `/`, `:`, quote, bracket or operator, and is not `all`",
            )
    return tuple(names)


def has_dossier(workspace: Workspace, source: str, dossier: str) -> bool:
    """Whether a source has a folder of this name."""
    return _fit(dossier) and os.path.isdir(Path(workspace.root, workspace.sources[source].path, dossier))  # noqa: PTH112 - no error on long names


def load_dossier(workspace: Workspace, source: str, dossier: str, places: Places | None = None) -> Dossier:
    """Read a dossier's manifest, or list its plain folder.

    Raises:
        DeclarationError: if the manifest is wrong or the folder has no documents.
        VisibilityError: if the folder or the manifest is a link into an audit source.
    """
    places = Places(workspace) if places is None else places
    folder = paths.join(workspace.sources[source].path, dossier)
    manifest = paths.join(folder, MANIFEST)
    for path in (folder, manifest):
        places.check(path, f"//{source}:{dossier}")
    if os.path.lexists(f"{workspace.root}/{manifest}"):  # a dangling link is an error, never a plain folder
        data = read_bytes(workspace.root, manifest, MANIFEST_MAX_BYTES, "manifest")
        return parse_manifest(TomlText(manifest, decode_text(data, manifest, "manifest")), source, dossier)
    try:
        files = tuple(_listed(f"{workspace.root}/{folder}", folders=False))
    except OSError as error:
        raise unreadable(f"dossier `{dossier}` can't be listed", folder, error) from None
    if not files:
        raise DeclarationError(
            f"dossier `{dossier}` has no documents", facts={"folder": folder}, hint=f"add files or a `{MANIFEST}`"
        )
    for name in files:
        if not name.isascii() and any("\udc80" <= character <= "\udcff" for character in name):
            raise DeclarationError(
                f"dossier `{dossier}` has a file whose name is not UTF-8",
                facts={"folder": folder, "name": ascii(name)[1:-1]},
                hint="rename the file",
            )
    return plain_dossier(source, dossier, files)


def survey(workspace: Workspace, source: str, dossier: str, principal: str, places: Places | None = None) -> Survey:
    """Load a dossier for a principal and check the path of each readable document; open none.

    Raises:
        DeclarationError: on a bad manifest, or a readable document that is missing, no regular file or elsewhere.
        VisibilityError: if a readable document is a link into an audit source, or a hard link of a file there.
    """
    places = Places(workspace) if places is None else places
    loaded = load_dossier(workspace, source, dossier, places)
    surveyor = _Surveyor(workspace, loaded, principal, places)
    rows = tuple(surveyor.survey(number, document) for number, document in enumerate(loaded.documents))
    return Survey(source, dossier, loaded.title, principal, rows)


def outline(workspace: Workspace, source: str, dossier: str) -> Snapshot:
    """Return a snapshot that grants nothing: enough to list the labels of a dossier without reading a document."""
    loaded = load_dossier(workspace, source, dossier)
    scopes = tuple(Scope(document.id, not document.withdrawn, False, 0, None, None) for document in loaded.documents)
    return Snapshot(source, dossier, loaded.title, "", scopes, {})


def snapshot(
    workspace: Workspace, source: str, dossier: str, principal: str, digests: Digests | None = None
) -> Snapshot:
    """Survey a dossier and read its readable documents.

    Raises:
        DeclarationError, VisibilityError: as `survey`; and if a document is empty, too large or not UTF-8.
    """
    return read_survey(workspace, survey(workspace, source, dossier, principal), digests)


def read_survey(workspace: Workspace, surveyed: Survey, digests: Digests | None = None) -> Snapshot:
    """Return the snapshot of a survey, with the digests of its readable documents."""
    digests = digests or FileDigests(workspace.root)
    limit = workspace.sources[surveyed.source].max_bytes
    scopes: list[Scope] = []
    for row in surveyed.documents:
        text = digests.digest(row.path, limit) if row.path is not None else None
        version = text[:PLAIN_VERSION_LENGTH] if text is not None and row.version is None else row.version
        scopes.append(Scope(row.id, row.active, row.eligible, row.access_revision, version, text))
    found = {row.id: row.path for row in surveyed.documents if row.path is not None}
    return Snapshot(surveyed.source, surveyed.dossier, surveyed.title, surveyed.principal, tuple(scopes), found)


def read_text(workspace: Workspace, taken: Snapshot, document: str, places: Places | None = None) -> tuple[bytes, str]:
    """Read a readable document of a snapshot again: its exact bytes and its canonical text.

    `places` may be those of documents read before: what is read must be, byte for byte, what was surveyed.

    Raises:
        SourceChanged: if the file is no longer the one that the snapshot was taken of.
        KeyError: if the document is not readable in the snapshot.
    """
    path = taken.paths[document]
    expected = next(scope.text for scope in taken.scopes if scope.id == document)
    label = str(document_label(taken.source, taken.dossier, document))
    hint = "build again: the snapshot is taken anew"
    try:
        (places or Places(workspace)).check(path, label)
        data, text = read_document(workspace.root, path, workspace.sources[taken.source].max_bytes)
    except DeclarationError as error:
        facts = {"file": path, "now": error.message}
        raise SourceChanged(f"document `{document}` can't be read any more", facts=facts, hint=hint) from None
    if blob_digest(data) != expected:
        raise SourceChanged(f"document `{document}` changed while it was in use", facts={"file": path}, hint=hint)
    return data, text


class _Surveyor:
    """Surveys the documents of one dossier, looking at the place, kind and size of readable files alone."""

    def __init__(self, workspace: Workspace, dossier: Dossier, principal: str, places: Places) -> None:
        self._dossier = dossier
        self._principal = principal
        self._places = places
        self._source = workspace.sources[dossier.source]
        self._folder = paths.join(self._source.path, dossier.name)

    def survey(self, number: int, document: Document) -> Surveyed:
        """Return a document's rights and, only if it is readable, its version and path."""
        eligible, revision = document.rights(self._principal)
        active = not document.withdrawn
        if not (active and eligible):
            return Surveyed(document.id, active, eligible, revision, None, None)
        path = paths.join(self._folder, document.path)
        problem = self._problem(document, path)
        if problem is not None:
            raise _bad_file(self._dossier, number, document, path, *problem)
        return Surveyed(document.id, active, eligible, revision, document.version, path)

    def _problem(self, document: Document, path: str) -> tuple[str, str] | None:
        """Return what is wrong with a readable document's file, and what helps against it."""
        name = document.id
        try:
            status = self._places.look(
                path, lambda: str(document_label(self._dossier.source, self._dossier.name, name))
            )
        except DeclarationError:
            return "leads outside the workspace", "keep it inside"
        except FileNotFoundError:
            return "does not exist", f"write `{path}`"
        except OSError as error:
            return f"can't be read: {error.strerror}", "make it readable"
        if not stat.S_ISREG(status.st_mode):
            return "is no regular file", "put a file there"
        if status.st_size > self._source.max_bytes:
            admitted = f"`{self._source.name}` admits {self._source.max_bytes}"
            remedy = f"split it, or raise `max_bytes` of `[sources.{self._source.name}]`"
            return f"has {status.st_size} bytes, and {admitted}", remedy
        return None


def _bad_file(
    dossier: Dossier, number: int, document: Document, path: str, problem: str, remedy: str
) -> DeclarationError:
    message = f"the file of document `{document.id}` {problem}"
    if dossier.manifest is None or document.version is None:
        return DeclarationError(message, facts={"file": path}, hint=f"{remedy}, or remove it from the dossier's folder")
    at = ("documents", number, "versions", document.version)
    return dossier.manifest.error(message, at, hint=f"{remedy}, correct its path here, or withdraw the document")


def _listed(folder: str, *, folders: bool) -> list[str]:
    """Return the names of a folder's subfolders, or of its files: links followed, hidden ones skipped."""
    follow, plain = (os.path.isdir, os.DirEntry.is_dir) if folders else (os.path.isfile, os.DirEntry.is_file)
    with os.scandir(folder) as entries:
        return [
            entry.name
            for entry in entries
            if not entry.name.startswith(".")
            and (follow(entry.path) if entry.is_symlink() else plain(entry, follow_symlinks=False))
        ]


def _fit(name: str) -> bool:
    return NAME.fullmatch(name) is not None and name != "all" and not any("\ud800" <= c <= "\udfff" for c in name)
