"""An executor over one line-speaking program: one request a line, one response a line, one at a time.

It restarts the program after a crash, a timeout or a broken answer, and resends what was queued. What the lines
say is a `Dialect`'s business; how a process is driven, `process.py`'s.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from gsum.engine.executors.process import MAX_LINE_BYTES, ChildProcess, OversizedLine
from gsum.engine.executors.protocol import ExecRequest, Failed, FailureReason, Outcome

MAX_CRASHES = 3
"""Ends of the program in a row, without an answer between them, after which it is not started again."""
_CLOSE_SECONDS = 2.0
_GATHER_SECONDS = 0.01
"""What comes within this time is handed over together, so that quick answers share one commit."""


class ProtocolError(Exception):
    """A line that is not what the dialect admits; the message says what is wrong, without quoting the line."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a program can't serve: becomes the failure of every request."""

    reason: FailureReason
    message: str
    facts: dict[str, str] = {}
    hint: str | None = None

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

    def launch(self) -> tuple[Sequence[str], Mapping[str, str] | None, Path]:
        """Return arguments, environment (None: inherited) and working directory."""

    def missing(self, error: OSError) -> Refusal:
        """Explain why the program could not be started."""

    def greeting(self) -> bytes | Refusal | None:
        """Return the first line to send, None when the program expects none, or why it can't be started."""

    def greeted(self, line: bytes) -> Refusal | None:
        """Read the answer to the greeting: None when the program is ready. Raises ProtocolError."""

    def encode(self, request: ExecRequest) -> bytes:
        """Return the line that asks for a generation."""

    def decode(self, request: ExecRequest, line: bytes, seconds: float) -> Outcome:
        """Read the answer to `request`. Raises ProtocolError."""


class LineExecutor:
    """The `Executor` over a `Dialect`. `capacity`: one is generated, so many more are at hand."""

    def __init__(self, dialect: Dialect, *, reproducible: bool, network: bool, capacity: int = 2) -> None:
        self.capacity = capacity
        self._dialect = dialect
        self._reproducible = reproducible
        self._network = network
        self._queue: deque[ExecRequest] = deque()
        self._current: ExecRequest | None = None
        self._done: list[Outcome] = []
        self._child: ChildProcess | None = None
        self._greeted = False
        self._clock = 0.0  # when the current exchange began
        self._crashes = 0
        self._refusal: Refusal | None = None

    @property
    def reproducible(self) -> bool:
        """Whether equal requests must give equal token ids."""
        return self._reproducible

    @property
    def network(self) -> bool:
        """Whether the program may talk to a network."""
        return self._network

    @property
    def pid(self) -> int | None:
        """The process id of the running program."""
        return None if self._child is None else self._child.pid

    def submit(self, requests: Sequence[ExecRequest]) -> None:
        """Queue requests; the first starts the program."""
        self._queue.extend(requests)
        self._advance()

    def wait(self, timeout: float | None) -> list[Outcome]:
        """Return outcomes as soon as there is one, with those that come in the same few milliseconds.

        An empty list at the timeout or when nothing is pending.
        """
        began = time.monotonic()
        until = None if timeout is None else began + timeout
        gathered = began + _GATHER_SECONDS
        while self._queue or self._current:
            if self._done and (time.monotonic() >= gathered or timeout == 0):
                break
            self._advance()
            if self._child is None:
                continue
            self._step(self._child, gathered if self._done else until)
            if not self._done and until is not None and time.monotonic() >= until:
                break
        self._advance()  # keep the program busy while the caller looks at what is done
        done, self._done = self._done, []
        return done

    def cancel(self) -> None:
        """Kill the program; what it had already answered is kept, the rest fails as CANCELLED."""
        if self._child is not None:
            self._step(self._child, time.monotonic())
        self._drop_child()
        pending = [*([self._current] if self._current else []), *self._queue]
        self._current = None
        self._queue.clear()
        self._done.extend(Failed(r.key, FailureReason.CANCELLED, "The request was cancelled") for r in pending)

    def close(self) -> None:
        """End the program: at once if it is working, else by closing its input."""
        self._queue.clear()
        child, self._child = self._child, None
        if child is not None:
            child.finish(0.0 if self._current or not self._greeted else _CLOSE_SECONDS)
        self._current = None

    def _advance(self) -> None:
        """Start the program and hand it the next request, as far as that goes without waiting."""
        while self._queue and self._current is None:
            if self._refusal is not None:
                self._done.append(self._refusal.failed(self._queue.popleft()))
            elif self._child is None:
                self._start()
            elif self._greeted:
                self._current = self._queue.popleft()
                self._clock = time.monotonic()
                self._child.send(self._dialect.encode(self._current))
            else:
                return

    def _start(self) -> None:
        greeting = self._dialect.greeting()
        if isinstance(greeting, Refusal):
            self._refusal = greeting
            return
        argv, env, cwd = self._dialect.launch()
        try:
            self._child = ChildProcess(argv, env=env, cwd=cwd)
        except OSError as error:
            self._refusal = self._dialect.missing(error)
            return
        self._clock = time.monotonic()
        self._greeted = greeting is None
        if greeting is not None:
            self._child.send(greeting)

    def _step(self, child: ChildProcess, until: float | None) -> None:
        """Wait for one event of the program, but not past `until` nor the deadline of the exchange."""
        now = time.monotonic()
        deadline = self._clock + self._allowed()
        nearest = deadline if until is None else min(deadline, until)
        try:
            for line in child.poll(max(0.0, nearest - now)):
                self._receive(line)
        except OversizedLine:
            self._broken(child, f"a line is longer than {MAX_LINE_BYTES} bytes")
        except ProtocolError as error:
            self._broken(child, str(error))
        if self._child is child and child.ended:
            self._crashed(child)
        elif self._child is child and time.monotonic() >= deadline:
            self._timed_out(child)

    def _allowed(self) -> float:
        if self._current is not None:
            return float(self._current.timeout_seconds)
        return float(self._dialect.start_seconds)

    def _receive(self, line: bytes) -> None:
        if not self._greeted:
            self._refusal = self._dialect.greeted(line)
            self._greeted = True
            if self._refusal is not None:
                self._drop_child()
            return
        if b"\0" in line:
            raise ProtocolError("the line holds a NUL byte")
        if self._current is None:
            raise ProtocolError("a line came although nothing was asked")
        request = self._current
        outcome = self._dialect.decode(request, line, time.monotonic() - self._clock)
        self._finish(outcome)
        self._crashes = 0

    def _finish(self, outcome: Outcome) -> None:
        self._done.append(outcome)
        self._current = None

    def _fail(self, reason: FailureReason, message: str, facts: dict[str, str], hint: str | None = None) -> None:
        if self._current is not None:
            self._finish(Failed(self._current.key, reason, message, facts, hint))

    def _crashed(self, child: ChildProcess) -> None:
        how = child.end()
        facts = {"ended": how, **_stderr_fact(child)}
        hint = "the system may have run out of memory" if "SIGKILL" in how else None
        self._child = None
        self._count_crash(FailureReason.CRASH, facts)
        self._fail(FailureReason.CRASH, f"{self._dialect.name} ended without an answer", facts, hint)

    def _broken(self, child: ChildProcess, what: str) -> None:
        child.kill()
        self._child = None
        facts = {"answer": what, **_stderr_fact(child)}
        self._count_crash(FailureReason.PROTOCOL, facts)
        self._fail(FailureReason.PROTOCOL, f"{self._dialect.name} broke the protocol", facts)

    def _timed_out(self, child: ChildProcess) -> None:
        allowed = int(self._allowed())
        child.kill()
        self._child = None
        facts = {"allowed": f"{allowed} s", **_stderr_fact(child)}
        if self._current is not None:
            hint = "raise `timeout_seconds` of the toolchain if the machine is merely slow"
            self._fail(FailureReason.TIMEOUT, f"{self._dialect.name} gave no answer in time", facts, hint)
        elif not self._greeted:
            self._refusal = Refusal(FailureReason.TIMEOUT, f"{self._dialect.name} did not start in time", facts)

    def _count_crash(self, reason: FailureReason, facts: dict[str, str]) -> None:
        self._crashes += 1
        if self._crashes >= MAX_CRASHES:
            message = f"{self._dialect.name} ended {self._crashes} times in a row without an answer"
            self._refusal = Refusal(reason, message, facts)

    def _drop_child(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None


def _stderr_fact(child: ChildProcess) -> dict[str, str]:
    tail = child.stderr_tail()
    return {"stderr": tail} if tail else {}
