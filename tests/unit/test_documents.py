"""Lines end at "\\n" only, and their intervals are exact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsum.rules.documents import lines

HOSTILE = st.text(st.sampled_from("ab \t\r\n\f\v\x00\x1c\x85\u2028\u2029\ufeff\u00e9\U0001f600"), max_size=40)


def test_lines_are_numbered_among_the_non_empty_ones() -> None:
    found = lines("one\n\n  \t\ntwo")
    assert [(line.number, line.start, line.end, line.text) for line in found] == [(1, 0, 3, "one"), (2, 9, 12, "two")]


def test_leading_and_trailing_spaces_belong_to_the_line() -> None:
    (line,) = lines("  indented  \n")
    assert (line.start, line.end, line.text) == (0, 12, "  indented  ")


def test_a_byte_order_mark_and_carriage_returns_stay_outside_the_interval() -> None:
    first, second = lines("\ufeffone\r\ntwo\r\n")
    assert (first.start, first.end, first.text) == (1, 4, "one")
    assert (second.start, second.end, second.text) == (6, 9, "two")


def test_only_one_trailing_carriage_return_is_left_out() -> None:
    (line,) = lines("a\r\r\n")
    assert line.text == "a\r"


def test_a_byte_order_mark_inside_the_text_is_a_character() -> None:
    assert [line.text for line in lines("a\n\ufeffb")] == ["a", "\ufeffb"]


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\x85", "\f", "\v", "\x1c", "\x1e", "\r"])
def test_other_line_boundaries_neither_split_nor_shift(char: str) -> None:
    first, second = lines(f"a{char}b\nc")
    assert (first.start, first.end, first.text) == (0, 3, f"a{char}b")
    assert (second.start, second.end, second.text) == (4, 5, "c")


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff", "\ufeff\r\n", " \t\r\n\u00a0\n\u2028", "\r\n\r\n"])
def test_a_text_of_whitespace_has_no_lines(text: str) -> None:
    assert lines(text) == ()


@given(HOSTILE)
def test_intervals_are_exact_disjoint_and_leave_out_only_what_they_may(text: str) -> None:
    found = lines(text)
    assert [line.number for line in found] == list(range(1, len(found) + 1))
    left, position = [], 0
    for line in found:
        assert text[line.start : line.end] == line.text
        assert position <= line.start < line.end
        assert "\n" not in line.text
        left.append(text[position : line.start])
        position = line.end
    outside = "".join([*left, text[position:]])
    assert all(char.isspace() or char == "\ufeff" for char in outside)
    assert outside.count("\ufeff") <= 1
