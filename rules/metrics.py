"""The measures of a summary against gold. Pure: results and gold in, counts out.

Reference validity and support are two measures and are never merged: a claim may cite a real line that says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from gsum.rules.audit import Audit, Counts, ratios
from gsum.rules.claims import Claim, Result
from gsum.rules.config import SchemaSection
from gsum.rules.documents import Evidence
from gsum.rules.evidence import evidence_id
from gsum.rules.facts import read_fact
from gsum.rules.gold import Gold, GoldDocument

Fact = tuple[str, ...]
"""The values of a claim in the schema's field order."""


def audit(result: Result, gold: Gold, schema: SchemaSection) -> Audit:
    """Audit a summary: counts, and ratios of the counts."""
    counts = count(result, gold, schema)
    return Audit(
        dossier=gold.dossier,
        split=gold.split,
        summary=result.status.value,
        counts=counts,
        unsupported=counts.unsupported,
        duplicates=counts.duplicates,
        ratios=ratios(counts),
    )


def count(result: Result, gold: Gold, schema: SchemaSection) -> Counts:
    """Count one summary's claims.

    - reference-valid: every reference of the claim is valid (`reference_is_valid`) and there is at least one
    - supported: reference-valid, and one cited quote as a whole states exactly the claim's values
    - predicted: |distinct claims|; correct: |distinct claims ∩ gold|; expected: |gold|
    """
    documents = {document.document: document for document in gold.documents}
    records = {record.id: record for record in result.evidence}
    validity = [
        [reference_is_valid(records.get(cited), documents) for cited in claim.evidence] for claim in result.claims
    ]
    valid = [bool(marks) and all(marks) for marks in validity]
    pairs = list(zip(result.claims, valid, strict=True))
    predicted = {fact_of(claim, schema) for claim in result.claims}
    expected = gold_facts(gold, schema)
    return Counts(
        claims=len(result.claims),
        references=sum(map(len, validity)),
        valid_references=sum(map(sum, validity)),
        reference_valid=sum(valid),
        supported=None
        if schema.fact_pattern is None
        else sum(ok and states(claim, records, schema) for claim, ok in pairs),
        predicted=len(predicted),
        correct=len(predicted & expected),
        expected=len(expected),
    )


def reference_is_valid(record: Evidence | None, documents: Mapping[str, GoldDocument]) -> bool:
    """Whether a reference resolves to an interval of an eligible document at its active version and exact text.

    No text is at hand here, so of the quote only the length is checked: its characters were cut from the text when the
    record was made, and `rules.evidence` compares them with it whenever a claim is shown.
    """
    document = None if record is None else documents.get(record.doc_id)
    if record is None or document is None:
        return False
    if (record.version, record.text_sha256) != (document.version, document.text_sha256):
        return False
    if not 0 <= record.start < record.end or len(record.quote) != record.end - record.start:
        return False
    return record.id == evidence_id(record.doc_id, record.version, record.start, record.end)


def states(claim: Claim, records: Mapping[str, Evidence], schema: SchemaSection) -> bool:
    """Whether one cited quote is, as a whole, a fact line with exactly the claim's values."""
    wanted = fact_of(claim, schema)
    for cited in claim.evidence:
        found = read_fact(schema, records[cited].quote) if cited in records else None
        if found is not None and tuple(found[field] for field in schema.fields) == wanted:
            return True
    return False


def fact_of(claim: Claim, schema: SchemaSection) -> Fact:
    """Return a claim's values in the schema's field order."""
    return tuple(claim.values[field] for field in schema.fields)


def gold_facts(gold: Gold, schema: SchemaSection) -> frozenset[Fact]:
    """Return the distinct facts of gold."""
    return frozenset(
        tuple(fact[field] for field in schema.fields) for document in gold.documents for fact in document.facts
    )
