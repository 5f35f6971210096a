"""From parsed generations and children to results: honest statuses and exact evidence. Pure.

It knows claims and evidence records, not how a rule got them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gsum.rules.claims import Claim, Result, Status
from gsum.rules.config import SchemaSection
from gsum.rules.documents import Evidence

INELIGIBLE = Result(Status.INELIGIBLE)


def all_ineligible(children: Sequence[Result]) -> bool:
    """Whether nothing below is eligible, so that there is nothing to summarise and no model to call."""
    return all(child.status is Status.INELIGIBLE for child in children)


def child_claims(schema: SchemaSection, children: Sequence[Result]) -> tuple[Claim, ...]:
    """Return the children's claims in slot order: a reduction numbers them from 1.

    Values are put into the schema's field order: stored results come back with their members sorted.
    """
    return tuple(
        Claim({field: claim.values[field] for field in schema.fields}, claim.evidence)
        for child in children
        for claim in child.claims
    )


def records_by_id(children: Sequence[Result]) -> dict[str, Evidence]:
    """Return the evidence records of the children by id."""
    return {record.id: record for child in children for record in child.evidence}


def partial_because(children: Sequence[Result]) -> tuple[str, ...]:
    """Return which children make a valid reduction PARTIAL, by slot from 1; an INELIGIBLE one makes nobody."""
    return tuple(
        f"child {slot} is {child.status.value}"
        for slot, child in enumerate(children, 1)
        if child.status in (Status.INVALID, Status.PARTIAL)
    )


def finished(
    claims: Sequence[Claim], records: dict[str, Evidence], because: tuple[str, ...], repairs: tuple[str, ...] = ()
) -> Result:
    """Return a VALID or PARTIAL result with the records its claims cite, once each, in order of first citation."""
    cited = unique(identifier for claim in claims for identifier in claim.evidence)
    return Result(
        status=Status.PARTIAL if because else Status.VALID,
        claims=tuple(claims),
        evidence=tuple(records[identifier] for identifier in cited),
        repairs=repairs,
        partial_because=because,
    )


def invalid(diagnostic: str, repairs: tuple[str, ...]) -> Result:
    """Return the result of a generation that was refused: a diagnostic and no claims."""
    return Result(Status.INVALID, diagnostic=diagnostic, repairs=repairs)


def unique(items: Iterable[str]) -> tuple[str, ...]:
    """Return the items without repetition, in order of first appearance."""
    return tuple(dict.fromkeys(items))
