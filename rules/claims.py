"""Claims, statuses and results: what an action yields. Pure."""

from __future__ import annotations

import enum

import msgspec
from msgspec import UNSET, UnsetType

from gsum.rules.audit import Audit
from gsum.rules.documents import Evidence

RESULT_SCHEMA = 1


class Status(enum.Enum):
    """The status of a result."""

    VALID = "VALID"
    PARTIAL = "PARTIAL"
    INVALID = "INVALID"
    INELIGIBLE = "INELIGIBLE"


class Claim(msgspec.Struct, frozen=True):
    """One claim: the schema's fields in declared order, and the ids of the evidence records that it cites."""

    values: dict[str, str]
    evidence: tuple[str, ...]


class Result(msgspec.Struct, frozen=True):
    """What an action yields. `evidence` holds the records the claims cite, once each, in order of first citation."""

    status: Status
    claims: tuple[Claim, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    diagnostic: str | None = None
    """Why INVALID (never any document text)."""
    repairs: tuple[str, ...] = ()
    partial_because: tuple[str, ...] = ()
    """For PARTIAL: the slots (from 1) of the children that were INVALID or PARTIAL, as `child 2 is INVALID`."""
    audit: Audit | UnsetType = UNSET
    """The counts of an audit, whose result has no claims; absent in all other results."""
    schema: int = RESULT_SCHEMA
