"""What a program's lines say: how it is started, what it is asked and what its answers mean. Pure; drives nothing.

`client.py` speaks a `Dialect`; `command.py` and `local.py` are the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from gsum.engine.executors.channel import Channel
from gsum.engine.executors.protocol import ExecRequest, Failed, FailureReason, Outcome
from gsum.store.digests import Key


class ProtocolError(Exception):
    """A line that is not what the dialect admits; the message says what is wrong, without quoting the line."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a program can't serve: becomes the failure of every request."""

    reason: FailureReason
    message: str
    facts: dict[str, str] = {}
    hint: str | None = None
    again: bool = False
    """Whether another program may be found if it is opened once more."""

    def failed(self, request: ExecRequest) -> Failed:
        """Return this refusal as the outcome of a request."""
        return Failed(request.key, self.reason, self.message, self.facts, self.hint)


class Dialect(Protocol):
    """How to start a program and what its lines say."""

    @property
    def name(self) -> str:
        """What to call the program in messages."""

    @property
    def start_seconds(self) -> int:
        """How long the program may take to answer its greeting."""

    def open(self) -> Channel:
        """Start the program, or find it running. Raises OSError."""

    def missing(self, error: OSError) -> Refusal:
        """Explain why the program could not be started."""

    def greeting(self) -> bytes | Refusal | None:
        """Return the first line to send, None when the program expects none, or why it can't be started."""

    def greeted(self, line: bytes) -> Refusal | None:
        """Read the answer to the greeting: None when the program is ready. Raises ProtocolError."""

    def encode(self, request: ExecRequest) -> bytes:
        """Return the line that asks for a generation."""

    def drop(self, request: ExecRequest) -> bytes | None:
        """Return the line that gives a request up, to be answered all the same; None: the program can't."""

    def decode(self, asked: Mapping[Key, ExecRequest], line: bytes, seconds: float) -> Outcome:
        """Read the answer to one of the requests in flight; `seconds`: since the last line. Raises ProtocolError."""
