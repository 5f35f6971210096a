"""Whatever is typed, the parser answers with a tree or an error that points into the query."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gsum.engine.query import QueryError, TargetGraph, run_query
from gsum.engine.query.lexer import tokenize
from gsum.engine.query.parser import parse
from gsum.engine.query.syntax import Call, Chain, Expression, Let, Operator, SetOf, Variable, Word

PIECES = [
    "deps",
    "rdeps",
    "somepath",
    "kind",
    "attr",
    "siblings",
    "stale",
    "cached",
    "status",
    "cites",
    "uncited",
    "cost",
    "generations",
    "VALID|STALE",
    "//c:b/D[0:3]",
    "[1:",
    "set",
    "let",
    "in",
    "union",
    "except",
    "(",
    ")",
    ",",
    "+",
    "-",
    "^",
    "=",
    "'",
    '"',
    "$v",
    "v",
    " ",
    "\t",
    "//a:b/c",
    "//a:all",
    "//...",
    "0",
    "*",
    "\\",
    "[",
    "\0",
    "é",
    "\u2028",
    "\U0001f600",
]
GRAPH = TargetGraph({"//a:b/c": "map", "//a:b/root": "reduce"}, {"//a:b/root": ["//a:b/c"]})

texts = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PIECES), max_size=25).map("".join))


@given(texts)
@settings(max_examples=1500, deadline=None)
def test_any_text_gives_a_result_or_a_query_error(text: str) -> None:
    try:
        run_query(GRAPH, text)
    except QueryError as error:
        assert error.message
        assert error.hint
        assert error.excerpt is not None
        line = error.excerpt.split("\n")[-1]
        assert set(line) <= {" ", "^"}
        assert line.index("^") <= len(text)


@given(texts)
@settings(max_examples=500, deadline=None)
def test_tokens_cover_all_but_white_space(text: str) -> None:
    try:
        tokens = tokenize(text)
    except QueryError:
        return
    rest = list(text)
    for token in tokens:
        for place in range(token.span.start, token.span.end):
            assert rest[place] != ""
            rest[place] = ""
    assert "".join(rest).strip() == ""


words = st.builds(lambda text: Word(text, None), st.text(min_size=1, max_size=8))
variables = st.builds(lambda name: Variable(name, None), st.sampled_from(["v", "_x1"]))
trees = st.recursive(
    words | variables,
    lambda below: st.one_of(
        st.builds(
            lambda name, args: Call(name, tuple(args), None, None), st.sampled_from(["f", "deps"]), st.lists(below)
        ),
        st.builds(lambda value, body: Let("v", value, body, None), below, below),
        st.builds(lambda items: SetOf(tuple(items), None), st.lists(words | variables)),
        st.builds(
            lambda first, rest: Chain(first, tuple(rest), None),
            below,
            st.lists(st.tuples(st.sampled_from(Operator), below), min_size=1, max_size=3),
        ),
    ),
    max_leaves=12,
)


def printed(tree: Expression) -> str:
    """Write a tree as a query: every word quoted, every operand in parentheses."""
    match tree:
        case Word():
            quote = '"' if "'" in tree.text else "'"
            return f"{quote}{tree.text}{quote}"
        case Variable():
            return f"${tree.name}"
        case Let():
            return f"let {tree.name} = {printed(tree.value)} in {printed(tree.body)}"
        case SetOf():
            return f"set({' '.join(map(printed, tree.items))})"
        case Call():
            return f"{tree.name}({', '.join(map(printed, tree.arguments))})"
        case Chain():
            rest = "".join(f" {operator.value} ({printed(right)})" for operator, right in tree.rest)
            return f"({printed(tree.first)}){rest}"


def bare(value: object) -> object:
    """Return a tree without its places."""
    if isinstance(value, tuple):
        return tuple(map(bare, value))
    if isinstance(value, msgspec.Struct):
        names = [name for name in value.__struct_fields__ if not name.endswith("span")]
        return (type(value).__name__, *(bare(getattr(value, name)) for name in names))
    return value


def quotable(tree: object) -> bool:
    if isinstance(tree, Word):
        return not ("'" in tree.text and '"' in tree.text)
    if isinstance(tree, tuple):
        return all(map(quotable, tree))
    if isinstance(tree, msgspec.Struct):
        return all(quotable(getattr(tree, name)) for name in tree.__struct_fields__)
    return True


@given(trees.filter(quotable))
@settings(max_examples=500, deadline=None)
def test_a_printed_tree_parses_to_itself(tree: Expression) -> None:
    assert bare(parse(printed(tree))) == bare(tree)
