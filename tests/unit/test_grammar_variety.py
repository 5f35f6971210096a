"""Reductions that vary, are full, or choose among claims about one thing: what their grammars admit."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from support.grammars import CHILDREN, CONSTRAINED, DELIVERY, admits
from support.products import FIELDS, PRODUCT

from gsum.rules.claims import Claim
from gsum.rules.config import SchemaSection, Strength
from gsum.rules.documents import lines
from gsum.rules.grammar import answer_text, leaf_grammar, reduction_grammar

FACTS = [
    Claim({"subject": subject, "field": field, "value": value}, ())
    for subject, field, value in (
        ("P-37-01", "delivery", "1 May"),
        ("P-37-01", "site", "Hall 3"),
        ("P-37-02", "delivery", "2 May"),
        ("P-37-03", "delivery", "3 May"),
        ("P-37-04", "delivery", "4 May"),
        ("P-37-01", "delivery", "5 May"),
    )
]


def picked(*numbers: int) -> str:
    return answer_text([([n], FACTS[n - 1].values) for n in numbers])


def varied(*fields: str) -> SchemaSection:
    return msgspec.structs.replace(PRODUCT, reduce_once=fields)


def choice(strength: Strength, schema: SchemaSection, claims: Sequence[Claim] = FACTS) -> str:
    grammar = reduction_grammar(schema, strength, claims)
    assert grammar is not None
    return grammar


@pytest.mark.parametrize("strength", [Strength.LITERAL, Strength.PATTERN])
def test_a_reduction_says_a_varied_value_once_where_there_are_enough(strength: Strength) -> None:
    assert admits(choice(strength, PRODUCT), picked(1, 2))
    grammar = choice(strength, varied("subject"))
    assert admits(grammar, picked(5, 2, 3, 4))
    assert admits(grammar, answer_text([]))
    for same in ((1, 2), (2, 3, 1), (1, 6)):
        assert not admits(grammar, picked(*same))


@pytest.mark.parametrize("strength", [Strength.LITERAL, Strength.PATTERN])
def test_a_reduction_shares_out_fewer_values_than_it_may_claim(strength: Strength) -> None:
    """Four claims of two fields: two of each at most, never two of one subject but of the two that make four."""
    grammar = choice(strength, varied("field"), [*FACTS, Claim({**FACTS[1].values, "subject": "P-37-05"}, ())])
    assert admits(grammar, picked(2, 3, 4))
    assert not admits(grammar, picked(3, 4, 5))
    one_field = choice(strength, varied("field"), CHILDREN)
    assert admits(one_field, answer_text([([n], CHILDREN[n - 1].values) for n in (4, 3, 2, 1)]))


@pytest.mark.parametrize("strength", [Strength.LITERAL, Strength.PATTERN])
def test_a_reduction_varies_all_fields_declared_at_once(strength: Strength) -> None:
    table = [
        Claim({"subject": f"P-37-0{item}", "field": field, "value": f"{item} {field}"}, ())
        for item in range(4)
        for field in FIELDS
    ]
    grammar = choice(strength, varied("subject", "field"), table)
    said = [([n], claim.values) for n, claim in enumerate(table, 1)]
    assert admits(grammar, answer_text([said[place] for place in (0, 5, 10, 15)]))
    assert admits(grammar, answer_text([said[place] for place in (12, 9, 6, 3)]))
    for place in (1, 4):
        assert not admits(grammar, answer_text([said[0], said[place]]))


def test_a_reduction_by_schema_varies_the_enumerations() -> None:
    claims = [([1], {**DELIVERY, "field": field}) for field in FIELDS]
    grammar = choice(Strength.SCHEMA, varied("field", "subject"))
    assert admits(grammar, answer_text(claims))
    assert admits(grammar, answer_text(claims[::-1]))
    assert not admits(grammar, answer_text([claims[0], claims[0]]))
    assert admits(choice(Strength.SCHEMA, PRODUCT), answer_text([claims[0], claims[0]]))
    two = msgspec.structs.replace(varied("field"), enums={"field": FIELDS[:2]})
    assert admits(choice(Strength.SCHEMA, two), answer_text([claims[0], claims[1], claims[1], claims[0]]))
    assert not admits(choice(Strength.SCHEMA, two), answer_text([claims[0], claims[0], claims[0]]))


def test_more_enumerated_values_than_a_grammar_should_hold_vary_in_fewer_fields() -> None:
    kinds = tuple(f"kind {n}" for n in range(100))
    schema = SchemaSection(
        fields=("kind", "field"), enums={"kind": kinds, "field": FIELDS}, reduce_once=("field", "kind")
    )
    grammar = choice(Strength.SCHEMA, schema)
    first, other, same = (
        ([1], {"kind": kinds[kind], "field": FIELDS[field]}) for kind, field in ((0, 0), (0, 1), (1, 0))
    )
    assert admits(grammar, answer_text([first, other]))
    assert not admits(grammar, answer_text([first, same]))


@pytest.mark.parametrize("strength", [Strength.LITERAL, Strength.PATTERN])
def test_a_full_reduction_says_nothing_or_all_that_it_may(strength: Strength) -> None:
    grammar = choice(strength, msgspec.structs.replace(varied("subject"), reduce_full=True))
    assert admits(grammar, answer_text([]))
    assert admits(grammar, picked(5, 2, 3, 4))
    for fewer in ((2,), (5, 3), (5, 3, 4)):
        assert not admits(grammar, picked(*fewer))
    two = choice(strength, msgspec.structs.replace(PRODUCT, reduce_full=True), FACTS[:2])
    assert admits(two, picked(2, 1))
    assert not admits(two, picked(1))


def test_a_full_reduction_by_schema_has_as_many_claims_as_it_may() -> None:
    grammar = choice(Strength.SCHEMA, msgspec.structs.replace(varied("field"), reduce_full=True))
    claims = [([1], {**DELIVERY, "field": field}) for field in FIELDS]
    assert admits(grammar, answer_text([]))
    assert admits(grammar, answer_text(claims))
    assert not admits(grammar, answer_text(claims[:3]))
    two = choice(Strength.SCHEMA, msgspec.structs.replace(PRODUCT, reduce_full=True), FACTS[:2])
    assert admits(two, answer_text(claims[:2]))
    for others in (claims[:1], claims[:3], claims):  # no more claims than it was given
        assert not admits(two, answer_text(others))


@pytest.mark.parametrize("strength", CONSTRAINED)
def test_leaves_are_not_varied(strength: Strength) -> None:
    facts = lines("Product P-37-05 delivery: 25 February.\nProduct P-37-05 site: Hall 3.\n")
    grammar = leaf_grammar(msgspec.structs.replace(varied("subject", "field"), reduce_full=True), strength, facts)
    assert grammar is not None
    assert admits(grammar, answer_text([([1], DELIVERY)]))
    assert admits(grammar, answer_text([([1], DELIVERY), ([2], {**DELIVERY, "field": "site", "value": "Hall 3"})]))


@pytest.mark.parametrize("strength", [Strength.LITERAL, Strength.PATTERN])
def test_of_claims_about_one_thing_a_choice_takes_any_but_one(strength: Strength) -> None:
    grammar = choice(strength, PRODUCT, [*FACTS[:3], FACTS[5]])
    for numbers in ((1, 2, 3), (3, 2, 1)):
        assert admits(grammar, picked(*numbers))
    newer = ([4], FACTS[5].values)
    assert admits(grammar, answer_text([newer, ([3], FACTS[2].values)]))
    assert not admits(grammar, answer_text([newer, ([1], FACTS[0].values)]))
