"""Reading labels files for audits: the I/O of `gsum.rules.gold`. Nothing but an audit package leads here."""

from __future__ import annotations

from typing import Protocol

from gsum.rules import paths
from gsum.rules.config import AuditPackage, Workspace
from gsum.rules.files import read_bytes
from gsum.rules.gold import GOLD_VERSION, GoldError, encode_gold, parse_labels, select
from gsum.rules.ingest import SourceChanged, read_survey, survey
from gsum.rules.snapshot import Scope, Snapshot
from gsum.rules.toml import DeclarationError
from gsum.store.digests import Digest, blob_digest

LABELS_SUFFIX = ".json"


class Golds(Protocol):
    """Where analysis gets the digest of a snapshot's gold."""

    def digest(self, workspace: Workspace, package: AuditPackage, taken: Snapshot) -> Digest:
        """Return the blob digest of the gold of a snapshot; raise GoldError where there is none."""


class FileGolds:
    """Digests of gold read from the labels files each time."""

    def digest(self, workspace: Workspace, package: AuditPackage, taken: Snapshot) -> Digest:
        """Read a labels file, select what the snapshot may read, and hash it."""
        return blob_digest(read_gold(workspace, package, taken))


def gold_path(workspace: Workspace, package: AuditPackage, dossier: str) -> str:
    """Return the labels file of a dossier, relative to the workspace root."""
    return paths.join(workspace.sources[package.labels].path, f"{dossier}{LABELS_SUFFIX}")


def gold_snapshot(workspace: Workspace, package: AuditPackage, taken: Snapshot, digest: Digest | None) -> Snapshot:
    """Return the snapshot that an audit expands: of its labels source, with the gold as the one document."""
    version = None if digest is None else GOLD_VERSION
    scope = Scope(taken.dossier, True, True, 0, version, digest)
    path = gold_path(workspace, package, taken.dossier)
    return Snapshot(package.labels, taken.dossier, taken.title, taken.principal, (scope,), {scope.id: path})


def read_gold(workspace: Workspace, package: AuditPackage, taken: Snapshot) -> bytes:
    """Return the gold of a snapshot as canonical JSON.

    Raises:
        GoldError: if the labels file is missing, leads out of its source, is malformed or lacks what is needed.
    """
    file = gold_path(workspace, package, taken.dossier)
    source = workspace.sources[package.labels]
    if not paths.inside(paths.real_path(workspace.root, file), paths.real_path(workspace.root, source.path)):
        raise GoldError(f"the labels file of dossier `{taken.dossier}` leads out of its source", facts={"file": file})
    try:
        data = read_bytes(workspace.root, file, source.max_bytes, "labels file")
    except DeclarationError as error:
        hint = f"write `{file}`, or leave audits out: name packages, as `//{package.targets}:...`"
        raise GoldError(
            f"there is no usable labels file for dossier `{taken.dossier}`",
            facts={"file": file, "why": error.message},
            hint=hint,
        ) from None
    fields = workspace.schemas[package.schema].fields
    return encode_gold(select(parse_labels(data, file, taken.dossier), taken.scopes, fields, file))


def read_gold_again(workspace: Workspace, package: AuditPackage, dossier: str, principal: str, digest: Digest) -> bytes:
    """Return the gold that an audit's scope names.

    Raises:
        SourceChanged: if the labels file or the dossier is no longer the one that the snapshot was taken of.
    """
    facts: dict[str, object] = {"file": gold_path(workspace, package, dossier)}
    hint = "build again: the snapshot is taken anew"
    try:
        taken = read_survey(workspace, survey(workspace, package.sources, dossier, principal))
        data = read_gold(workspace, package, taken)
    except (DeclarationError, GoldError) as error:
        facts["now"] = error.message
        raise SourceChanged(f"the gold of dossier `{dossier}` can't be read any more", facts=facts, hint=hint) from None
    if blob_digest(data) != digest:
        raise SourceChanged(f"the gold of dossier `{dossier}` changed while it was in use", facts=facts, hint=hint)
    return data
