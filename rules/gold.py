"""Gold labels: a labels file to the facts of what one snapshot may read. Pure; reading files is `gold_files`' work.

Only audits use this. No error quotes a label. What is selected depends on eligible documents and active versions alone,
so an audit's key tells nothing of gold that the principal may not see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from gsum.rules.snapshot import Scope
from gsum.store.canonical import canonical_json
from gsum.store.errors import ExitCode, GsumError

GOLD_SCHEMA = 1
GOLD_VERSION = "gold"
"""What the scope of an audit says in place of a document's version."""

_ALIASES = {"subject": "product"}
"""What a labels file of schema 1 calls a field of the claims."""


class GoldError(GsumError):
    """A labels file can't be used, or lacks gold that an audit needs."""

    exit_code = ExitCode.DECLARATION


class VersionLabels(msgspec.Struct, frozen=True):
    """The facts of one version of a document. `text_sha256` says of which exact text."""

    version: str
    text_sha256: str
    facts: tuple[dict[str, Any], ...]


class DocumentLabels(msgspec.Struct, frozen=True):
    """The labels of one document."""

    document: str
    versions: tuple[VersionLabels, ...]


class LabelsFile(msgspec.Struct, frozen=True):
    """A labels file as written; keys that no audit needs are passed over."""

    schema: Literal[1]
    dossier: str
    split: str
    documents: tuple[DocumentLabels, ...]


class GoldDocument(msgspec.Struct, frozen=True):
    """The gold of an eligible document at its active version: distinct facts, in the order of the file."""

    document: str
    version: str
    text_sha256: str
    facts: tuple[dict[str, str], ...]


class Gold(msgspec.Struct, frozen=True):
    """The gold of a snapshot: what an audit reads, and by its canonical JSON what its key depends on."""

    dossier: str
    split: str
    documents: tuple[GoldDocument, ...]
    schema: int = GOLD_SCHEMA


_LABELS = msgspec.json.Decoder(LabelsFile)
_GOLD = msgspec.json.Decoder(Gold)


def parse_labels(data: bytes, file: str, dossier: str) -> LabelsFile:
    """Decode and check a labels file.

    Raises:
        GoldError: if it is malformed, of another dossier, or names a document or version twice.
    """
    try:
        labels = _LABELS.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = str(error) if isinstance(error, msgspec.ValidationError) else "it is not JSON"
        raise _error(f"the labels file of dossier `{dossier}` can't be read", file, why) from None
    if labels.dossier != dossier:
        raise _error(f"a labels file names dossier `{labels.dossier}` and stands where `{dossier}` is expected", file)
    for name in _repeated([document.document for document in labels.documents]):
        raise _error(f"document `{name}` is labelled twice", file)
    for document in labels.documents:
        for name in _repeated([version.version for version in document.versions]):
            raise _error(f"version `{name}` of document `{document.document}` is labelled twice", file)
    return labels


def select(labels: LabelsFile, scopes: Sequence[Scope], fields: Sequence[str], file: str) -> Gold:
    """Return the gold of what a snapshot may read, in slot order.

    Raises:
        GoldError: naming the readable document or version for which there is no gold, or a fact without a field.
    """
    by_document = {document.document: document for document in labels.documents}
    documents = []
    for scope in scopes:
        if not scope.readable:
            continue
        labelled = by_document.get(scope.id)
        if labelled is None:
            raise _error(f"the labels file misses document `{scope.id}`", file)
        found = [version for version in labelled.versions if version.version == scope.version]
        if not found:
            raise _error(f"the labels file misses version `{scope.version}` of document `{scope.id}`", file)
        documents.append(_document(scope.id, found[0], fields, file))
    return Gold(labels.dossier, labels.split, tuple(documents))


def encode_gold(gold: Gold) -> bytes:
    """Return the canonical JSON of gold."""
    return canonical_json(gold)


def decode_gold(text: str) -> Gold:
    """Decode what `encode_gold` wrote."""
    return _GOLD.decode(text)


def _document(name: str, labels: VersionLabels, fields: Sequence[str], file: str) -> GoldDocument:
    facts: dict[tuple[str, ...], dict[str, str]] = {}
    for number, fact in enumerate(labels.facts, 1):
        given = {field: fact.get(field, fact.get(_ALIASES.get(field, field))) for field in fields}
        values = {field: value for field, value in given.items() if isinstance(value, str)}
        if len(values) < len(fields):
            raise _error(f"fact {number} of document `{name}` does not give every field of the schema", file)
        facts.setdefault(tuple(values.values()), values)
    return GoldDocument(name, labels.version, labels.text_sha256, tuple(facts.values()))


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for place, name in enumerate(names) if name in names[:place]]


def _error(message: str, file: str, why: str | None = None) -> GoldError:
    facts = {"file": file} if why is None else {"file": file, "why": why}
    return GoldError(message, facts=facts, hint="correct the labels file, or leave audits out: name other packages")
