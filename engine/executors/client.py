"""An executor over one line-speaking program: one request a line, one response a line, a few in flight.

It restarts the program after a crash, a timeout or a broken answer, and sends on what was queued: with half as many
in flight after a crash. What the lines say is a `Dialect`'s business; how a process is driven, `process.py`'s.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from gsum.engine.executors.channel import MAX_LINE_BYTES, Channel, OversizedLine
from gsum.engine.executors.protocol import ExecRequest, Failed, FailureReason, Outcome
from gsum.store.digests import Key

MAX_CRASHES = 3
"""Ends of the program in a row, without an answer between them, after which it is not started again."""
_CLOSE_SECONDS = 2.0
_DROP_SECONDS = 60.0
"""How long the program may take to give a request up: a pass over a long prompt is not interrupted."""
_IDLE_SECONDS = 3600.0
_SLOW = "raise `timeout_seconds` of the toolchain if the machine is merely slow"
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


class _Flight(msgspec.Struct, frozen=True):
    """A request that the program has, and when its time is over. `dropped`: its outcome is already known."""

    request: ExecRequest
    until: float
    dropped: bool = False


class LineExecutor:
    """The `Executor` over a `Dialect`. `width` requests are in flight; `capacity`: some more are at hand."""

    def __init__(
        self, dialect: Dialect, *, reproducible: bool, network: bool, capacity: int = 2, width: int = 1
    ) -> None:
        self.capacity = capacity
        self.width = width
        self._dialect = dialect
        self._reproducible = reproducible
        self._network = network
        self._queue: deque[ExecRequest] = deque()
        self._flying: dict[Key, _Flight] = {}
        self._done: list[Outcome] = []
        self._child: Channel | None = None
        self._greeted = False
        self._clock = 0.0  # when the program was started or last said something
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
        """The process id of the running program, once it is known."""
        return None if self._child is None else self._child.pid

    @property
    def running(self) -> bool:
        """Whether there is a program, starting or at work."""
        return self._child is not None

    @property
    def load(self) -> int:
        """How many requests have no outcome yet."""
        return len(self._queue) + len(self._flying)

    def fileno(self) -> int | None:
        """Return what turns readable when the program has something to say, null while there is none."""
        return None if self._child is None else self._child.fileno()

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
        while self._queue or self._wanted():
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
        """Give everything up: what had already been answered is kept, the rest fails as CANCELLED."""
        if self._child is not None:
            self._step(self._child, time.monotonic())
        pending = [*self._wanted(), *self._queue]
        self._queue.clear()
        self._drop_child()
        self._done.extend(Failed(r.key, FailureReason.CANCELLED, "the request was cancelled") for r in pending)

    def close(self) -> None:
        """End the program: at once if it is working, else by closing its input."""
        self._queue.clear()
        child, self._child = self._child, None
        if child is not None:
            child.finish(0.0 if self._flying or not self._greeted else _CLOSE_SECONDS)
        self._flying.clear()

    def _wanted(self) -> list[ExecRequest]:
        """Return the requests in flight whose outcome is not yet known."""
        return [flight.request for flight in self._flying.values() if not flight.dropped]

    def _advance(self) -> None:
        """Start the program and hand it requests, as far as that goes without waiting."""
        while self._queue and len(self._flying) < self.width:
            if self._refusal is not None:
                self._done.append(self._refusal.failed(self._queue.popleft()))
            elif self._child is None:
                self._start()
            elif self._queue[0].key in self._flying:  # asked again while the program is still giving it up
                return
            elif self._greeted:
                self._send(self._child, self._queue.popleft())
            else:
                return

    def _send(self, child: Channel, request: ExecRequest) -> None:
        now = time.monotonic()
        if not self._flying:
            self._clock = now
        self._flying[request.key] = _Flight(request, now + request.timeout_seconds)
        child.send(self._dialect.encode(request))

    def _start(self) -> None:
        greeting = self._dialect.greeting()
        if isinstance(greeting, Refusal):
            self._refusal = greeting
            return
        try:
            self._child = self._dialect.open()
        except OSError as error:
            self._refusal = self._dialect.missing(error)
            return
        self._clock = time.monotonic()
        self._greeted = greeting is None
        if greeting is not None:
            self._child.send(greeting)

    def _step(self, child: Channel, until: float | None) -> None:
        """Wait for one event of the program, but not past `until` nor the deadline of the exchange."""
        now = time.monotonic()
        deadline = self._deadline()
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

    def _deadline(self) -> float:
        if not self._greeted:
            return self._clock + self._dialect.start_seconds
        return min((flight.until for flight in self._flying.values()), default=time.monotonic() + _IDLE_SECONDS)

    def _receive(self, line: bytes) -> None:
        if not self._greeted:
            self._refusal = self._dialect.greeted(line)
            self._greeted = True
            if self._refusal is not None:
                self._drop_child()
            return
        if b"\0" in line:
            raise ProtocolError("the line holds a NUL byte")
        if not self._flying:
            raise ProtocolError("a line came although nothing was asked")
        now = time.monotonic()
        asked = {key: flight.request for key, flight in self._flying.items()}
        outcome = self._dialect.decode(asked, line, now - self._clock)
        self._clock = now
        if not self._flying.pop(outcome.key).dropped:
            self._done.append(outcome)
        self._crashes = 0

    def _fail(self, reason: FailureReason, message: str, facts: dict[str, str], hint: str | None = None) -> None:
        """Fail what is in flight."""
        self._done.extend(Failed(request.key, reason, message, facts, hint) for request in self._wanted())
        self._flying.clear()

    def _crashed(self, child: Channel) -> None:
        how = child.end()
        facts = {"ended": how, **_stderr_fact(child)}
        hint = "the system may have run out of memory" if "SIGKILL" in how else None
        self._child = None
        self._count_crash(FailureReason.CRASH, facts)
        self._fail(FailureReason.CRASH, f"{self._dialect.name} ended without an answer", facts, hint)

    def _broken(self, child: Channel, what: str) -> None:
        child.kill()
        self._child = None
        facts = {"answer": what, **_stderr_fact(child)}
        self._count_crash(FailureReason.PROTOCOL, facts)
        self._fail(FailureReason.PROTOCOL, f"{self._dialect.name} broke the protocol", facts)

    def _timed_out(self, child: Channel) -> None:
        """Fail the requests whose time is over; the program lives on if it can give them up and does so soon."""
        now = time.monotonic()
        late = [flight for flight in self._flying.values() if flight.until <= now]
        lines = [self._dialect.drop(flight.request) for flight in late]
        message, hint = f"{self._dialect.name} gave no answer in time", _SLOW
        for flight in late:
            allowed = {"allowed": f"{flight.request.timeout_seconds} s", **_stderr_fact(child)}
            if not flight.dropped:
                self._done.append(Failed(flight.request.key, FailureReason.TIMEOUT, message, allowed, hint))
            self._flying[flight.request.key] = _Flight(flight.request, now + _DROP_SECONDS, dropped=True)
        if not self._greeted:
            facts = {"allowed": f"{self._dialect.start_seconds} s", **_stderr_fact(child)}
            child.kill()
            self._child = None
            self._refusal = Refusal(FailureReason.TIMEOUT, f"{self._dialect.name} did not start in time", facts)
        elif late and (None in lines or any(flight.dropped for flight in late)):
            child.kill()
            self._child = None
            self._fail(FailureReason.CRASH, f"{self._dialect.name} hung and was ended", _stderr_fact(child))
        else:
            for line in lines:
                child.send(line or b"")

    def _count_crash(self, reason: FailureReason, facts: dict[str, str]) -> None:
        self.width = max(1, self.width // 2)
        self._crashes += 1
        if self._crashes >= MAX_CRASHES:
            message = f"{self._dialect.name} ended {self._crashes} times in a row without an answer"
            self._refusal = Refusal(reason, message, facts)

    def _drop_child(self) -> None:
        if self._child is not None:
            self._child.leave()
            self._child = None
        self._flying.clear()


def _stderr_fact(child: Channel) -> dict[str, str]:
    tail = child.stderr_tail()
    return {"stderr": tail} if tail else {}
