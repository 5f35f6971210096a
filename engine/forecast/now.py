"""What running a plan would take now. Reads the store."""

from __future__ import annotations

from collections.abc import Sequence

from gsum.engine.forecast.estimate import forecast
from gsum.engine.forecast.history import read_history, work_of
from gsum.engine.forecast.model import Forecast
from gsum.engine.universe import Universe
from gsum.store.api import Store


def plan_forecast(universe: Universe, store: Store, to_run: Sequence[str], *, full: bool = False) -> Forecast:
    """Return what running `to_run` would take, told from the principal's earlier builds."""
    actions = [universe.graph.actions[label] for label in to_run]
    built = [store.latest(one.label, one.principal, one.toolchain or "") is not None for one in actions]
    return forecast(read_history(store, universe.principal), work_of(actions, built, forced=full))
