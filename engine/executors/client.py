"""An executor over one line-speaking program: one request a line, one response a line, a few in flight.

It restarts the program after a crash, a timeout or a broken answer, and sends on what was queued: with half as many
in flight after a crash, or with one where a `Pace` sets how many. What the lines say is a `Dialect`'s business; how a
process is driven, `process.py`'s.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

import msgspec

from gsum.engine.executors.channel import MAX_LINE_BYTES, Channel, OversizedLine
from gsum.engine.executors.dialect import Dialect, ProtocolError, Refusal
from gsum.engine.executors.pace import Pace
from gsum.engine.executors.protocol import ExecRequest, Failed, FailureReason, Outcome
from gsum.store.digests import Key

MAX_CRASHES = 3
"""Ends of the program in a row, without an answer between them, after which it is not started again."""
_AT_HAND = 8
_CLOSE_SECONDS = 2.0
_DROP_SECONDS = 60.0
"""How long the program may take to give a request up: a pass over a long prompt is not interrupted."""
_IDLE_SECONDS = 3600.0
_SLOW = "raise `timeout_seconds` of the toolchain if the machine is merely slow"
_GATHER_SECONDS = 0.01
"""What comes within this time is handed over together, so that quick answers share one commit."""
_MANY = 16
"""Requests in flight from which on answers are not waited for one by one."""


class _Flight(msgspec.Struct, frozen=True):
    """A request that the program has, and when its time is over. `dropped`: its outcome is already known."""

    request: ExecRequest
    until: float
    dropped: bool = False


class LineExecutor:
    """The `Executor` over a `Dialect`. `width` requests are in flight; `capacity`: some more are at hand.

    With a `pace` both follow the program's speed. It must then take requests in order, one after the other: what it
    had and did not answer when it fails is asked for once more.
    """

    def __init__(
        self,
        dialect: Dialect,
        *,
        reproducible: bool,
        network: bool,
        capacity: int = 2,
        width: int = 1,
        pace: Pace | None = None,
    ) -> None:
        self._capacity = capacity
        self.width = width
        self._pace = pace
        self._dialect = dialect
        self._reproducible = reproducible
        self._network = network
        self._queue: deque[ExecRequest] = deque()
        self._flying: dict[Key, _Flight] = {}
        self._asked: dict[Key, ExecRequest] = {}
        self._done: list[Outcome] = []
        self._child: Channel | None = None
        self._greeted = False
        self._reopened = False
        self._clock = 0.0  # when the program was started or last said something
        self._crashes = 0
        self._refusal: Refusal | None = None

    @property
    def capacity(self) -> int:
        """How many requests it wants to have: those in flight, and enough for the time that a commit takes."""
        return self._capacity if self._pace is None else _AT_HAND + 3 * self.width

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
    def ready(self) -> bool:
        """Whether the program has come up and is given requests at once."""
        return self._child is not None and self._greeted

    @property
    def refused(self) -> bool:
        """Whether the program can't serve: every request fails."""
        return self._refusal is not None

    @property
    def load(self) -> int:
        """How many requests have no outcome yet."""
        return len(self._queue) + len(self._flying)

    def fileno(self) -> int | None:
        """Return what turns readable when the program has something to say, null while there is none."""
        return None if self._child is None else self._child.fileno()

    def give_back(self, most: int) -> list[ExecRequest]:
        """Return, and forget, up to so many requests that a program still starting was to get, the last ones first."""
        count = 0 if self.ready or self.refused else min(most, len(self._queue))
        return [self._queue.pop() for _ in range(count)]

    def submit(self, requests: Sequence[ExecRequest]) -> None:
        """Queue requests; the first starts the program."""
        self._queue.extend(requests)
        self._advance()

    def wait(self, timeout: float | None) -> list[Outcome]:
        """Return outcomes as soon as there is one, with those that come in the same few milliseconds.

        An empty list at the timeout or when nothing is pending; then, too, it looks once what the program has to say.
        """
        began = time.monotonic()
        if self._child is not None and not (self._queue or self._wanted()):
            self._step(self._child, began)  # it died, or has given up what was dropped
        until = None if timeout is None else began + timeout
        gathered = began + _GATHER_SECONDS
        while self._queue or self._wanted():
            if self._done and (time.monotonic() >= gathered or timeout == 0 or self._enough()):
                break
            self._advance()
            if self._child is None:
                continue
            if self._done and len(self._flying) >= _MANY:
                time.sleep(max(0.0, gathered - time.monotonic()))
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
        self._land()

    def _wanted(self) -> list[ExecRequest]:
        """Return the requests in flight whose outcome is not yet known."""
        return [flight.request for flight in self._flying.values() if not flight.dropped]

    def _enough(self) -> bool:
        """Whether so much of what a quick program had is answered that it would soon have nothing to do."""
        return len(self._done) >= _MANY and len(self._done) >= len(self._flying)

    def _advance(self) -> None:
        """Start the program and hand it requests, as far as that goes without waiting."""
        if self._queue and self._child is not None and self._greeted and not self._wanted():
            self._step(self._child, time.monotonic())  # it may have died meanwhile
        lines: list[bytes] = []
        while self._queue and len(self._flying) < self.width:
            if self._refusal is not None:
                self._done.append(self._refusal.failed(self._queue.popleft()))
            elif self._child is None:
                self._start()
            elif self._queue[0].key in self._flying:  # asked again while the program is still giving it up
                break
            elif self._greeted:
                lines.append(self._fly(self._queue.popleft()))
            else:
                break
        if lines and self._child is not None:
            self._child.send(b"\n".join(lines))  # several lines at once are as good as one

    def _fly(self, request: ExecRequest) -> bytes:
        """Note that a request is in flight, and return its line."""
        now = time.monotonic()
        if not self._flying:
            self._clock = now
        self._flying[request.key] = _Flight(request, now + request.timeout_seconds)
        self._asked[request.key] = request
        return self._dialect.encode(request)

    def _land(self) -> None:
        """Forget all that is in flight."""
        self._flying.clear()
        self._asked.clear()

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
            since, before = self._clock, len(self._done)
            lines = child.poll(max(0.0, nearest - now))
            for line in lines:
                self._receive(line)
            if self._pace is not None and len(self._done) > before:
                self._pace.answered(len(self._done) - before, self._clock - since, dry=not self._flying)
                self.width = self._pace.width
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
        oldest = next(iter(self._flying.values()), None)
        if oldest is None:
            return time.monotonic() + _IDLE_SECONDS
        if self._pace is not None:  # it works on the oldest, since its last answer
            return self._clock + oldest.request.timeout_seconds
        return min(flight.until for flight in self._flying.values())

    def _receive(self, line: bytes) -> None:
        if not self._greeted:
            refusal = self._dialect.greeted(line)
            if refusal is not None and refusal.again and not self._reopened:
                self._reopened = True
                self._drop_child()
                return
            self._reopened = False
            self._refusal = refusal
            self._greeted = True
            if self._refusal is not None:
                self._drop_child()
            return
        if b"\0" in line:
            raise ProtocolError("the line holds a NUL byte")
        if not self._flying:
            raise ProtocolError("a line came although nothing was asked")
        now = time.monotonic()
        outcome = self._dialect.decode(self._asked, line, now - self._clock)
        self._clock = now
        del self._asked[outcome.key]
        if not self._flying.pop(outcome.key).dropped:
            self._done.append(outcome)
        self._crashes = 0

    def _fail(self, reason: FailureReason, message: str, facts: dict[str, str], hint: str | None = None) -> None:
        """Fail what is in flight; of several that a quick program had none is known to be at fault: ask again."""
        wanted = self._wanted()
        self._land()
        if self._pace is not None and len(wanted) > 1:
            self._queue.extendleft(reversed(wanted))
            return
        self._done.extend(Failed(request.key, reason, message, facts, hint) for request in wanted)

    def _crashed(self, child: Channel) -> None:
        how = child.end()
        facts = {"ended": how, **_stderr_fact(child)}
        hint = "the system may have run out of memory" if "SIGKILL" in how else None
        self._child = None
        if self._flying or not self._greeted:
            self._stumble()
        self._count_end(FailureReason.CRASH, facts)
        self._fail(FailureReason.CRASH, f"{self._dialect.name} ended without an answer", facts, hint)

    def _broken(self, child: Channel, what: str) -> None:
        child.kill()
        self._child = None
        facts = {"answer": what, **_stderr_fact(child)}
        self._stumble()
        self._count_end(FailureReason.PROTOCOL, facts)
        self._fail(FailureReason.PROTOCOL, f"{self._dialect.name} broke the protocol", facts)

    def _timed_out(self, child: Channel) -> None:
        """Fail the requests whose time is over; the program lives on if it can give them up and does so soon."""
        now = time.monotonic()
        if self._pace is not None and self._greeted:
            self._give_up_oldest(child)
            return
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

    def _give_up_oldest(self, child: Channel) -> None:
        """End a program that works through its requests in order, and fail the one it hangs at."""
        first, *others = self._wanted()
        allowed = {"allowed": f"{first.timeout_seconds} s", **_stderr_fact(child)}
        child.kill()
        self._child = None
        self._land()
        self._queue.extendleft(reversed(others))
        self._stumble()
        message = f"{self._dialect.name} gave no answer in time"
        self._done.append(Failed(first.key, FailureReason.TIMEOUT, message, allowed, _SLOW))

    def _stumble(self) -> None:
        if self._pace is not None:
            self._pace.stumbled()
        self.width = max(1, self.width // 2) if self._pace is None else 1

    def _count_end(self, reason: FailureReason, facts: dict[str, str]) -> None:
        self._crashes += 1
        if self._crashes >= MAX_CRASHES:
            message = f"{self._dialect.name} ended {self._crashes} times in a row without an answer"
            self._refusal = Refusal(reason, message, facts)

    def _drop_child(self) -> None:
        if self._child is not None:
            self._child.leave()
            self._child = None
        self._land()


def _stderr_fact(child: Channel) -> dict[str, str]:
    tail = child.stderr_tail()
    return {"stderr": tail} if tail else {}
