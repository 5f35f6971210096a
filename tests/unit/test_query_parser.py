"""Query text to syntax trees: precedence, quoting, shorthands, and errors that point at the place."""

from __future__ import annotations

import pytest

from gsum.engine.query.lexer import QueryError, Span, tokenize
from gsum.engine.query.parser import MAX_DEPTH, parse
from gsum.engine.query.syntax import Call, Chain, Expression, Let, SetOf, Variable, Word


def shape(expression: Expression) -> object:
    """Return a tree as nested tuples, without places."""
    match expression:
        case Word():
            return expression.text
        case Variable():
            return ("$", expression.name)
        case Let():
            return ("let", expression.name, shape(expression.value), shape(expression.body))
        case SetOf():
            return ("set", *map(shape, expression.items))
        case Chain():
            tree = shape(expression.first)
            for operator, right in expression.rest:
                tree = (operator.value, tree, shape(right))
            return tree
        case Call():
            return (expression.name, *map(shape, expression.arguments))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("//a:b/c", "//a:b/c"),
        ("a + b - c ^ d", ("^", ("-", ("+", "a", "b"), "c"), "d")),
        ("a ^ b + c", ("+", ("^", "a", "b"), "c")),
        ("a - (b + c)", ("-", "a", ("+", "b", "c"))),
        ("a union b except c intersect d", ("^", ("-", ("+", "a", "b"), "c"), "d")),
        ("a-b", "a-b"),
        ("a -b", ("-", "a", "b")),
        ("(a)-(b)", ("-", "a", "b")),
        ("a=b", "a=b"),
        ("'a b' + \"it's\"", ("+", "a b", "it's")),
        ("'let'", "let"),
        ("'$v'", "$v"),
        ("deps(a, 2)", ("deps", "a", "2")),
        ("f()", ("f",)),
        ("rdeps(//..., deps(a) - b)", ("rdeps", "//...", ("-", ("deps", "a"), "b"))),
        ("set()", ("set",)),
        ("set(a 'b c' $d)", ("set", "a", "b c", ("$", "d"))),
        ("let v = a in $v + $v", ("let", "v", "a", ("+", ("$", "v"), ("$", "v")))),
        ("let v=//a:b/c in $v", ("let", "v", "//a:b/c", ("$", "v"))),
        ("a + let v = b in $v - c", ("+", "a", ("let", "v", "b", ("-", ("$", "v"), "c")))),
        ("deps //a:b/c", ("deps", "//a:b/c")),
        ("rdeps '//a:b/c d'", ("rdeps", "//...", "//a:b/c d")),
        ("deps", "deps"),
        ("deps (a)", ("deps", "a")),
        ("//a:ü/ß\u3042", "//a:ü/ß\u3042"),
        ("a\n+\tb", ("+", "a", "b")),
    ],
)
def test_text_becomes_the_tree_of_the_grammar(text: str, expected: object) -> None:
    assert shape(parse(text)) == expected


def test_tokens_know_their_places() -> None:
    spans = [token.span for token in tokenize("ab + 'c d'")]
    assert spans == [Span(0, 2), Span(3, 4), Span(5, 10), Span(10, 10)]


@pytest.mark.parametrize(
    ("text", "message", "caret"),
    [
        ("", "a label, a pattern or a function is missing before the end of the query", (0, 1)),
        ("a +", "a label, a pattern or a function is missing before the end of the query", (3, 4)),
        ("a b", "`b` can't stand here", (2, 3)),
        ("somepath a", "`a` can't stand here", (9, 10)),
        ("deps(a", "`)` is missing to end `deps(…)`, before the end of the query", (6, 7)),
        ("(a", "`)` is missing to end the parenthesis, before the end of the query", (2, 3)),
        ("deps(a,)", "a label, a pattern or a function is missing before `)`", (7, 8)),
        ("a 'b", "a quote has no end", (2, 3)),
        ("let 3x = a in b", "`3x` is no name for a variable", (4, 6)),
        ("let x a in b", "`=` is missing after `let x`, before `a`", (6, 7)),
        ("let x = a b", "`in` is missing after the value of `x`, before `b`", (10, 11)),
        ("set a", "`(` is missing after `set`, before `a`", (4, 5)),
        ("set(a, b)", "`)` is missing after the words of `set`, before `,`", (5, 6)),
        ("$", "`$` is no variable", (0, 1)),
        ("a in", "`in` can't stand here", (2, 4)),
        ("+ a", "a label, a pattern or a function is missing before `+`", (0, 1)),
    ],
)
def test_an_error_points_at_its_place(text: str, message: str, caret: tuple[int, int]) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert caught.value.message == message
    assert caught.value.exit_code == 2
    assert caught.value.hint
    line = caught.value.excerpt.split("\n")[-1]
    assert (line.index("^"), len(line)) == caret


def test_nesting_is_bounded() -> None:
    assert shape(parse("(" * (MAX_DEPTH - 1) + "a" + ")" * (MAX_DEPTH - 1))) == "a"
    with pytest.raises(QueryError, match="nests more than 100 levels"):
        parse("(" * 50_000 + "a" + ")" * 50_000)


def test_a_long_chain_is_no_nesting() -> None:
    expression = parse(" + ".join(["a"] * 20_000))
    assert isinstance(expression, Chain)
    assert len(expression.rest) == 19_999


def test_control_characters_do_not_reach_the_excerpt() -> None:
    with pytest.raises(QueryError) as caught:
        parse("a \x1b[31m")
    assert "\x1b" not in caught.value.excerpt
