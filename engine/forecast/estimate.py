"""History and work to a forecast: medians and bounds by resampling, group by group. Pure: its seed is fixed.

Each trial draws the history of a group anew, so that a short history gives wide bounds, then what each of its actions
does: cut off at the rate of the past (unknown before the first case: anything from none to all), else a generation of
the past. A first build is taken to generate.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from gsum.engine.forecast.history import History, Past, Work
from gsum.engine.forecast.model import LEVEL, UNTOLD, Estimate, Forecast, Pace, Sample

TRIALS = 200
SEED = 20_261_130
_EXACT = 32
"""Up to this many actions of a group are drawn one by one; more are drawn as their sum, which is then near normal."""
_MOST_DRAWN = 256
_LIKE = 4
"""Builds are alike in size whose generations differ by at most this factor: loading a model weighs on small ones."""
_FEW = 3
"""How many builds of like size it takes to tell how the clock runs."""


def forecast(history: History, work: Work) -> Forecast:
    """Return what work will take, with bounds that should hold at `LEVEL`."""
    chance = random.Random(SEED)
    totals = [(0.0, 0.0, 0.0)] * TRIALS
    unknown = used = certain = 0
    for group, count in sorted(work.groups.items()):
        past = history.past(group)
        if past is None or not past.samples:
            unknown += 0 if past is not None and past.cut_off else count
        if past is None:
            certain += count if work.forced or not group.rebuild else 0
            continue
        used += max(past.generated + past.cut_off, len(past.samples))
        drawn = [_draw(chance, past, count, forced=work.forced or not group.rebuild) for _ in range(TRIALS)]
        totals = [(a + x, b + y, c + z) for (a, b, c), (x, y, z) in zip(totals, drawn, strict=True)]
    modelled = sum(work.groups.values())
    generations, tokens, seconds = zip(*totals, strict=True)
    drawn_generations = _estimate([certain + number for number in generations], bounded=True, digits=None)
    model_seconds = _cost(seconds, unknown, modelled, digits=3)
    return Forecast(
        actions=work.actions,
        modelled=modelled,
        unknown=unknown,
        history=used,
        generations=_with_unknown(drawn_generations, unknown - certain, modelled),
        tokens=_cost(tokens, unknown, modelled, digits=None),
        seconds=model_seconds,
        wall=UNTOLD if unknown else _wall(history.paces, drawn_generations.median or 0, model_seconds),
    )


def _wall(paces: Sequence[Pace], generations: float, model: Estimate) -> Estimate:
    """Return what the clock will say: model time by the ratio that builds of like size had, if there are a few."""
    alike = [pace for pace in paces if generations / _LIKE <= pace.generations <= generations * _LIKE]
    if len(alike) < _FEW or model.median is None or model.high is None:
        return UNTOLD
    ratios = sorted(pace.wall_seconds / pace.model_seconds for pace in alike)
    tail = (1 - LEVEL) / 2
    low, median, high = (_quantile(ratios, share) for share in (tail, 0.5, 1 - tail))
    return Estimate(round(model.low * low, 3), round(model.median * median, 3), round(model.high * high, 3))


def _with_unknown(known: Estimate, open_cases: int, modelled: int) -> Estimate:
    """Return an estimate of generations that admits any number of further ones, up to `open_cases`."""
    return Estimate(known.low, known.median, min(modelled, (known.high or 0) + open_cases))


def _cost(values: Sequence[float], unknown: int, modelled: int, *, digits: int | None) -> Estimate:
    if unknown and unknown == modelled:
        return Estimate(0, None, None)
    return _estimate(values, bounded=not unknown, digits=digits)


def _draw(chance: random.Random, past: Past, count: int, *, forced: bool) -> tuple[float, float, float]:
    """Return generations, tokens and seconds of one trial."""
    rate = 1.0 if forced else chance.betavariate(past.generated + 0.5, past.cut_off + 0.5)
    generations = count if rate == 1.0 else _binomial(chance, count, rate)
    if not past.samples:
        return generations, 0.0, 0.0
    size = min(len(past.samples), _MOST_DRAWN)
    drawn: Sequence[Sample] = chance.choices(past.samples, k=size)
    if generations <= _EXACT:
        taken = chance.choices(drawn, k=generations)
        return generations, sum(one.tokens for one in taken), sum(one.seconds for one in taken)
    shift = chance.gauss(0.0, 1.0)  # one for both: tokens and seconds go together
    return (
        generations,
        _sum_of_many([one.tokens for one in drawn], generations, shift),
        _sum_of_many([one.seconds for one in drawn], generations, shift),
    )


def _sum_of_many(values: Sequence[float], count: int, shift: float) -> float:
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)
    return max(0.0, count * mean + shift * math.sqrt(count * variance))


def _binomial(chance: random.Random, count: int, rate: float) -> int:
    if count <= _EXACT:
        return sum(chance.random() < rate for _ in range(count))
    drawn = chance.gauss(count * rate, math.sqrt(count * rate * (1 - rate)))
    return min(count, max(0, round(drawn)))


def _estimate(values: Sequence[float], *, bounded: bool, digits: int | None) -> Estimate:
    ordered = sorted(values)
    tail = (1 - LEVEL) / 2
    low, median, high = (round(_quantile(ordered, share), digits) for share in (tail, 0.5, 1 - tail))
    return Estimate(low, median, high if bounded else None)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of the values do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
