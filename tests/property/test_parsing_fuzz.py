"""The parser never raises, never repeats the text, and admits only claims of the schema, whole and exact."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.products import FIELDS, PRODUCT

from gsum.rules import parsing
from gsum.rules.parsing import parse
from gsum.store.records import StopReason

SECRET = "zq7zq"
CITABLE = 3
SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 8) | st.floats() | st.sampled_from([*FIELDS, "", SECRET, "x" * 121])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from([*"ab", SECRET]), inner),
    max_leaves=5,
)
CITED = st.lists(st.integers(1, CITABLE), min_size=1, max_size=3, unique=True)
NUMBERS = st.lists(st.integers(0, CITABLE + 1) | SCALARS, max_size=5)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
GOOD = st.fixed_dictionaries({"evidence": CITED, "value": TEXTS, "field": st.sampled_from(FIELDS), "subject": TEXTS})
WRONG = st.dictionaries(
    st.sampled_from(["subject", "field", "value", SECRET]), VALUES, max_size=1
) | st.fixed_dictionaries({"evidence": NUMBERS})
CLAIMS = GOOD | GOOD | st.builds(lambda good, wrong: {**good, **wrong}, GOOD, WRONG) | VALUES
ANSWERS = st.fixed_dictionaries(
    {"claims": st.lists(CLAIMS, max_size=5)}, optional={"note": VALUES}
) | st.fixed_dictionaries({"claims": st.lists(GOOD, max_size=5) | VALUES})
JSONISH = st.text(st.sampled_from('{}[]",:\\u0d8e\n `json1-.claimsubtfvNI\ud800'), max_size=60)


@given(st.text() | JSONISH, st.sampled_from(StopReason), st.integers(0, 5))
def test_any_text_parses_or_is_refused(text: str, stop: StopReason, citable: int) -> None:
    parsed = parse(text, stop, PRODUCT, citable)
    assert parsed.diagnostic is None or parsed.claims == ()


@given(ANSWERS | VALUES, st.sampled_from(["{}", "```json\n{}\n```", "  {}", "{} " + SECRET, SECRET + "{}"]))
def test_a_diagnostic_repeats_nothing_of_the_text(answer: object, frame: str) -> None:
    parsed = parse(frame.replace("{}", json.dumps(answer)), StopReason.EOS, PRODUCT, CITABLE)
    assert SECRET not in (parsed.diagnostic or "")
    assert SECRET not in "".join(parsed.repairs)


def admitted(answer: object) -> bool:
    """A second statement of the rules, over decoded values."""
    if not isinstance(answer, dict) or list(answer) != ["claims"] or not isinstance(answer["claims"], list):
        return False
    return len(answer["claims"]) <= 4 and all(map(admitted_claim, answer["claims"]))


def admitted_claim(claim: object) -> bool:
    if not isinstance(claim, dict) or sorted(claim) != ["evidence", "field", "subject", "value"]:
        return False
    cited = claim["evidence"]
    return (
        all(isinstance(claim[name], str) and 0 < len(claim[name]) <= 120 for name in ("subject", "value"))
        and isinstance(claim["field"], str)
        and claim["field"] in FIELDS
        and isinstance(cited, list)
        and all(type(number) is int and 0 < number <= CITABLE for number in cited)
        and 0 < len(cited) == len(set(cited)) <= 4
    )


@settings(max_examples=400)
@given(ANSWERS)
def test_exactly_the_admitted_answers_are_parsed(answer: dict[str, object]) -> None:
    parsed = parse(json.dumps(answer), StopReason.EOS, PRODUCT, CITABLE)
    assert (parsed.diagnostic is None) == admitted(answer)
    if parsed.diagnostic is None:
        again = [{**claim.values, "evidence": list(claim.evidence)} for claim in parsed.claims]
        assert again == answer["claims"]


def exact(answer: object, twice: bool, spaced: str) -> str:
    """An answer as JSON text with as few escapes as can be; `twice`: a claim in it has a key twice."""
    text = json.dumps(answer, ensure_ascii=False, separators=(f"{spaced},", f":{spaced}"))
    return text.replace('"evidence"', '"evidence":[1],"evidence"', 1) if twice else text


SPACES = st.sampled_from(["", " ", "\n", "\u00a0"])


@settings(max_examples=600)
@given(st.builds(exact, ANSWERS, st.booleans(), SPACES) | JSONISH, st.integers(0, 5))
def test_what_the_quick_reading_admits_the_slow_one_admits_with_the_same_claims(text: str, citable: int) -> None:
    quick = parse(text, StopReason.EOS, PRODUCT, citable)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "_plain_claims", lambda *_: None)
        assert parse(text, StopReason.EOS, PRODUCT, citable) == quick
