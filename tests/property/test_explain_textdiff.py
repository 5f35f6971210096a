"""Differences of any texts: blocks rebuild the new text, the unified diff holds them, words tell changed from same."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from gsum.engine.explain.documents import moved_documents
from gsum.engine.explain.textdiff import NO_NEWLINE, compare_texts, in_words, unified

texts = st.lists(st.sampled_from(["a", "b", "", "c\r", "\u2028"]), max_size=12).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "\n".join([*lines, ""])])
)


@given(texts, texts)
@settings(max_examples=400)
def test_blocks_turn_the_old_text_into_the_new_one(before: str, after: str) -> None:
    change = compare_texts(before, after)
    rebuilt, position = [], 0
    for block in change.blocks:
        rebuilt += change.before[position : block.a] + change.after[block.c : block.d]
        position = block.b
    rebuilt += change.before[position:]
    assert "".join(change.before) == before
    assert "".join(rebuilt) == after
    assert (in_words(change) == "same text") == (before == after)


@given(texts, texts)
@settings(max_examples=400)
def test_a_unified_diff_can_be_applied(before: str, after: str) -> None:
    change = compare_texts(before, after)
    old = list(change.before)
    for line in reversed(list(hunks(unified(change)))):
        start, count, lines = line
        removed = [text for mark, text in lines if mark in " -"]
        first = start - 1 if count else start
        assert old[first : first + count] == removed
        old[first : first + count] = [text for mark, text in lines if mark in " +"]
    assert "".join(old) == after


def hunks(lines: tuple[str, ...]):
    """Yield each hunk: first old line, how many, and its lines by mark, with their ends."""
    current = None
    for line in lines:
        if line.startswith("@@"):
            if current:
                yield current
            start, count = map(int, line.split()[1][1:].split(","))
            current = (start, count, [])
        elif line == NO_NEWLINE:
            mark, text = current[2][-1]
            current[2][-1] = (mark, text.removesuffix("\n"))
        else:
            current[2].append((line[0], line[1:] + "\n"))
    if current:
        yield current


@given(st.permutations("abcdef"))
@settings(max_examples=300)
def test_moved_documents_are_a_smallest_set(now: list[str]) -> None:
    before = "abcdef"
    moved = moved_documents(before, now)

    def explains(names: tuple[str, ...]) -> bool:
        return [name for name in now if name not in names] == [name for name in before if name not in names]

    assert explains(tuple(moved))
    smaller = (names for size in range(len(moved)) for names in combinations(before, size))
    assert not any(explains(names) for names in smaller)
