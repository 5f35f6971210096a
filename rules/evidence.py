"""Evidence ids, the catalogue of what a leaf may cite, and the check of a record against a snapshot. Pure.

A record is trusted nowhere: `verify` compares it again with the scope and text of the day, character by character.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable

from gsum.rules.documents import Evidence, Line, lines
from gsum.rules.snapshot import Scope
from gsum.store.digests import Digest, blob_digest, sha256_hex

_RESERVED = frozenset("%@:")
_PLAIN = re.compile(r"[!-~]*")


@functools.lru_cache(maxsize=4)
def _digest(text: str) -> Digest:
    """Return the blob digest of a text's exact bytes; a document's records are verified one after another."""
    return blob_digest(text.encode("utf-8", "surrogatepass"))


@functools.lru_cache(maxsize=4)
def _sha256(text: str) -> str:
    return sha256_hex(text.encode("utf-8", "surrogatepass"))


def _is_escaped(char: str) -> bool:
    return char in _RESERVED or char.isspace() or unicodedata.category(char) in ("Cc", "Cs")


@functools.lru_cache(maxsize=1024)
def escape(name: str) -> str:
    """Percent-escape `%`, `@`, `:`, whitespace and control characters of a document id or version."""
    if _PLAIN.fullmatch(name) and _RESERVED.isdisjoint(name):
        return name
    return "".join(
        "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass")) if _is_escaped(char) else char
        for char in name
    )


def evidence_id(doc_id: str, version: str, start: int, end: int) -> str:
    """Return `DOC@VERSION:START:END`; distinct parts give distinct ids."""
    return f"{_escaped(doc_id, version)}:{start}:{end}"


def _escaped(doc_id: str, version: str) -> str:
    """Return the part of an evidence id that all records of a document's version share."""
    return f"{escape(doc_id)}@{escape(version)}"


def catalogue(scope: Scope, text: str, chosen: Iterable[Line] | None = None) -> tuple[Evidence, ...]:
    """Return one evidence record for each non-empty line of a readable document, or for those `chosen`, in order.

    Raises:
        ValueError: if the scope is not readable; its text must not be here then.
    """
    if not scope.readable or scope.version is None:
        raise ValueError("a document that is not readable has no evidence")
    doc_id, version = scope.id, scope.version
    of_version, text_sha256 = _escaped(doc_id, version), _sha256(text)
    return tuple(
        Evidence(
            id=f"{of_version}:{line.start}:{line.end}",
            doc_id=doc_id,
            version=version,
            start=line.start,
            end=line.end,
            quote=line.text,
            text_sha256=text_sha256,
        )
        for line in (lines(text) if chosen is None else chosen)
    )


def verify(evidence: Evidence, scope: Scope | None, text: str | None) -> str | None:
    """Return why a record does not hold against the current snapshot, or null if it holds.

    `scope` is the current scope of the document named, null if it is absent; `text` is the current text, null
    unless the document is readable. Reasons are sentences without document text.
    """
    return unfit(evidence, scope) or _text_reason(evidence, scope, text)


def unfit(evidence: Evidence, scope: Scope | None) -> str | None:
    """Return why a record can't hold in the current snapshot, as far as that is seen without the text; else null."""
    if scope is None or scope.id != evidence.doc_id:
        return f"document `{evidence.doc_id}` is not in the dossier"
    if not scope.active:
        return f"document `{evidence.doc_id}` is withdrawn"
    if not scope.eligible:
        return f"document `{evidence.doc_id}` may not be read by this principal"
    if evidence.version != scope.version:
        return f"document `{evidence.doc_id}` is at version `{scope.version}`, the record at `{evidence.version}`"
    return None


def _text_reason(evidence: Evidence, scope: Scope | None, text: str | None) -> str | None:
    """Check hashes, interval, quote and id of a record whose document may be read."""
    if scope is None or text is None:
        return f"the text of document `{evidence.doc_id}` is absent"
    if _digest(text) != scope.text:
        return f"the text of document `{scope.id}` is not the one of the snapshot"
    if _sha256(text) != evidence.text_sha256:
        return f"the record's text hash is not that of document `{scope.id}` at version `{scope.version}`"
    if not 0 <= evidence.start < evidence.end <= len(text):
        return f"the interval {evidence.start}:{evidence.end} is not inside the text of {len(text)} characters"
    if text[evidence.start : evidence.end] != evidence.quote:
        return f"the quote is not the text at {evidence.start}:{evidence.end} of document `{scope.id}`"
    if evidence.id != evidence_id(evidence.doc_id, evidence.version, evidence.start, evidence.end):
        return "the record's id does not name its document, version and interval"
    return None
