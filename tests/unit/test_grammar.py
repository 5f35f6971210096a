"""Grammars of every strength, held against llguidance itself."""

from __future__ import annotations

import json

import msgspec
import pytest
from support.grammars import CHILDREN, CONSTRAINED, DELIVERY, admits, matcher
from support.products import FIELDS, PRODUCT

from gsum.rules.claims import Claim
from gsum.rules.config import SchemaSection, Strength
from gsum.rules.documents import lines
from gsum.rules.grammar import answer_text, leaf_grammar, reduction_grammar

TEXT = """Reference 7, for the file
Product P-37-05 delivery: 25 February.
Product P-37-05 status: "held" in C:\\bay\t<|im_end|> \u00e9\u2028x.
Of the two dates, 18 October no longer applies.
"""
LINES = lines(TEXT)
STATUS = {"subject": "P-37-05", "field": "status", "value": '"held" in C:\\bay\t<|im_end|> \u00e9\u2028x'}
HELD = '"held" in C'
"""What line 3 offers as its status: a label's text ends where another colon or a column begins."""


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
    first = f"// gsum grammar 3 {strength.value}"
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
    status = {**STATUS, "value": HELD} if strength is Strength.LITERAL else STATUS
    assert admits(grammar, answer_text([([2], DELIVERY), ([3], status)]))


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
    assert admits(leaf(Strength.SCHEMA), answer_text(four))
    assert not admits(leaf(Strength.SCHEMA), answer_text(five))
    prose = [([n], {"subject": f"P-37-0{n}", "field": "site", "value": "Hall 3"}) for n in range(1, 6)]
    grammar = leaf_grammar(PRODUCT, Strength.LITERAL, lines("".join(f"P-37-0{n} is in Hall 3\n" for n in range(1, 6))))
    assert grammar is not None
    assert admits(grammar, answer_text(prose[:4]))
    assert not admits(grammar, answer_text(prose))
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


PROSE = lines("""P-37-05 is in Hall 3 now, and P-37-06 is dry
The sign of P-37-05 names the old shed
| P-37-05 | 40 sheets | Mill Annex |
Of the two dates, 18 October no longer applies.
Mr Gale said: "P-37-05 is lost at sea for all I know"
""")


def prose(schema: SchemaSection = PRODUCT) -> str:
    grammar = leaf_grammar(schema, Strength.LITERAL, PROSE)
    assert grammar is not None
    return grammar


def said(number: int, value: str, field: str = "site", subject: str = "P-37-05") -> tuple[list[int], dict[str, str]]:
    return [number], {"subject": subject, "field": field, "value": value}


@pytest.mark.parametrize("value", ["is in Hall 3 now", "Hall 3", "is", "Hall 3 now", "is dry", "and"])
def test_literal_admits_runs_of_whole_words_of_a_clause_of_the_cited_line(value: str) -> None:
    assert admits(prose(), answer_text([said(1, value)]))


@pytest.mark.parametrize(
    "value",
    [
        "Hall",
        "3",
        "Hall 3 now, and",
        "all 3",
        " dry",
        "dry ",
        "is  dry",
        "hall 3",
        "P-37-06",
        "now, and P-37-06",
        "shed",
    ],
)
def test_literal_admits_no_value_that_is_no_run_of_one_clause_of_the_cited_line(value: str) -> None:
    assert not admits(prose(), answer_text([said(1, value)]))


def test_literal_admits_a_labelled_value_and_a_column_as_a_whole_only() -> None:
    grammar = leaf(Strength.LITERAL)
    for value in ("25", "February", "delivery", "Product"):
        assert not admits(grammar, answer_text([([2], {**DELIVERY, "value": value})]))
    assert not admits(grammar, answer_text([([2], {**DELIVERY, "field": "site"})]))
    for value in ("40 sheets", "Mill Annex"):
        assert admits(prose(), answer_text([said(3, value)]))
    assert not admits(prose(), answer_text([said(3, "Mill")]))


def test_literal_takes_a_name_only_from_the_cited_line_and_never_from_a_saying() -> None:
    assert admits(prose(), answer_text([said(1, "dry", "status", "P-37-06")]))
    assert not admits(prose(), answer_text([said(2, "the old shed", "site", "P-37-06")]))
    assert not admits(prose(), answer_text([said(4, "18 October", "delivery")]))
    assert not admits(prose(), answer_text([said(5, "lost", "status")]))


def test_literal_admits_one_claim_about_a_thing_and_claims_in_any_order() -> None:
    site, status, quantity = (
        said(1, "Hall 3"),
        said(2, "names the old shed", "status"),
        said(3, "40 sheets", "quantity"),
    )
    for order in ([site, status, quantity], [quantity, site, status], [status, quantity]):
        assert admits(prose(), answer_text(order))
    for again in (site, said(2, "the old shed"), said(3, "Mill Annex")):
        assert not admits(prose(), answer_text([site, again]))
        assert not admits(prose(), answer_text([site, quantity, again]))
    assert admits(prose(), answer_text([site, said(1, "dry", "site", "P-37-06")]))


def test_literal_holds_many_things_to_the_order_of_the_text() -> None:
    text = "".join(f"P-37-{n:02} is in Hall 3\n" for n in range(40))
    grammar = leaf_grammar(PRODUCT, Strength.LITERAL, lines(text))
    assert grammar is not None
    pick = [said(n + 1, "Hall 3", "site", f"P-37-{n:02}") for n in (3, 17, 39)]
    assert admits(grammar, answer_text(pick))
    assert not admits(grammar, answer_text(pick[::-1]))
    assert not admits(grammar, answer_text([pick[0], pick[0]]))


def test_without_a_declared_shape_every_line_is_citable_and_every_clause_gives_one_claim() -> None:
    grammar = prose(msgspec.structs.replace(PRODUCT, fact_pattern=None))
    old = said(4, "18 October no longer applies", "delivery", "Of the two dates")
    assert admits(grammar, answer_text([old]))
    assert not admits(grammar, answer_text([said(4, "18 October", "delivery", "Hall 3")]))
    assert not admits(grammar, answer_text([old, old]))


def test_literal_bounds_the_length_in_characters_of_the_text_not_of_its_escapes() -> None:
    text = 'x"' * 65
    grammar = leaf_grammar(PRODUCT, Strength.LITERAL, lines(f"P-37-05 {text}"))
    assert grammar is not None
    assert admits(grammar, answer_text([said(1, text[:120])]))
    assert not admits(grammar, answer_text([said(1, text[:121])]))


def test_a_line_without_a_word_that_fits_is_not_citable_and_blocks_nothing() -> None:
    grammar = leaf_grammar(PRODUCT, Strength.LITERAL, lines(f"P-37-05 {'x' * 121}\nP-37-05 Hall 3"))
    assert grammar is not None
    assert not admits(grammar, answer_text([said(1, "x")]))
    assert admits(grammar, answer_text([said(2, "Hall 3")]))
    alone = leaf_grammar(PRODUCT, Strength.LITERAL, lines(f"P-37-05 {'x' * 121}"))
    assert alone is not None
    assert bytes(matcher(alone).compute_ff_tokens()) == b'{"claims":[]}'


def test_pattern_admits_the_facts_of_fact_lines_alone_each_once_and_in_any_order() -> None:
    grammar = leaf(Strength.PATTERN)
    assert not admits(grammar, answer_text([([2], {**DELIVERY, "value": "25"})]))
    assert not admits(grammar, answer_text([([2], {**DELIVERY, "field": "site"})]))
    assert not admits(
        grammar, answer_text([([4], {"subject": "the two dates", "field": "site", "value": "18 October"})])
    )
    assert not admits(grammar, answer_text([([2], DELIVERY), ([2], DELIVERY)]))
    assert admits(grammar, answer_text([([3], STATUS), ([2], DELIVERY)]))


def test_pattern_passes_over_facts_that_the_schema_does_not_admit() -> None:
    found = lines("Product P-01-00 price: 12 crowns.\nProduct P-01-00 site: " + "x" * 121 + ".\n")
    grammar = leaf_grammar(PRODUCT, Strength.PATTERN, found)
    assert grammar is not None
    assert bytes(matcher(grammar).compute_ff_tokens()) == b'{"claims":[]}'


@pytest.mark.parametrize("strength", [Strength.LITERAL, Strength.PATTERN])
def test_a_reduction_chooses_claims_word_for_word_each_once_in_any_order(strength: Strength) -> None:
    grammar = reduction(strength)
    pick = [([n], claim.values) for n, claim in enumerate(CHILDREN, 1)]
    assert admits(grammar, answer_text([pick[0], pick[2], pick[9], pick[11]]))
    assert admits(grammar, answer_text([pick[11]]))
    assert admits(grammar, answer_text([pick[9], pick[2], pick[0]]))
    assert not admits(grammar, answer_text([pick[2], pick[2]]))
    assert not admits(grammar, answer_text([([1], CHILDREN[1].values)]))
    assert not admits(grammar, answer_text([([13], CHILDREN[1].values)]))


def test_a_reduction_by_schema_cites_the_numbers_of_the_claims() -> None:
    grammar = reduction(Strength.SCHEMA)
    assert admits(grammar, answer_text([([1, 12], DELIVERY)]))
    assert not admits(grammar, answer_text([([13], DELIVERY)]))


def test_a_choice_among_many_claims_keeps_their_order_and_grows_with_their_number() -> None:
    many = [Claim({**DELIVERY, "subject": str(number)}, ()) for number in range(48)]
    grammar = reduction(Strength.LITERAL, many)
    assert admits(grammar, answer_text([([n + 1], many[n].values) for n in (3, 17, 47)]))
    assert not admits(grammar, answer_text([([n + 1], many[n].values) for n in (17, 3)]))
    assert len(grammar.splitlines()) <= 2 + 4 * 48 + 2 * 48


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
