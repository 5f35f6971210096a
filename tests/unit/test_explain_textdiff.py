"""Differences of texts: in words as a person would say them, and as a unified diff."""

from __future__ import annotations

import pytest

from gsum.engine.explain import textdiff
from gsum.engine.explain.textdiff import NO_NEWLINE, Block, compare_texts, in_words, unified


def numbered(count: int) -> list[str]:
    return [f"line {number}\n" for number in range(1, count + 1)]


def changed(lines: list[str], *numbers: int) -> list[str]:
    return [f"new {line}" if number in numbers else line for number, line in enumerate(lines, 1)]


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (numbered(9), "same text"),
        (changed(numbered(9), 4), "line 4 changed"),
        (changed(numbered(9), 4, 7), "lines 4 and 7 changed"),
        (changed(numbered(9), 1, 4, 9), "lines 1, 4 and 9 changed"),
        (changed(numbered(9), 3, 4, 5), "lines 3–5 changed"),
        (changed(numbered(9), 1, 4, 5), "line 1 changed, lines 4–5 changed"),
        (numbered(8), "line 9 removed"),
        (numbered(9)[2:], "lines 1–2 removed"),
        (["first\n", *numbered(9)], "line 1 added"),
        ([*numbered(9), "a\n", "b\n"], "lines 10–11 added"),
        ([*changed(numbered(9), 2)[:8], "x\n"], "lines 2 and 9 changed"),
        ([*numbered(3), *numbered(9)[4:], "x\n"], "line 4 removed, line 9 added"),
        (changed(numbered(9), 1, 3, 5, 7, 9), "lines 1, 3, 5, 7 and 9 changed"),
    ],
)
def test_changes_are_named_by_line(after: list[str], words: str) -> None:
    assert in_words(compare_texts("".join(numbered(9)), "".join(after))) == words


def test_many_places_are_counted() -> None:
    after = "".join(changed(numbered(20), *range(1, 20, 2)))
    words = in_words(compare_texts("".join(numbered(20)), after))
    assert words == "lines 1, 3, 5, 7 and 9 changed, 5 more places"


@pytest.mark.parametrize(("before", "after"), [("a\nb", "a\nb\n"), ("a\nb\r\n", "a\nb\n"), ("a\nb", "a\nb\u2028")])
def test_line_ends_count_as_text_and_only_newlines_end_lines(before: str, after: str) -> None:
    assert in_words(compare_texts(before, after)) == "line 2 changed"


def test_a_unified_diff_has_context_and_hunks() -> None:
    change = compare_texts("".join(numbered(20)), "".join(changed(numbered(20), 2, 18)))
    assert unified(change) == (
        "@@ -1,4 +1,4 @@",
        " line 1",
        "-line 2",
        "+new line 2",
        " line 3",
        " line 4",
        "@@ -16,5 +16,5 @@",
        " line 16",
        " line 17",
        "-line 18",
        "+new line 18",
        " line 19",
        " line 20",
    )


def test_a_lost_newline_is_shown() -> None:
    assert unified(compare_texts("a\n", "a")) == ("@@ -1,1 +1,1 @@", "-a", "+a", NO_NEWLINE)
    assert unified(compare_texts("", "a\n")) == ("@@ -0,0 +1,1 @@", "+a")


def test_a_large_difference_is_one_block_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 50_000
    before = "".join(["same\n", *(f"a {number}\n" for number in range(count)), "end\n"])
    after = "".join(["same\n", *(f"b {number}\n" for number in range(count)), "end\n"])
    change = compare_texts(before, after)
    assert change.blocks == (Block(1, count + 1, 1, count + 1),)
    assert in_words(change) == f"lines 2–{count + 1} changed"
    monkeypatch.setattr(textdiff, "MATCH_LIMIT", 3)
    assert in_words(compare_texts("a\nb\nc\n", "x\nb\ny\n")) == "lines 1–3 changed"
