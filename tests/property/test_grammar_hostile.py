"""Grammars over hostile text: what a line holds is admitted, and whatever is admitted resolves."""

from __future__ import annotations

import json
import math
import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from support.grammars import admits, walk
from support.products import FIELDS, PRODUCT, generated, inputs_of, readable, snapshot_of

from gsum.rules.claims import Claim, Result, Status
from gsum.rules.clauses import Clause, chunks, read_line, word_shapes
from gsum.rules.config import Strength, SummaryTreePackage
from gsum.rules.documents import lines
from gsum.rules.evidence import catalogue
from gsum.rules.grammar import answer_text, leaf_grammar, reduction_grammar
from gsum.rules.kinds import RULES

PIECES = st.sampled_from(
    [
        '"',
        "\\",
        '"""',
        "<|im_end|>",
        "{",
        "}",
        "//",
        "\\u0041",
        "\\n",
        "%regex",
        "/",
        "\x00",
        "\x07",
        "\x1f",
        "\x7f",
        "\x85",
        "\t",
        "\r",
        "\u2028",
        "\ufeff",
        "\ufffd",
        "\U0001f600",
        "e\u0301",
        "\u65e5",
        " ",
        "  ",
        "P-37-05",
        "25 February",
        "x" * 121,
    ]
)
LINE = st.lists(
    PIECES | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=6), max_size=12
).map("".join)
TEXTS = st.lists(LINE, min_size=1, max_size=4).map("\n".join)
PACKAGE = SummaryTreePackage("corpus", "map", "reduce", "product", 2, 2048, 3072)
SOURCE = st.randoms(use_true_random=False)


SHAPES = word_shapes(PRODUCT)
NAMED = st.tuples(LINE, st.sampled_from(["P-37-05", "P-37-05 status: ", "P-37-05 site | "]), LINE).map("".join)


def runs(clause: Clause) -> list[str]:
    """Return all texts of a clause that a claim may hold, by definition rather than by automaton."""
    if clause.whole:
        return ["".join(clause.words)]
    words = clause.words
    found = ["".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1)]
    return [run for run in found if len(run) <= PRODUCT.max_length and not run[0].isspace() and not run[-1].isspace()]


@given(LINE)
def test_chunks_join_to_the_line(text: str) -> None:
    assert "".join(chunks(text)) == text


@given(NAMED)
def test_what_a_line_offers_stands_in_it(text: str) -> None:
    for schema in (PRODUCT, msgspec.structs.replace(PRODUCT, fact_pattern=None)):
        found = read_line(schema, word_shapes(schema), text)
        if found is not None:
            assert all(name in text for names in found.names.values() for name in names)
            assert all("".join(clause.words) in text for clause in found.clauses)
            assert all(any(len(run) <= 120 for run in runs(clause)) for clause in found.clauses)


@settings(max_examples=150, deadline=None)
@given(st.lists(NAMED, min_size=1, max_size=4).map("\n".join), SOURCE)
def test_literal_admits_each_run_of_words_of_a_hostile_line(text: str, chooser: random.Random) -> None:
    found = lines(text)
    grammar = leaf_grammar(PRODUCT, Strength.LITERAL, found)
    assert grammar is not None
    for line in found:
        offered = read_line(PRODUCT, SHAPES, line.text)
        if offered is not None:
            clause = chooser.choice(offered.clauses)
            claim = {"subject": "P-37-05", "field": "site", "value": chooser.choice(runs(clause)), **clause.named}
            assert admits(grammar, answer_text([([line.number], claim)]))
            assert not admits(grammar, answer_text([([line.number], {**claim, "value": claim["value"] + "~~"})]))
    assert admits(grammar, answer_text([]))


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.sampled_from([Strength.SCHEMA, Strength.LITERAL, Strength.PATTERN]), SOURCE)
def test_whatever_a_leaf_grammar_admits_resolves_to_a_valid_result(
    text: str, strength: Strength, chooser: random.Random
) -> None:
    text += '\nProduct P-01-00 site: Hall <|im_end|>.\nProduct P-01-00 status: "\\held".'
    scope = readable("D-1", text)
    action = RULES["summary_tree"].expand("dossier", PACKAGE, snapshot_of([scope]), "t")[0]
    grammar = leaf_grammar(PRODUCT, strength, lines(text))
    assert grammar is not None
    answer = walk(grammar, chooser)
    result = RULES["summary_tree"].resolve(action, inputs_of(text=text, strength=strength), generated(answer))
    assert result.status is Status.VALID, (answer, result.diagnostic)
    assert result.repairs == ()


RECORD = catalogue(readable("D-1", "Hall 3"), "Hall 3")[0]
VALUES = LINE.filter(lambda text: 0 < len(text) <= PRODUCT.max_length)
CLAIMS = st.builds(
    lambda subject, field, value: Claim({"subject": subject, "field": field, "value": value}, (RECORD.id,)),
    VALUES,
    st.sampled_from(FIELDS),
    VALUES,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(CLAIMS, max_size=6), SOURCE)
def test_a_reduction_grammar_admits_choices_and_they_resolve(claims: list[Claim], chooser: random.Random) -> None:
    inputs = inputs_of(
        children=[Result(Status.VALID, tuple(claims), (RECORD,) if claims else ())], strength=Strength.LITERAL
    )
    root = RULES["summary_tree"].expand("dossier", PACKAGE, snapshot_of([readable("D-1", "Hall 3")]), "t")[-1]
    grammar = reduction_grammar(PRODUCT, Strength.LITERAL, claims)
    assert grammar is not None
    about = [(claim.values["subject"], claim.values["field"]) for claim in claims]
    choices = [n for n in range(1, len(claims) + 1) if about[n - 1] not in about[: n - 1]]
    numbers = chooser.sample(choices, min(len(choices), chooser.randint(0, 4)))
    assert admits(grammar, answer_text([([n], claims[n - 1].values) for n in numbers]))
    result = RULES["summary_tree"].resolve(root, inputs, generated(walk(grammar, chooser)))
    assert result.status is Status.VALID, result.diagnostic
    assert all(claim in claims for claim in result.claims)
    assert len(result.claims) <= PRODUCT.max_claims


VARIED = msgspec.structs.replace(PRODUCT, reduce_once=("subject", "field"))


@settings(max_examples=100, deadline=None)
@given(st.lists(CLAIMS, min_size=1, max_size=9), SOURCE)
def test_whatever_a_varied_reduction_says_shares_its_values_out(claims: list[Claim], chooser: random.Random) -> None:
    grammar = reduction_grammar(VARIED, Strength.LITERAL, claims)
    assert grammar is not None
    said = json.loads(walk(grammar, chooser))["claims"]
    for field in VARIED.reduce_once:
        different = {claim.values[field] for claim in claims}
        values = [one[field] for one in said]
        assert all(values.count(value) <= math.ceil(VARIED.max_claims / len(different)) for value in values)
    assert len({(one["subject"], one["field"]) for one in said}) == len(said)
