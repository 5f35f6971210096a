"""Forecasts: what they rest on, how wide their bounds are, and that these hold as often as they claim."""

from __future__ import annotations

import random

import pytest
from support.graphs import make_action
from support.products import hidden, readable

from gsum.engine.forecast.estimate import forecast
from gsum.engine.forecast.history import History, Past, Work, group_of, work_of
from gsum.engine.forecast.model import LEVEL, UNTOLD, Estimate, Group, Pace, Sample

FIRST = Group("dossier", "map", "fake", rebuild=False)
AGAIN = Group("dossier", "map", "fake", rebuild=True)


def history(group: Group, generated: int, cut_off: int, samples: list[tuple[int, float]]) -> History:
    return History({group: Past(generated, cut_off, tuple(Sample(*sample) for sample in samples))})


def work(group: Group, count: int, *, forced: bool = False) -> Work:
    return Work({group: count}, count, forced)


def test_without_history_nothing_is_claimed() -> None:
    found = forecast(History({}), work(FIRST, 5))
    assert (found.unknown, found.history) == (5, 0)
    assert found.generations == Estimate(5, 5, 5)  # a first build generates
    assert found.tokens == found.seconds == Estimate(0, None, None)
    assert forecast(History({}), work(AGAIN, 5)).generations == Estimate(0, 0, 5)


def test_with_one_group_unknown_upper_bounds_of_costs_are_open() -> None:
    past = history(FIRST, 4, 0, [(10, 1.0)] * 4)
    other = Group("dossier", "reduce", "fake", rebuild=False)
    found = forecast(past, Work({FIRST: 2, other: 3}, 5))
    assert (found.unknown, found.tokens, found.seconds) == (3, Estimate(20, 20, None), Estimate(2.0, 2.0, None))
    assert found.generations == Estimate(5, 5, 5)


def test_a_constant_cost_is_forecast_exactly() -> None:
    found = forecast(history(FIRST, 50, 0, [(10, 0.5)] * 50), work(FIRST, 100))
    assert (found.generations, found.tokens) == (Estimate(100, 100, 100), Estimate(1000, 1000, 1000))
    assert found.seconds == Estimate(50.0, 50.0, 50.0)


def test_cut_offs_of_the_past_lower_what_is_expected_of_rebuilds_alone() -> None:
    past = history(AGAIN, 20, 60, [(10, 1.0)] * 20)
    found = forecast(past, work(AGAIN, 40))
    assert 5 <= found.generations.low < found.generations.median < (found.generations.high or 0) <= 18
    assert forecast(past, work(AGAIN, 40, forced=True)).generations == Estimate(40, 40, 40)
    assert forecast(past, work(FIRST, 40)).generations == Estimate(40, 40, 40)


def test_a_group_of_which_all_were_cut_off_costs_little_and_is_known() -> None:
    found = forecast(history(AGAIN, 0, 30, []), work(AGAIN, 3))
    assert (found.unknown, found.generations.median, found.tokens) == (0, 0, Estimate(0, 0, 0))


def test_a_short_history_gives_wider_bounds_than_a_long_one() -> None:
    costs = [(tokens, tokens / 10) for tokens in (5, 10, 20, 40, 80)]
    widths = []
    for times in (1, 40):
        found = forecast(history(FIRST, 5 * times, 0, costs * times), work(FIRST, 200)).tokens
        assert found.high is not None
        widths.append(found.high - found.low)
    assert widths[0] > 2 * widths[1]


@pytest.mark.parametrize("actions", [3, 30, 300])
def test_bounds_hold_about_as_often_as_they_claim(actions: int) -> None:
    chance = random.Random(7)
    held = 0
    for _ in range(120):
        samples = [(int(chance.lognormvariate(4, 0.6)), chance.lognormvariate(0, 0.5)) for _ in range(40)]
        actual = sum(int(chance.lognormvariate(4, 0.6)) for _ in range(actions))
        held += forecast(history(FIRST, 40, 0, samples), work(FIRST, actions)).tokens.holds(actual)
    assert LEVEL - 0.12 <= held / 120 <= LEVEL + 0.12


def test_history_of_another_package_or_of_the_other_age_stands_in() -> None:
    past = history(Group("baseline", "map", "fake", rebuild=False), 9, 0, [(7, 1.0)] * 9)
    assert forecast(past, work(FIRST, 2)).tokens == Estimate(14, 14, 14)
    assert forecast(past, work(AGAIN, 2)).generations in (Estimate(0, 1, 2), Estimate(0, 2, 2))  # of cut-offs, no case
    assert forecast(past, work(AGAIN, 2, forced=True)).tokens == Estimate(14, 14, 14)
    assert forecast(past, work(Group("dossier", "map", "other", rebuild=False), 2)).unknown == 2
    assert forecast(past, work(Group("dossier", "reduce", "fake", rebuild=False), 2)).unknown == 2


def test_only_actions_that_may_ask_a_model_are_counted() -> None:
    asked = make_action("//dossier:S-1/leaf-00", scope=readable("D-00", "text"))
    barred = make_action("//dossier:S-1/leaf-01", scope=hidden("D-01"))
    pure = make_action("//baseline:S-1/root", prompt=None, toolchain=None)
    assert [group_of(action, False) is None for action in (asked, barred, pure)] == [False, True, True]
    counted = work_of([asked, barred, pure], [False, True, True])
    assert (counted.groups, counted.actions) == ({FIRST: 1}, 3)


def paced(*paces: tuple[int, float, float]) -> History:
    past = history(FIRST, 50, 0, [(10, 0.5)] * 50)
    return History(past.groups, tuple(Pace(*pace) for pace in paces))


def test_the_clock_runs_as_it_did_in_builds_of_like_size() -> None:
    halved = [(10, 5.0, 2.5)] * 3  # two workers
    found = forecast(paced(*halved, (1000, 500.0, 5000.0)), work(FIRST, 20))
    assert (found.seconds, found.wall) == (Estimate(10.0, 10.0, 10.0), Estimate(5.0, 5.0, 5.0))


def test_the_clocks_bounds_hold_those_of_both_what_is_asked_and_how_fast_it_goes() -> None:
    found = forecast(paced(*[(10, 5.0, 5.0 * ratio) for ratio in (0.5, 1.0, 2.0)]), work(FIRST, 20))
    assert found.wall == Estimate(5.0, 10.0, 20.0)


@pytest.mark.parametrize("paces", [[], [(10, 5.0, 5.0)] * 2, [(2, 1.0, 9.0)] * 5, [(200, 100.0, 90.0)] * 5])
def test_of_the_clock_nothing_is_said_from_few_builds_or_others_in_size(paces: list[tuple[int, float, float]]) -> None:
    assert forecast(paced(*paces), work(FIRST, 20)).wall == UNTOLD


def test_of_the_clock_nothing_is_said_where_part_of_the_work_is_unknown() -> None:
    other = Group("dossier", "reduce", "fake", rebuild=False)
    found = forecast(paced(*[(10, 5.0, 2.5)] * 5), Work({FIRST: 10, other: 3}, 13))
    assert found.wall == UNTOLD
