"""How good forecasts were: forecast against actual, build by build, and the share that held. Reads the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from gsum.engine.events import Accounted
from gsum.engine.forecast.history import account_of
from gsum.engine.forecast.model import Estimate
from gsum.store.api import Store
from gsum.store.records import InvocationRecord

MEASURES = ("generations", "tokens", "seconds")


class Judged(msgspec.Struct, frozen=True):
    """One build's forecast that had a history, and what then happened."""

    record: InvocationRecord
    account: Accounted

    def pair(self, measure: str) -> tuple[Estimate, float]:
        """Return the estimate of a measure and its actual value."""
        return getattr(self.account.forecast, measure), getattr(self.account.actual, measure)


class Calibration(msgspec.Struct, frozen=True):
    """Of one measure: how many forecasts there are, how many held, and the median of actual / forecast median.

    `ratio` is null where no forecast had a median above zero.
    """

    measure: str
    forecasts: int
    held: int
    ratio: float | None


def judged(store: Store, records: Iterable[InvocationRecord]) -> Iterator[Judged]:
    """Yield those builds whose forecast rested on a history and that ran to their end, in the order given."""
    for record in records:
        account = account_of(store, record)
        if account is not None and account.complete and account.forecast.history and not account.forecast.unknown:
            yield Judged(record, account)


def calibrate(builds: Iterable[Judged]) -> tuple[Calibration, ...]:
    """Return how good the forecasts of each measure were."""
    pairs = {measure: [build.pair(measure) for build in builds] for builds in (tuple(builds),) for measure in MEASURES}
    return tuple(
        Calibration(
            measure,
            len(found),
            sum(estimate.holds(actual) for estimate, actual in found),
            _median([actual / estimate.median for estimate, actual in found if estimate.median]),
        )
        for measure, found in pairs.items()
    )


def _median(values: list[float]) -> float | None:
    if not values:
        return None
    ordered, half = sorted(values), len(values) // 2
    return round(ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2, 3)
