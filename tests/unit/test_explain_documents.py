"""Lists of documents: what was added, removed and moved, and which of it concerns a node."""

from __future__ import annotations

import pytest

from gsum.engine.explain.documents import list_change, moved_documents


def change(before: str, now: str):
    return list_change(list(before), list(now), lambda name: f"//corpus:S-1/{name}", "//dossier:S-1")


@pytest.mark.parametrize(
    ("before", "now", "moved"),
    [("abcd", "abcd", ""), ("abcd", "bcda", "a"), ("abcd", "dabc", "d"), ("abcd", "badc", "ac"), ("abc", "cba", "ba")],
)
def test_the_fewest_documents_moved(before: str, now: str, moved: str) -> None:
    found = moved_documents(before, now)
    assert len(found) == len(moved)
    assert [name for name in now if name not in found] == [name for name in before if name not in found]


def test_causes_say_what_happened() -> None:
    found = change("abc", "cbd")
    assert [cause.text for cause in found.added.values()] == ["document `d` added"]
    assert [cause.text for cause in found.removed.values()] == ["document `a` removed"]
    assert found.removed["a"].subject == "//corpus:S-1/a"
    assert found.reordered is not None
    assert found.reordered.text in (
        "documents reordered: `c` from place 2 to 1",
        "documents reordered: `b` from place 1 to 2",
    )
    assert change("ab", "xab").reordered is None


def test_the_note_of_a_cause_says_of_the_number_of_documents_only_what_is_so() -> None:
    as_many, fewer = change("abc", "bcd"), change("abc", "bc")
    for causes in (as_many.added, as_many.removed):
        (cause,) = causes.values()
        assert cause.note == "the place of a document decides which of them stand in one group"
    assert fewer.removed["a"].note == "the number of documents changes which of them stand in one group"


def texts(causes) -> list[str]:
    return [cause.text for cause in causes]


def test_a_node_is_concerned_by_what_is_below_it() -> None:
    found = change("abcdefgh", "abcdfghx")
    assert texts(found.found_in("abcd", "abcd")) == []
    assert texts(found.found_in("efgh", "fghx")) == ["document `x` added", "document `e` removed"]


def test_a_node_whose_group_was_shifted_is_concerned_by_all_that_shifts() -> None:
    found = change("abcdefgh", "xabcdefgh")
    assert texts(found.found_in("efgh", "defg")) == ["document `x` added"]
    both = change("abcdefghi", "bcdefhi")
    assert texts(both.found_in("def", "efh")) == ["document `a` removed", "document `g` removed"]
    assert texts(both.found_in("ghi", "i")) == ["document `a` removed", "document `g` removed"]


def test_a_node_is_not_concerned_by_what_cancels_out_before_it() -> None:
    found = change("abcdefgh", "xbcdefgy")
    assert texts(found.found_in("efgh", "efgy")) == ["document `y` added", "document `h` removed"]


def test_a_node_is_concerned_by_moves_of_its_documents() -> None:
    assert texts(change("abcd", "bacd").found_in("ab", "ba"))[0].startswith("documents reordered")
