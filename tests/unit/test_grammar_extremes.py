"""What becomes of a leaf where its grammar can say little or nothing, or the document is far too long."""

from __future__ import annotations

import msgspec
import pytest
from support.grammars import TOKENIZER, admits, matcher
from support.products import PRODUCT, generated, inputs_of, readable, snapshot_of

from gsum.rules.claims import Status
from gsum.rules.config import Strength, SummaryTreePackage
from gsum.rules.documents import lines
from gsum.rules.grammar import answer_text, leaf_grammar
from gsum.rules.kinds import RULES
from gsum.rules.requests import Request

TREE = RULES["summary_tree"]
PACKAGE = SummaryTreePackage("corpus", "map-v1", "reduce-v1", "product", 4, 2048, 3072)
CONSTRAINED = [Strength.SCHEMA, Strength.LITERAL, Strength.PATTERN]
EMPTY = '{"claims":[]}'
LONG_VALUES = "".join(f"Product P-37-0{n} site: {'x' * 60} {'y' * 60}.\n" for n in range(4))
LONG_WORDS = "".join(f"P-37-0{n} {'x' * 121}\n" for n in range(4))
WIDE = msgspec.structs.replace(
    PRODUCT, fact_pattern=r"Product (?P<subject>P-\d+-\d+) (?P<field>\w+): (?P<value>[^.\n]+)\."
)
FREE = msgspec.structs.replace(PRODUCT, fact_pattern=None)


@pytest.mark.parametrize(
    ("strength", "text"),
    [(Strength.LITERAL, LONG_WORDS), (Strength.PATTERN, LONG_WORDS), (Strength.PATTERN, LONG_VALUES)],
)
def test_a_document_whose_every_line_is_too_long_gives_a_valid_summary_of_nothing(
    strength: Strength, text: str
) -> None:
    leaf = TREE.expand("dossier", PACKAGE, snapshot_of([readable("D-1", text)]), "t")[0]
    inputs = inputs_of(text=text, strength=strength)
    asked = TREE.render(leaf, inputs)
    assert isinstance(asked, Request)
    assert asked.grammar is not None
    assert bytes(matcher(asked.grammar).compute_ff_tokens()) == EMPTY.encode()
    result = TREE.resolve(leaf, inputs, generated(EMPTY))
    assert (result.status, result.claims) == (Status.VALID, ())


@pytest.mark.parametrize("strength", CONSTRAINED)
def test_no_claims_can_always_be_said(strength: Strength) -> None:
    for text in ("", "Hall 3", LONG_VALUES, LONG_WORDS, "Product P-37-05 site: Hall 3.\n", "***\n?\n"):
        grammar = leaf_grammar(PRODUCT, strength, lines(text))
        assert grammar is not None
        assert admits(grammar, EMPTY)


FIVE_THOUSAND = "".join(f"Product P-37-{n} site: Hall {n}.\n" for n in range(5_000))


@pytest.mark.parametrize("strength", CONSTRAINED)
def test_five_thousand_lines_give_a_grammar_that_is_followed_or_refused_for_its_size(strength: Strength) -> None:
    import llguidance

    grammar = leaf_grammar(WIDE, strength, lines(FIVE_THOUSAND))
    assert grammar is not None
    assert len(grammar) < 4_000_000
    machine = llguidance.LLMatcher(TOKENIZER, llguidance.LLMatcher.grammar_from_lark(grammar), log_level=0)
    answer = answer_text([([5_000], {"subject": "P-37-4999", "field": "site", "value": "Hall 4999"})])
    taken = machine.try_consume_tokens(list(answer.encode()))
    if strength is Strength.SCHEMA:
        assert taken == len(answer)
    else:
        assert "max is 2000" in machine.get_error().partition("\n")[0]


@pytest.mark.parametrize("count", [250, 501, 999, 1000, 5_000, 12_345])
def test_under_schema_exactly_the_numbers_of_the_lines_are_citable(count: int) -> None:
    grammar = leaf_grammar(PRODUCT, Strength.SCHEMA, lines("Hall 3\n" * count))
    assert grammar is not None
    claim = {"subject": "P-37-05", "field": "site", "value": "Hall 3"}
    for number in {1, 9, 10, 99, 100, count // 2, count - 1, count}:
        assert admits(grammar, answer_text([([number], claim)]))
    for number in (0, count + 1, count + 10, count * 10):
        assert not admits(grammar, answer_text([([number], claim)]))
    assert admits(grammar, answer_text([([1, 2, count], claim)]))
    assert not admits(grammar, answer_text([([1, 2, 3, 4, 5], claim)]))
    assert admits(grammar, answer_text([([2, 2], claim)])) == (count > 500)


CITABLE = ["Hall 3", "— October —", "x", "| a | b |", "said: then", "«Brief» und Siegel", "\u65e5", "a " * 200]
NOT_CITABLE = ["***", "…", "Where is it?", '"It was never there at all"', "x" * 121]


def test_without_a_fact_pattern_every_line_is_citable_that_states_something() -> None:
    grammar = leaf_grammar(FREE, Strength.LITERAL, lines("\n".join([*CITABLE, *NOT_CITABLE])))
    assert grammar is not None
    words = ["Hall", "October", "x", "a", "then", "Siegel", "\u65e5", "a"]
    for number, word in enumerate(words, 1):
        assert admits(grammar, answer_text([([number], {"subject": word, "field": "site", "value": word})]))
    for number, line in enumerate(NOT_CITABLE, len(CITABLE) + 1):
        for word in {line[:1], line.strip('"?'), line.split()[-1]}:
            assert not admits(grammar, answer_text([([number], {"subject": word, "field": "site", "value": word})]))
