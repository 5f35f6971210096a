"""How many requests a program is given ahead of its answers: one if it is slow, many if it is quick. Pure.

A quick program then never waits for us, and a slow one has nothing at hand that another try would have to repeat.
"""

from __future__ import annotations

AHEAD_SECONDS = 0.05
"""The work a quick program is given ahead: what its end may cost that was asked and not yet answered."""

FEWEST, MOST = 8, 256
"""A program that would not be given the fewest ahead is slow: it gets one request at a time."""


class Pace:
    """The width of one program, from the answers it gave."""

    def __init__(self) -> None:
        self.width = 1

    def answered(self, answers: int, seconds: float, *, dry: bool) -> None:
        """Note that so many answers took so long: at most twice as many, or the fewest, are asked for next.

        When the program ran `dry`, with nothing more to do, it took less than we know: the time was ours.
        """
        fitting = int(AHEAD_SECONDS * answers / max(seconds, 1e-6))
        if fitting < FEWEST and not (dry and self.width >= FEWEST):
            self.width = 1
        else:
            twice = min(MOST, max(FEWEST, 2 * self.width))
            self.width = twice if dry else min(twice, fitting)

    def stumbled(self) -> None:
        """Note that the program did not answer: what it had is asked for again, one at a time."""
        self.width = 1
