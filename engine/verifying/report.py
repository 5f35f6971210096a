"""What a verification was asked, what it says while it runs, and what it found. Pure; holds no text."""

from __future__ import annotations

import enum

import msgspec

from gsum.engine.events import Event
from gsum.engine.verifying.plan import Divergence, Stored
from gsum.store.digests import Digest, Key

EVENT_SCHEMA = 1


class VerifyOptions(msgspec.Struct, frozen=True):
    """How much to ask. `sample` null: every stored request; `opaque`: also toolchains that promise nothing."""

    patterns: tuple[str, ...]
    sample: int | None
    seed: int
    rounds: int
    opaque: bool


class VerifyStatus(enum.Enum):
    """How a verification ended."""

    OK = "ok"
    DIFFERS = "differs"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class Finding(msgspec.Struct, frozen=True):
    """An output that is not the stored one, and whom it was asked together with: keys, its own included."""

    stored: Stored
    round: int
    batch: tuple[Key, ...]
    second: Digest
    divergence: Divergence
    promised: bool
    """Whether the toolchain is one whose answers must not differ."""


class Failure(msgspec.Struct, frozen=True):
    """A request that gave no output."""

    stored: Stored
    round: int
    reason: str
    message: str
    exit_code: int
    facts: dict[str, str]
    hint: str | None


class RoundReport(msgspec.Struct, frozen=True):
    """A round of one toolchain that was asked to its end."""

    toolchain: str
    number: int
    widths: tuple[int, ...]
    executions: int
    same: int


class VerifyReport(msgspec.Struct, frozen=True):
    """What a verification did. executions = same + differing; `stored` counts the requests it could have asked."""

    invocation: str
    status: VerifyStatus
    exit_code: int
    stored: int
    requests: int
    not_built: int
    """Targets of a model that have no current result."""
    left_out: int
    """Requests of toolchains that promise nothing, which were not asked."""
    executions: int
    same: int
    rounds: tuple[RoundReport, ...]
    differing: tuple[Finding, ...]
    failures: tuple[Failure, ...]
    new_tokens: int
    seconds: float


class VerifyStarted(Event, frozen=True):
    """What will be asked, how often."""

    invocation: str
    patterns: tuple[str, ...]
    requests: int
    rounds: int
    seed: int
    schema: int = EVENT_SCHEMA


class RequestVerified(Event, frozen=True):
    """A request was generated again. `label`: the first target it was made for; `width`: asked together with."""

    label: str
    request: Key
    round: int
    width: int
    same: bool
    token: int | None
    seconds: float
    new_tokens: int


class RequestFailed(Event, frozen=True):
    """A request gave no output."""

    label: str
    request: Key
    round: int
    reason: str
    message: str


class RoundFinished(Event, frozen=True):
    """A toolchain's round was asked to its end."""

    toolchain: str
    round: int
    widths: tuple[int, ...]
    executions: int
    same: int


class VerifyFinished(Event, frozen=True):
    """The verification ended."""

    invocation: str
    status: str
    exit_code: int
    seconds: float
