"""Several workers as one executor: each request goes to the worker with the least at hand.

A further worker is used only when there is more to do than those at work can do at a time, or when it is warm already.
What happens to one worker fails its own requests alone. Knows neither processes nor models.
"""

from __future__ import annotations

import selectors
import time
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from gsum.engine.executors.client import LineExecutor
from gsum.engine.executors.protocol import ExecRequest, Failed, FailureReason, Outcome
from gsum.store.digests import Key

_POLL_SECONDS = 0.25
"""How often deadlines are looked at while nothing arrives."""
_PREFIX_COST = 1
"""To prefill a prefix takes about as long as to answer one request."""
_FOR_ALL = (FailureReason.MISMATCH, FailureReason.MODEL_MISSING)
"""Why a worker can't serve when no other can either."""


class Member(msgspec.Struct, frozen=True):
    """A worker's executor, and whether the worker runs already, before it is used."""

    executor: LineExecutor
    is_there: Callable[[], bool]


class PoolExecutor:
    """The `Executor` over several workers of one toolchain."""

    def __init__(self, members: Sequence[Member], *, jobs: int | None = None) -> None:
        self._members = list(members)
        self._executors = [member.executor for member in members]
        self._jobs = jobs
        first = self._executors[0]
        self.reproducible, self.network = first.reproducible, first.network
        self._queue: deque[ExecRequest] = deque()
        self._given: dict[Key, tuple[ExecRequest, LineExecutor]] = {}
        self._done: list[Outcome] = []
        self._used: list[LineExecutor] | None = None
        self._served: set[int] = set()
        self._only: LineExecutor | None = None
        """The worker that said why none can serve."""
        self._prefixes: dict[int, set[int]] = {id(executor): set() for executor in self._executors}

    @property
    def capacity(self) -> int:
        """How many requests it wants to have at a time."""
        most = sum(executor.capacity for executor in self._executors)
        return most if self._jobs is None else min(most, self._jobs)

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers in use, as far as they are known."""
        return [executor.pid for executor in self._executors if executor.pid is not None]

    def submit(self, requests: Sequence[ExecRequest]) -> None:
        """Queue requests, and start as many workers as they need."""
        self._queue.extend(requests)
        self._dispatch()

    def wait(self, timeout: float | None) -> list[Outcome]:
        """Return outcomes as soon as there is one; an empty list at the timeout or when nothing is pending."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            self._dispatch()
            for executor in self._executors:
                self._done += self._settled(executor, executor.wait(0))
            if self._done or not (self._queue or self._given):
                break
            left = _POLL_SECONDS if until is None else min(_POLL_SECONDS, until - time.monotonic())
            if left <= 0:
                break
            self._listen(left)
        self._dispatch()  # keep the workers busy while the caller looks at what is done
        done, self._done = self._done, []
        return done

    def cancel(self) -> None:
        """Give everything up: what had already been answered is kept, the rest fails as CANCELLED."""
        for executor in self._executors:
            executor.cancel()
            self._done += self._settled(executor, executor.wait(0))
        self._done += [Failed(r.key, FailureReason.CANCELLED, "the request was cancelled") for r in self._queue]
        self._queue.clear()

    def close(self) -> None:
        """Let go of all workers."""
        self._queue.clear()
        self._given.clear()
        for executor in self._executors:
            executor.close()

    def _dispatch(self) -> None:
        """Hand out what is queued, as far as there are places: first to workers that have come up."""
        self._take_back()
        while self._queue:
            free = [executor for executor in self._workers() if executor.load < executor.width]
            places = [executor for executor in free if executor.ready] or free
            room = self._jobs is None or len(self._given) < self._jobs
            if not places or not room:
                return
            request = self._queue.popleft()
            prefix = hash(request.request.messages[: request.request.shared])
            chosen = min(places, key=lambda executor: self._cost(executor, prefix))
            self._prefixes[id(chosen)].add(prefix)
            self._given[request.key] = (request, chosen)
            chosen.submit([request])

    def _take_back(self) -> None:
        """Queue again half of what workers that are still starting were to get, while others have nothing to do.

        Not more: one that comes up a moment later would find nothing, and those that are up do not get faster.
        """
        used = [] if self._queue or self._used is None else self._used
        if not any(executor.ready and not executor.load for executor in used):
            return
        for executor in used:
            for request in executor.give_back(-(-executor.load // 2)):
                del self._given[request.key]
                self._queue.appendleft(request)

    def _cost(self, executor: LineExecutor, prefix: int) -> int:
        """Return how many requests stand before a further one, its prefix counted where it is not known to be there."""
        return executor.load + (0 if prefix in self._prefixes[id(executor)] else _PREFIX_COST)

    def _workers(self) -> list[LineExecutor]:
        """Return the workers to use for what is pending: those in use, and further ones if they are needed."""
        if self._only is not None:
            return [self._only]
        if self._used is None:
            there = [member.executor for member in self._members if member.is_there()]
            self._used = there or self._executors[:1]
        serving = [executor for executor in self._used if not executor.refused]
        fresh = [executor for executor in self._executors if executor not in self._used]
        pending = len(self._queue) + sum(executor.load for executor in serving)
        while fresh and (not serving or pending > sum(executor.width for executor in serving)):
            serving.append(fresh.pop(0))
            self._used.append(serving[-1])
        return serving or self._used[:1]  # one that refuses: it says why

    def _settled(self, executor: LineExecutor, outcomes: list[Outcome]) -> list[Outcome]:
        """Return outcomes that are final: what a worker that never came up has refused goes to the others."""
        others = any(other is not executor and not other.refused for other in self._executors)
        final: list[Outcome] = []
        for outcome in outcomes:
            request, _ = self._given.pop(outcome.key)
            if not isinstance(outcome, Failed) or outcome.reason is FailureReason.CANCELLED:
                self._served.add(id(executor))
            elif executor.refused and outcome.reason in _FOR_ALL:
                self._only = executor
            elif executor.refused and others and id(executor) not in self._served:
                self._queue.append(request)
                continue
            final.append(outcome)
        return final

    def _listen(self, seconds: float) -> None:
        """Wait until a worker that was asked has something to say."""
        with selectors.DefaultSelector() as selector:
            for executor in self._executors:
                fd = executor.fileno()
                if fd is not None and executor.load:
                    selector.register(fd, selectors.EVENT_READ)
            if not selector.get_map():
                time.sleep(min(seconds, 0.01))
                return
            selector.select(seconds)
