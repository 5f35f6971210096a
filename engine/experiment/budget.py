"""A budget of model calls and seconds, kept by an executor that stops taking work once it is spent.

What is in flight ends and is kept: nothing is cut off in the middle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gsum.engine.executors.protocol import ExecRequest, Executor, Outcome
from gsum.store.errors import ExitCode, GsumError


class BudgetSpent(GsumError):
    """A run reached its budget; what is finished is kept."""

    exit_code = ExitCode.BUDGET


class Budget:
    """How many model calls may still be made, and until when. Null: without limit."""

    def __init__(self, *, generations: int | None, seconds: float | None, monotonic: Callable[[], float]) -> None:
        self._left = generations
        self._monotonic = monotonic
        self._end = None if seconds is None else monotonic() + seconds
        self.made = 0
        """Model calls made so far."""

    @property
    def spent(self) -> bool:
        """Whether no further model call may be made."""
        return self.room(1) == 0

    def room(self, wanted: int) -> int:
        """Return how many of `wanted` model calls may be made now."""
        if self._end is not None and self._monotonic() >= self._end:
            return 0
        return wanted if self._left is None else min(wanted, self._left)

    def take(self, number: int) -> None:
        """Count model calls."""
        self.made += number
        if self._left is not None:
            self._left -= number


class BudgetedExecutor:
    """An executor whose capacity ends with a budget. It never gives up what it has taken."""

    def __init__(self, inner: Executor, budget: Budget) -> None:
        self._inner, self._budget = inner, budget
        self._pending = 0

    @property
    def reproducible(self) -> bool:
        """As the executor below."""
        return self._inner.reproducible

    @property
    def network(self) -> bool:
        """As the executor below."""
        return self._inner.network

    @property
    def capacity(self) -> int:
        """What is pending, and what may still be added to it."""
        return self._pending + self._budget.room(max(0, self._inner.capacity - self._pending))

    def submit(self, requests: Sequence[ExecRequest]) -> None:
        """Hand requests on, counted."""
        self._pending += len(requests)
        self._budget.take(len(requests))
        self._inner.submit(requests)

    def wait(self, timeout: float | None) -> list[Outcome]:
        """Return what the executor below returns."""
        outcomes = self._inner.wait(timeout)
        self._pending -= len(outcomes)
        return outcomes

    def cancel(self) -> None:
        """Give up what is pending."""
        self._inner.cancel()

    def close(self) -> None:
        """Close the executor below."""
        self._inner.close()
