"""The values of forecasts: what ran, by group, and what is expected to run, with bounds. Pure.

Seconds are those that executors measured for each generation, added up. The clock of a build runs otherwise: requests
overlap, workers share them, and a model is loaded; that is `wall`, told from builds alone that were alike in size.
"""

from __future__ import annotations

import msgspec

LEVEL = 0.8
"""The share of forecasts whose bounds should hold what then happened: the 10th to the 90th percentile."""

MOST_SAMPLES = 64
"""Executions that one build keeps of a group for later forecasts."""


class Group(msgspec.Struct, frozen=True, order=True):
    """Actions that are alike in cost: of one package, kind and toolchain, first builds apart from rebuilds."""

    package: str
    kind: str
    toolchain: str
    rebuild: bool


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One generation: tokens made and seconds taken."""

    tokens: int
    seconds: float


class Outcomes(msgspec.Struct, frozen=True):
    """What a build did with the actions of a group: how many it generated and cut off, and some of the generations."""

    group: Group
    generated: int
    cut_off: int
    samples: tuple[Sample, ...]


class Pace(msgspec.Struct, frozen=True):
    """How a build's clock ran: its generations, what executors measured for them in all, and what the build took."""

    generations: int
    model_seconds: float
    wall_seconds: float


class Estimate(msgspec.Struct, frozen=True):
    """A figure: its median and the bounds that should hold at `LEVEL`. `high` is null where nothing bounds it, the
    median where nothing at all is known.
    """

    low: float
    median: float | None
    high: float | None

    def holds(self, actual: float) -> bool:
        """Whether an actual value lies within the bounds."""
        return self.low <= actual and (self.high is None or actual <= self.high)


UNTOLD = Estimate(0.0, None, None)
"""What is said of a figure of which nothing is known."""


class Forecast(msgspec.Struct, frozen=True):
    """What running some actions will take. `history` counts the executions it rests on.

    `actions` would run; of these `modelled` may ask a model, and of `unknown` among them no history tells the cost:
    the estimates leave these out but for the upper bounds.
    """

    actions: int
    modelled: int
    unknown: int
    history: int
    generations: Estimate
    tokens: Estimate
    seconds: Estimate
    wall: Estimate = UNTOLD


class Actual(msgspec.Struct, frozen=True):
    """What the forecast actions took."""

    generations: int
    tokens: int
    seconds: float
