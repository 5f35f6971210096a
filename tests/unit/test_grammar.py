"""Grammars of every strength, held against llguidance itself."""

from __future__ import annotations

import json

import pytest
from support.grammars import admits, matcher
from support.products import FIELDS, PRODUCT

from gsum.rules.claims import Claim
from gsum.rules.config import SchemaSection, Strength
from gsum.rules.documents import lines
from gsum.rules.grammar import answer_text, chunks, leaf_grammar, reduction_grammar

TEXT = """Reference 7, for the file
Product P-37-05 delivery: 25 February.
Product P-37-05 status: "held" in C:\\bay\t<|im_end|> \u00e9\u2028x.
Of the two dates, 18 October no longer applies.
"""
LINES = lines(TEXT)
DELIVERY = {"subject": "P-37-05", "field": "delivery", "value": "25 February"}
STATUS = {"subject": "P-37-05", "field": "status", "value": '"held" in C:\\bay\t<|im_end|> \u00e9\u2028x'}
CHILDREN = [Claim({**DELIVERY, "value": f"{day} May"}, (f"D@1:0:{day}",)) for day in range(1, 13)]
CONSTRAINED = [Strength.SCHEMA, Strength.LITERAL, Strength.PATTERN]


def leaf(strength: Strength, schema: SchemaSection = PRODUCT) -> str:
    grammar = leaf_grammar(schema, strength, LINES)
    assert grammar is not None
    return grammar


def reduction(strength: Strength, claims: list[Claim] = CHILDREN) -> str:
    grammar = reduction_grammar(PRODUCT, strength, claims)
    assert grammar is not None
    return grammar


def test_strength_none_has_no_grammar() -> None:
    assert leaf_grammar(PRODUCT, Strength.NONE, LINES) is None
    assert reduction_grammar(PRODUCT, Strength.NONE, CHILDREN) is None


@pytest.mark.parametrize("strength", CONSTRAINED)
def test_the_first_line_names_version_and_strength(strength: Strength) -> None:
    first = f"// gsum grammar 1 {strength.value}"
    assert leaf(strength).partition("\n")[0] == first
    nothing = leaf_grammar(PRODUCT, strength, ())
    assert nothing is not None
    assert nothing.partition("\n")[0] == first


def test_an_answer_is_compact_json_with_evidence_last_and_characters_unescaped() -> None:
    assert answer_text([([2], DELIVERY)]) == (
        '{"claims":[{"subject":"P-37-05","field":"delivery","value":"25 February","evidence":[2]}]}'
    )
    assert "\\t<|im_end|> \u00e9\u2028" in answer_text([([3], STATUS)])


@pytest.mark.parametrize("strength", CONSTRAINED)
def test_the_facts_of_the_lines_are_admitted(strength: Strength) -> None:
    grammar = leaf(strength)
    assert admits(grammar, answer_text([]))
    assert admits(grammar, answer_text([([2], DELIVERY), ([3], STATUS)]))


@pytest.mark.parametrize("strength", CONSTRAINED)
def test_with_nothing_to_cite_only_the_empty_answer_is_admitted(strength: Strength) -> None:
    for grammar in (leaf_grammar(PRODUCT, strength, ()), reduction_grammar(PRODUCT, strength, ())):
        assert grammar is not None
        assert admits(grammar, '{"claims":[]}')
        assert bytes(matcher(grammar).compute_ff_tokens()) == b'{"claims":[]}'


@pytest.mark.parametrize("strength", CONSTRAINED)
@pytest.mark.parametrize(
    "text",
    [
        answer_text([([5], DELIVERY)]),
        answer_text([([0], DELIVERY)]),
        answer_text([([], DELIVERY)]),
        answer_text([([2, 2], DELIVERY)]),
        answer_text([([2], {**DELIVERY, "field": "price"})]),
        answer_text([([2], {**DELIVERY, "value": ""})]),
        answer_text([([2], DELIVERY)]).replace("[2]", "[ 2]"),
        answer_text([([2], DELIVERY)]).replace(",", ", "),
        answer_text([([2], DELIVERY)]).replace(":[", ": ["),
        answer_text([([2], DELIVERY)]) + " ",
        " " + answer_text([([2], DELIVERY)]),
        answer_text([([2], DELIVERY)])[:-1],
        json.dumps({"claims": [{"evidence": [2], **DELIVERY}]}, separators=(",", ":")),
        answer_text([([2], {**DELIVERY, "note": "P"})]),
        answer_text([([2], {"subject": "P-37-05", "field": "delivery"})]),
        "",
    ],
)
def test_no_strength_admits_another_shape(strength: Strength, text: str) -> None:
    assert not admits(leaf(strength), text)


def test_a_fifth_claim_is_not_admitted() -> None:
    four, five = ([([2], DELIVERY)] * n for n in (4, 5))
    for strength in (Strength.SCHEMA, Strength.LITERAL):
        assert admits(leaf(strength), answer_text(four))
        assert not admits(leaf(strength), answer_text(five))
    picks = [([n], CHILDREN[n - 1].values) for n in range(1, 6)]
    assert admits(reduction(Strength.LITERAL), answer_text(picks[:4]))
    assert not admits(reduction(Strength.LITERAL), answer_text(picks))


def test_schema_admits_any_text_up_to_the_length_and_evidence_in_order() -> None:
    grammar = leaf(Strength.SCHEMA)
    for value in ("made up", "\u00e9" * 120, '\\"\x00\x1f\n\x7f', "\U0001f600" * 120):
        assert admits(grammar, answer_text([([1, 2, 4], {**DELIVERY, "value": value})]))
    assert not admits(grammar, answer_text([([1], {**DELIVERY, "value": "x" * 121})]))
    assert not admits(grammar, answer_text([([2, 1], DELIVERY)]))
    assert not admits(grammar, answer_text([([1], DELIVERY)]).replace("25", "\\ud800"))


@pytest.mark.parametrize("value", ["25", "delivery: 25 February.", "Product P-37-05 delivery: 25 February.", "."])
def test_literal_admits_runs_of_whole_words_of_the_cited_line(value: str) -> None:
    assert admits(leaf(Strength.LITERAL), answer_text([([2], {**DELIVERY, "value": value})]))


@pytest.mark.parametrize(
    "value",
    ["26 February", "2", "5 February", "25 Febr", " 25", "25 ", "25  February", "P-37", "18 October", "25 february"],
)
def test_literal_admits_no_value_that_is_not_in_the_cited_line(value: str) -> None:
    assert not admits(leaf(Strength.LITERAL), answer_text([([2], {**DELIVERY, "value": value})]))


def test_literal_binds_every_field_to_the_line_of_the_same_claim() -> None:
    old = {"subject": "the two dates", "field": "delivery", "value": "18 October"}
    assert admits(leaf(Strength.LITERAL), answer_text([([4], old)]))
    assert not admits(leaf(Strength.LITERAL), answer_text([([4], {**old, "subject": "P-37-05"})]))
    assert admits(leaf(Strength.LITERAL), answer_text([([4], old), ([1], {**old, "subject": "7", "value": "file"})]))


def test_literal_bounds_the_length_in_characters_of_the_text_not_of_its_escapes() -> None:
    text = '"' * 130
    grammar = leaf_grammar(PRODUCT, Strength.LITERAL, lines(text))
    assert grammar is not None
    assert admits(grammar, answer_text([([1], {**DELIVERY, "subject": text[:120], "value": text[:1]})]))
    assert not admits(grammar, answer_text([([1], {**DELIVERY, "subject": text[:121], "value": text[:1]})]))


def test_a_line_without_a_word_that_fits_is_not_citable_and_blocks_nothing() -> None:
    grammar = leaf_grammar(PRODUCT, Strength.LITERAL, lines("x" * 121 + "\nHall 3"))
    assert grammar is not None
    assert not admits(grammar, answer_text([([1], {**DELIVERY, "subject": "x", "value": "x"})]))
    assert admits(grammar, answer_text([([2], {**DELIVERY, "subject": "Hall", "value": "3"})]))
    alone = leaf_grammar(PRODUCT, Strength.LITERAL, lines("x" * 121))
    assert alone is not None
    assert bytes(matcher(alone).compute_ff_tokens()) == b'{"claims":[]}'


def test_pattern_admits_the_facts_of_fact_lines_alone_each_once_and_in_order() -> None:
    grammar = leaf(Strength.PATTERN)
    assert not admits(grammar, answer_text([([2], {**DELIVERY, "value": "25"})]))
    assert not admits(grammar, answer_text([([2], {**DELIVERY, "field": "site"})]))
    assert not admits(
        grammar, answer_text([([4], {"subject": "the two dates", "field": "site", "value": "18 October"})])
    )
    assert not admits(grammar, answer_text([([2], DELIVERY), ([2], DELIVERY)]))
    assert not admits(grammar, answer_text([([3], STATUS), ([2], DELIVERY)]))


def test_pattern_passes_over_facts_that_the_schema_does_not_admit() -> None:
    found = lines("Product P-01-00 price: 12 crowns.\nProduct P-01-00 site: " + "x" * 121 + ".\n")
    grammar = leaf_grammar(PRODUCT, Strength.PATTERN, found)
    assert grammar is not None
    assert bytes(matcher(grammar).compute_ff_tokens()) == b'{"claims":[]}'


@pytest.mark.parametrize("strength", [Strength.LITERAL, Strength.PATTERN])
def test_a_reduction_chooses_claims_word_for_word_each_once_in_order(strength: Strength) -> None:
    grammar = reduction(strength)
    pick = [([n], claim.values) for n, claim in enumerate(CHILDREN, 1)]
    assert admits(grammar, answer_text([pick[0], pick[2], pick[9], pick[11]]))
    assert admits(grammar, answer_text([pick[11]]))
    assert not admits(grammar, answer_text([pick[2], pick[0]]))
    assert not admits(grammar, answer_text([pick[2], pick[2]]))
    assert not admits(grammar, answer_text([([1], CHILDREN[1].values)]))
    assert not admits(grammar, answer_text([([13], CHILDREN[1].values)]))


def test_a_reduction_by_schema_cites_the_numbers_of_the_claims() -> None:
    grammar = reduction(Strength.SCHEMA)
    assert admits(grammar, answer_text([([1, 12], DELIVERY)]))
    assert not admits(grammar, answer_text([([13], DELIVERY)]))


def test_the_size_of_a_choice_grows_with_the_number_of_claims() -> None:
    many = [Claim({**DELIVERY, "value": str(number)}, ()) for number in range(48)]
    assert len(reduction(Strength.LITERAL, many).splitlines()) == 2 + 4 * 48 + 48


@pytest.mark.parametrize("strength", CONSTRAINED)
def test_a_schema_of_other_fields_and_bounds_gets_its_own_grammar(strength: Strength) -> None:
    schema = SchemaSection(
        fields=("kind", 'na"me'),
        enums={"kind": ('a"b', "\u00e9")},
        fact_pattern=None,
        max_claims=1,
        max_evidence=1,
    )
    grammar = leaf(strength, schema)
    claim = ([1], {"kind": 'a"b', 'na"me': "Reference"})
    assert admits(grammar, answer_text([claim])) == (strength is not Strength.PATTERN)
    assert not admits(grammar, answer_text([claim, claim]))
    enums_only = SchemaSection(fields=("field",), enums={"field": FIELDS})
    assert admits(leaf(Strength.LITERAL, enums_only), answer_text([([4], {"field": "site"})]))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("P-37-05: 25 May.", ["P-37-05", ":", " ", "25", " ", "May", "."]),
        ("at 12:30, 1,440/3.5%", ["at", " ", "12:30", ",", " ", "1,440/3.5", "%"]),
        ("don't  \t(stop)", ["don't", "  \t", "(", "stop", ")"]),
        ("e\u0301te\u0301 \u65e5\u672c", ["e\u0301te\u0301", " ", "\u65e5", "\u672c"]),
        ("a_b -x- y--z", ["a_b", " ", "-", "x", "-", " ", "y", "-", "-", "z"]),
    ],
)
def test_lines_split_into_words_whitespace_and_single_characters(text: str, words: list[str]) -> None:
    assert list(chunks(text)) == words


def test_a_leaf_as_long_as_a_large_budget_allows_still_compiles() -> None:
    grammar = leaf_grammar(PRODUCT, Strength.LITERAL, lines(TEXT * 480))
    assert grammar is not None
    assert admits(grammar, answer_text([([1918], DELIVERY)]))


@pytest.mark.parametrize("strength", [Strength.LITERAL, Strength.PATTERN])
def test_of_equal_claims_a_reduction_can_choose_only_the_first(strength: Strength) -> None:
    grammar = reduction(strength, [CHILDREN[0], CHILDREN[1], CHILDREN[0]])
    assert admits(grammar, answer_text([([1], CHILDREN[0].values), ([2], CHILDREN[1].values)]))
    assert not admits(grammar, answer_text([([3], CHILDREN[0].values)]))
    assert not admits(grammar, answer_text([([1], CHILDREN[0].values), ([3], CHILDREN[0].values)]))
