"""Writes a build's account of itself: listens to its events, and after the last one keeps forecast and actual.

The forecast is made from the builds before, so that making it when the build has ended costs a null build nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gsum.engine.events import (
    Accounted,
    ActionFailed,
    ActionFinished,
    ActionSkipped,
    BuildFinished,
    BuildStarted,
    Event,
    encode_event,
)
from gsum.engine.forecast.estimate import forecast
from gsum.engine.forecast.history import group_of, grouped, read_history
from gsum.engine.forecast.model import MOST_SAMPLES, Actual, Group, Outcomes, Sample
from gsum.rules.graph import Action
from gsum.store.api import Store
from gsum.store.records import How


class Accountant:
    """Listens to one build of `actions`. Forecasts nothing and writes nothing when nothing ran."""

    def __init__(self, store: Store, actions: Mapping[str, Action], principal: str, *, full: bool) -> None:
        self._store, self._actions, self._principal, self._full = store, actions, principal, full
        self._finished: list[ActionFinished] = []
        self._complete = True
        self._to_run = 0

    def event(self, event: Event) -> None:
        """Take note of an event; write the account after the last one."""
        match event:
            case BuildStarted():
                self._to_run = event.to_run
            case ActionFinished():
                self._finished.append(event)
            case ActionFailed() | ActionSkipped():
                self._complete = False
            case BuildFinished() if self._finished:
                data = encode_event(self._account(event.invocation))
                self._store.append_events(event.invocation, [data])
            case _:
                pass

    def _account(self, invocation: str) -> Accounted:
        groups = [group_of(self._actions[event.label], event.previous is not None) for event in self._finished]
        made = [event for event in self._finished if event.how == How.GENERATED.value]
        return Accounted(
            invocation=invocation,
            complete=self._complete and len(self._finished) == self._to_run,
            forecast=forecast(read_history(self._store, self._principal), grouped(groups, forced=self._full)),
            actual=Actual(len(made), sum(e.new_tokens for e in made), round(sum(e.seconds for e in made), 3)),
            outcomes=self._outcomes(groups),
        )

    def _outcomes(self, groups: Sequence[Group | None]) -> tuple[Outcomes, ...]:
        samples: dict[Group, list[Sample]] = {}
        cut_off: dict[Group, int] = {}
        for event, group in zip(self._finished, groups, strict=True):
            if group is None:
                continue
            samples.setdefault(group, [])
            if event.how == How.GENERATED.value:
                samples[group].append(Sample(event.new_tokens, round(event.seconds, 4)))
            elif event.how == How.CUT_OFF.value:
                cut_off[group] = cut_off.get(group, 0) + 1
        return tuple(
            Outcomes(group, len(taken), cut_off.get(group, 0), _spread(taken))
            for group, taken in sorted(samples.items())
        )


def _spread(samples: list[Sample]) -> tuple[Sample, ...]:
    """Return at most `MOST_SAMPLES` of the samples, taken at equal steps."""
    step = max(1, -(-len(samples) // MOST_SAMPLES))
    return tuple(samples[::step])
