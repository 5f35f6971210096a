"""The records that are stored: generations, observations, action-cache entries, invocations. Pure.

Each carries a schema version. Times are ISO 8601 UTC strings, durations seconds.
"""

from __future__ import annotations

import enum

import msgspec

from gsum.store.digests import Digest, Key
from gsum.store.label_runs import LabelRun, count_labels, unpack_labels

GENERATION_SCHEMA = 1
OBSERVATION_SCHEMA = 1
ENTRY_SCHEMA = 1
INVOCATION_SCHEMA = 2
"""2: labels in runs; a record of schema 1, which has them in full, is still read."""


class StopReason(enum.Enum):
    """Why a generation ended."""

    EOS = "eos"
    GRAMMAR = "grammar"
    LENGTH = "length"


class Generation(msgspec.Struct, frozen=True):
    """The output of a request, content-addressed: nothing in it depends on when or where it was made."""

    token_ids: tuple[int, ...]
    text: str
    stop: StopReason
    schema: int = GENERATION_SCHEMA


class Observation(msgspec.Struct, frozen=True):
    """One execution of a request. Token counts: prompt = prefilled + reused; generated = forced + sampled.

    `drafted` of the sampled ones were foretold by a draft.
    """

    request: Key
    generation: Digest
    invocation: str
    started: str
    seconds: float
    device: str
    dtype: str
    versions: dict[str, str]
    settings: dict[str, str | int | bool | None]
    prompt_tokens: int
    prefilled: int
    reused: int
    forced: int
    sampled: int
    drafted: int = 0
    schema: int = OBSERVATION_SCHEMA


class How(enum.Enum):
    """How an action was finished when its entry was made."""

    GENERATED = "generated"
    CUT_OFF = "cut_off"
    INELIGIBLE = "ineligible"
    PURE = "pure"


class ActionEntry(msgspec.Struct, frozen=True):
    """An action-cache entry. `result` is a blob, `status` its status; no model needed: no request, no generation."""

    key: Key
    label: str
    result: Digest
    request: Key | None
    generation: Digest | None
    sources: tuple[Digest, ...]
    how: How
    status: str
    invocation: str
    created: str
    schema: int = ENTRY_SCHEMA


class TargetRef(msgspec.Struct, frozen=True):
    """What a label was built as: one row per (label, principal, toolchain name, key), newest last."""

    label: str
    principal: str
    toolchain: str
    key: Key
    invocation: str
    created: str


class InvocationStatus(enum.Enum):
    """How an invocation ended; RUNNING stays when it was killed."""

    RUNNING = "running"
    OK = "ok"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class InvocationRecord(msgspec.Struct, frozen=True):
    """The record of one `gsum build`: what was asked, how it ended, what ran."""

    id: str
    started: str
    patterns: tuple[str, ...]
    principal: str
    toolchain: str
    full: bool
    version: str
    status: InvocationStatus = InvocationStatus.RUNNING
    exit_code: int | None = None
    seconds: float | None = None
    targets: int = 0
    cached: int = 0
    runs: dict[str, tuple[LabelRun, ...]] = {}
    """Labels by outcome: recomputed, generated, cut_off, ineligible, pure, failed, skipped, invalid."""
    new_tokens: int = 0
    lists: dict[str, tuple[str, ...]] = {}
    """The same as schema 1 kept them."""
    schema: int = INVOCATION_SCHEMA

    def labels(self, outcome: str) -> tuple[str, ...]:
        """Return the labels of an outcome, in order."""
        return self.lists.get(outcome, ()) or unpack_labels(self.runs.get(outcome, ()))

    def count(self, outcome: str) -> int:
        """Return how many labels an outcome has, without making them."""
        return len(self.lists.get(outcome, ())) or count_labels(self.runs.get(outcome, ()))
