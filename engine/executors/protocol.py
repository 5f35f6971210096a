"""What an executor is: requests in, outcome values out. Pure.

A failed request is a value, not an exception. Nothing here knows the scheduler, the store or a model.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Protocol

import msgspec

from gsum.rules.requests import Message, Request
from gsum.store.digests import Key
from gsum.store.errors import ExitCode
from gsum.store.records import Generation


class ExecRequest(msgspec.Struct, frozen=True):
    """A request to generate, its key, and how long it may take. The timeout decides only whether, never what."""

    key: Key
    request: Request
    timeout_seconds: int
    draft: tuple[int, ...] = ()
    """Token ids of an answer that the new one may resemble: an executor may use them to be quicker, no more."""
    then: tuple[Message, ...] = ()
    """What the requests begin with that will read this answer, where that differs from this one's: another hint."""


class FailureReason(enum.Enum):
    """Why an action yielded no result; `SOURCE_CHANGED` comes from no executor."""

    CRASH = "crash"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    OVER_BUDGET = "over_budget"
    MODEL_MISSING = "model_missing"
    MISMATCH = "mismatch"
    PROTOCOL = "protocol"
    ERROR = "error"
    CANCELLED = "cancelled"
    SOURCE_CHANGED = "source_changed"


_EXIT_CODES = {
    FailureReason.MODEL_MISSING: ExitCode.TOOLCHAIN,
    FailureReason.MISMATCH: ExitCode.TOOLCHAIN,
    FailureReason.CANCELLED: ExitCode.INTERRUPTED,
    FailureReason.SOURCE_CHANGED: ExitCode.STALE,
}


class Failed(msgspec.Struct, frozen=True):
    """A request without a generation. `message`, `facts` and `hint` are rendered as those of a `GsumError`."""

    key: Key
    reason: FailureReason
    message: str
    facts: dict[str, str] = {}
    hint: str | None = None

    @property
    def exit_code(self) -> ExitCode:
        """The exit code a build ends with when all its failures have this one; different ones make it 1."""
        return _EXIT_CODES.get(self.reason, ExitCode.ACTION_FAILED)


class Generated(msgspec.Struct, frozen=True):
    """A generation and how it was made. Tokens: new = forced + sampled; prompt = prefilled + reused.

    An answer that its grammar forces as a whole needs no model: nothing is prefilled.

    An executor that does not know a count says 0.
    """

    key: Key
    generation: Generation
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
    """How many of the sampled tokens a draft foretold, so that they cost no pass of their own."""


Outcome = Generated | Failed


class WorkerNotice(msgspec.Struct, frozen=True):
    """A model's worker was started, or found running (`warm`), or is ready: `seconds` after that, else null.

    `worker` counts those of one toolchain from 0.
    """

    toolchain: str
    worker: int
    warm: bool
    seconds: float | None = None


class Executor(Protocol):
    """Runs requests. Used by one thread.

    Obligations: exactly one outcome per submitted request, in any order; nothing is started before the first
    `submit`; a failure to start fails the requests; equal requests give equal tokens where `reproducible`.
    """

    @property
    def reproducible(self) -> bool:
        """Whether equal requests must give equal token ids."""

    @property
    def network(self) -> bool:
        """Whether the executor may talk to a network."""

    @property
    def capacity(self) -> int:
        """How many requests it wants to have at a time: submitting more is allowed and gains nothing."""

    def submit(self, requests: Sequence[ExecRequest]) -> None:
        """Take requests whose keys are not pending. Returns without waiting for a generation."""

    def wait(self, timeout: float | None) -> list[Outcome]:
        """Return outcomes as soon as there is one; an empty list at the timeout, or when nothing is pending."""

    def cancel(self) -> None:
        """Give up at once all that is pending: what has already finished is kept, the rest fails as CANCELLED."""

    def close(self) -> None:
        """Release processes and devices; pending requests are dropped. Idempotent."""
