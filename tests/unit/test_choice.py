"""Lists of items under limits, held against their definition by llguidance itself."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.grammars import admits

from gsum.rules.choice import Limit, list_rules, picks

LETTERS = "abcdef"


def grammar(
    count: int, most: int, attempts: Sequence[Sequence[Limit]] = ((),), *, repeated: bool = False, start: str = "some"
) -> str:
    """Return a grammar of lists of `i0`, `i1` …, each written as a letter or, of many items, as its number."""
    items = [f"i{place}" for place in range(count)]
    rules = picks(items, most) if start != "some" else list_rules(items, most, attempts, repeated=repeated)
    words = [f'{item}: "{written(place, count)}"' for place, item in enumerate(items)]
    return "\n".join([f"start: {start}", *rules, *words, ""])


def written(place: int, count: int) -> str:
    return LETTERS[place] if count <= len(LETTERS) else str(place)


def text(places: Sequence[int], count: int) -> str:
    return ",".join(written(place, count) for place in places)


def within(places: Sequence[int], limits: Sequence[Limit]) -> bool:
    return all(sum(place in limit.places for place in places) <= limit.quota for limit in limits)


PLACES = st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True).map(tuple)
LIMITS = st.lists(st.builds(Limit, st.integers(1, 3), PLACES), max_size=4)


@settings(max_examples=60, deadline=None)
@given(LIMITS, st.integers(1, 3), st.booleans())
def test_a_list_is_admitted_exactly_if_it_keeps_to_every_limit(limits: list[Limit], most: int, repeated: bool) -> None:
    made = grammar(5, most, [limits], repeated=repeated)
    for length in range(1, most + 2):
        for places in itertools.product(range(5), repeat=length):
            allowed = length <= most and within(places, limits) and (repeated or len(set(places)) == length)
            assert admits(made, text(places, 5)) == allowed, (places, made)


def test_lists_that_leave_the_same_open_share_a_rule() -> None:
    rows = [Limit(1, tuple(range(row * 4, row * 4 + 4))) for row in range(4)]
    columns = [Limit(1, tuple(range(column, 16, 4))) for column in range(4)]
    rules = list_rules([f"i{place}" for place in range(16)], 4, [[*rows, *columns]])
    assert len(rules) == 1 + 16 + 6 * 6 + 4 * 4


def test_an_attempt_too_large_for_any_order_is_held_in_the_order_of_the_items() -> None:
    halves = [Limit(1, tuple(range(20))), Limit(1, tuple(range(20, 40)))]
    made = grammar(40, 4, [halves])
    assert admits(made, "3,22")
    assert admits(made, "22,3")
    assert not admits(made, "3,4")
    free = grammar(40, 4)
    assert admits(free, "3,4,22,39")
    assert not admits(free, "4,3")
    assert not admits(free, "3,3")


def test_of_the_attempts_the_first_that_fits_is_taken() -> None:
    many = [Limit(2, tuple(range(start, start + 40))) for start in range(0, 400, 8)]
    few = [Limit(1, tuple(range(400)))]
    made = grammar(440, 4, [[*many, *few], few])
    assert admits(made, "401,402")
    assert not admits(made, "1,300")


def test_where_no_attempt_fits_items_are_listed_freely() -> None:
    made = grammar(1_500, 4)
    assert admits(made, "7,7,1,1499")
    assert not admits(made, "1,2,3,4,5")


@settings(max_examples=40, deadline=None)
@given(LIMITS, st.booleans())
def test_a_full_list_ends_only_where_nothing_may_follow(limits: list[Limit], repeated: bool) -> None:
    items = [f"i{place}" for place in range(5)]
    rules = list_rules(items, 3, [limits], repeated=repeated, full=True)
    made = "\n".join(["start: some", *rules, *(f'i{place}: "{LETTERS[place]}"' for place in range(5)), ""])

    def allowed(places: Sequence[int]) -> bool:
        return len(places) <= 3 and within(places, limits) and (repeated or len(set(places)) == len(places))

    for length in range(1, 4):
        for places in itertools.product(range(5), repeat=length):
            ends = not any(allowed([*places, after]) for after in range(5))
            assert admits(made, text(places, 5)) == (allowed(places) and ends), (places, made)


@pytest.mark.parametrize("most", [1, 3])
def test_picks_admit_items_in_strict_order(most: int) -> None:
    made = grammar(4, most, start=f"pick_0_{most}")
    for length in range(1, 5):
        for places in itertools.product(range(4), repeat=length):
            allowed = length <= most and list(places) == sorted(set(places))
            assert admits(made, text(places, 4)) == allowed
