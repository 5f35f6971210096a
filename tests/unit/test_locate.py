"""Places of TOML data in its text."""

from __future__ import annotations

import tomllib

import pytest

from gsum.rules.locate import Point, Span, excerpt, find

TEXT = """\
# comment
a.b = 1
[x."y z".w]
k = { q = [10, { deep = 20 }], 'r s'.t = 30 } # tail
[[d]]
id = "one"
[[d]]
id = "two"
list = [
  "first", # why
  "second",
]
[d.sub]
text = \"\"\"
many
lines\"\"\"
[[d.inner]]
n = 1
[[d.inner]]
n = 2
"""


@pytest.mark.parametrize(
    ("path", "line", "found"),
    [
        (("a", "b"), 2, "1"),
        (("x", "y z", "w", "k", "q", 0), 4, "10"),
        (("x", "y z", "w", "k", "q", 1, "deep"), 4, "20"),
        (("x", "y z", "w", "k", "r s", "t"), 4, "30"),
        (("d", 0, "id"), 6, '"one"'),
        (("d", 1, "id"), 8, '"two"'),
        (("d", 1, "list", 1), 11, '"second"'),
        (("d", 1, "sub", "text"), 14, '"""'),
        (("d", 1, "inner", 0, "n"), 18, "1"),
        (("d", 1, "inner", 1, "n"), 20, "2"),
    ],
)
def test_a_value_is_found_where_it_stands(path, line, found):
    value = tomllib.loads(TEXT)
    for step in path:
        value = value[step]  # the path exists in what tomllib reads
    span = find(TEXT, path)
    assert (span.line, _at(TEXT, span)) == (line, found)


@pytest.mark.parametrize(
    ("path", "line", "found"),
    [
        (("a", "b"), 2, "b"),
        (("x",), 3, "x"),
        (("x", "y z"), 3, '"y z"'),
        (("x", "y z", "w", "k", "r s"), 4, "'r s'"),
        (("d", 1), 7, "d"),
        (("d", 1, "sub"), 13, "sub"),
    ],
)
def test_a_key_is_found_where_it_stands(path, line, found):
    span = find(TEXT, path, Point.KEY)
    assert (span.line, _at(TEXT, span)) == (line, found)


def test_an_absent_entry_is_shown_at_the_nearest_table_above():
    assert _at(TEXT, find(TEXT, ("d", 1, "sub", "absent", "deeper"))) == "sub"
    assert find(TEXT, ("absent",)) == Span(1, 1, 1)


def test_columns_count_characters_not_bytes():
    span = find('k = { "é𝄞" = 1, z = 2 }', ("k", "z"))
    assert (span.line, span.column) == (1, 21)


def test_crlf_shifts_nothing():
    span = find(TEXT.replace("\n", "\r\n"), ("d", 1, "list", 1))
    assert (span.line, span.column, span.length) == (11, 3, 8)


def test_an_excerpt_marks_the_span_and_keeps_tabs():
    assert excerpt("one\n\tkey = 5\n", Span(2, 8, 1)) == "  |\n2 | \tkey = 5\n  | \t      ^"


def test_an_excerpt_of_a_long_line_is_cut_around_the_span():
    text = "x" * 300 + "HERE" + "y" * 300
    margin, line, carets = excerpt(text, Span(1, 301, 4)).split("\n")
    assert margin == "  |"
    assert len(line) < 120
    assert line[carets.index("^") : carets.rindex("^") + 1] == "HERE"


def test_an_excerpt_shows_no_control_character():
    assert "\x1b" not in excerpt("k = \x1b[31m1", Span(1, 1, 1))


def _at(text: str, span: Span) -> str:
    line = text.split("\n")[span.line - 1]
    return line[span.column - 1 : span.column - 1 + span.length]
