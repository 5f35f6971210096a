"""Strict parsing: what is admitted, what is refused and how the refusal reads, and the two repairs."""

from __future__ import annotations

import json

import pytest
from support.products import PRODUCT

from gsum.rules.config import SchemaSection
from gsum.rules.parsing import JSON_FENCE, OUTER_WHITESPACE, Parsed, RawClaim, parse
from gsum.store.records import StopReason

CLAIM = '{"subject":"P-37-05","field":"delivery","value":"25 February","evidence":[2]}'
GOOD = f'{{"claims":[{CLAIM}]}}'
RAW = RawClaim({"subject": "P-37-05", "field": "delivery", "value": "25 February"}, (2,))


def read(text: str, citable: int = 5, stop: StopReason = StopReason.EOS) -> Parsed:
    return parse(text, stop, PRODUCT, citable)


def one(**members: object) -> str:
    claim = {"subject": "P-1", "field": "site", "value": "Hall", "evidence": [1], **members}
    return json.dumps({"claims": [{name: value for name, value in claim.items() if value is not ...}]})


def test_a_claim_keeps_the_fields_of_the_schema_in_order_whatever_the_order_of_keys() -> None:
    text = '{"claims":[{"evidence":[2],"value":"25 February","field":"delivery","subject":"P-37-05"}]}'
    parsed = read(text)
    assert parsed == Parsed((RAW,), None, ())
    assert list(parsed.claims[0].values) == ["subject", "field", "value"]


@pytest.mark.parametrize("stop", [StopReason.EOS, StopReason.GRAMMAR])
def test_an_answer_without_claims_is_valid(stop: StopReason) -> None:
    assert read('{"claims":[]}', 0, stop) == Parsed((), None, ())


def test_where_nothing_could_be_cited_a_citation_is_refused_as_that() -> None:
    assert read(GOOD, 0).diagnostic == "claim 1, `evidence` cites a number that was not given, none was"


def test_a_generation_that_ended_by_length_is_refused_even_if_it_parses() -> None:
    assert read(GOOD, stop=StopReason.LENGTH) == Parsed((), "the generation ended at its length limit", ())


@pytest.mark.parametrize(
    ("text", "repairs"),
    [
        (f" \n\t{GOOD}\r\n\u00a0", (OUTER_WHITESPACE,)),
        (f"```json\n{GOOD}\n```", (JSON_FENCE,)),
        (f"```json \r\n {GOOD}\r\n  ```", (JSON_FENCE,)),
        (f"\n```json\n{GOOD}\n```\n", (OUTER_WHITESPACE, JSON_FENCE)),
        (GOOD, ()),
    ],
)
def test_only_outer_whitespace_and_one_whole_fence_are_repaired(text: str, repairs: tuple[str, ...]) -> None:
    assert read(text) == Parsed((RAW,), None, repairs)


def test_backticks_inside_a_value_are_no_second_fence() -> None:
    inner = one(value="```x```")
    assert read(f"```json\n{inner}\n```").claims[0].values["value"] == "```x```"


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{GOOD}\n```",
        f"```JSON\n{GOOD}\n```",
        f"```json\n{GOOD}",
        f"```json\n{GOOD}```",
        f"```json {GOOD}\n```",
        f"```json\n```json\n{GOOD}\n```\n```",
        f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```",
        f"Here it is:\n```json\n{GOOD}\n```",
        f"```json\n{GOOD}\n```\nDone.",
        f"{GOOD} {GOOD}",
        f"{GOOD};",
        f"\ufeff{GOOD}",
        GOOD[:-1],
        GOOD.replace("}]}", "},]}"),
        GOOD.replace('"', "'"),
        GOOD.replace("[2]", "[2,]"),
        GOOD.replace("[2]", "[02]"),
        GOOD.replace("25 February", "25\nFebruary"),
        GOOD.replace("25 February", "\\x41"),
        "",
        "   ",
        "claims",
    ],
)
def test_nothing_else_is_repaired(text: str) -> None:
    parsed = read(text)
    assert parsed.claims == ()
    assert parsed.diagnostic is not None
    assert parsed.diagnostic.startswith("not JSON: ")


@pytest.mark.parametrize(
    ("text", "diagnostic"),
    [
        ("[]", "the answer is not an object"),
        ("null", "the answer is not an object"),
        ("{}", "the answer is not an object with exactly the key `claims`"),
        ('{"claims":[],"note":1}', "the answer is not an object with exactly the key `claims`"),
        ('{"claims":{}}', "`claims` is not an array"),
        ('{"claims":[7]}', "claim 1 is not an object"),
        (f'{{"claims":[{",".join([CLAIM] * 5)}]}}', "5 claims, at most 4 are allowed"),
        ('{"claims":[],"claims":[]}', "an object has a key twice"),
        (GOOD.replace('"field"', '"subject":"P","field"'), "an object has a key twice"),
        (one(value=...), "claim 1: `value` is missing"),
        (one(evidence=...), "claim 1: `evidence` is missing"),
        (one(note="x"), "claim 1 has a key that the schema does not declare"),
        (one(subject=7), "claim 1, field `subject` is not a string"),
        (one(value=None), "claim 1, field `value` is not a string"),
        (one(value=""), "claim 1, field `value` has 0 characters, 1 to 120 are allowed"),
        (one(value="x" * 121), "claim 1, field `value` has 121 characters, 1 to 120 are allowed"),
        (one(field="price"), "claim 1, field `field` is none of the values that the schema admits"),
        (one(field=["site"]), "claim 1, field `field` is not a string"),
        (one(value="\ud800"), "claim 1, field `value` holds a lone surrogate"),
        (one(evidence=1), "claim 1, `evidence` is not an array"),
        (one(evidence=[]), "claim 1, `evidence` has 0 numbers, 1 to 4 are allowed"),
        (one(evidence=[1, 2, 3, 4, 5]), "claim 1, `evidence` has 5 numbers, 1 to 4 are allowed"),
        (one(evidence=[1, 2, 1]), "claim 1, `evidence` cites a number twice"),
        (one(evidence=[True]), "claim 1, `evidence` holds something that is not an integer"),
        (one(evidence=["1"]), "claim 1, `evidence` holds something that is not an integer"),
        (one(evidence=[0]), "claim 1, `evidence` cites a number that was not given, only 1 to 5 were"),
        (one(evidence=[6]), "claim 1, `evidence` cites a number that was not given, only 1 to 5 were"),
        (one(evidence=[-1]), "claim 1, `evidence` cites a number that was not given, only 1 to 5 were"),
        (one(evidence=[1.0]), "a number is not an integer"),
        (GOOD.replace("[2]", "[1e0]"), "a number is not an integer"),
        (GOOD.replace("[2]", "[1e999]"), "a number is not an integer"),
        (GOOD.replace("[2]", "[NaN]"), "a number is not finite"),
        (GOOD.replace("[2]", "[-Infinity]"), "a number is not finite"),
        (GOOD.replace("[2]", "[1" + "0" * 5000 + "]"), "an integer has more than 9 characters"),
        ("[" * 200_000, "not JSON that can be read: nested too deeply"),
        ('{"a":' * 200_000, "not JSON that can be read: nested too deeply"),
    ],
)
def test_a_refusal_says_what_and_where(text: str, diagnostic: str) -> None:
    assert read(text) == Parsed((), diagnostic, ())


def test_one_bad_claim_refuses_the_whole_answer_and_names_its_place() -> None:
    text = f'{{"claims":[{CLAIM},{CLAIM.replace("delivery", "price")}]}}'
    assert read(text).diagnostic == "claim 2, field `field` is none of the values that the schema admits"


def test_lengths_count_characters() -> None:
    assert read(one(value="\U0001f600" * 120)).diagnostic is None
    assert read(one(value="\u00e9" * 121)).diagnostic is not None


def test_a_schema_decides_fields_and_bounds() -> None:
    schema = SchemaSection(fields=("who",), max_claims=1, max_evidence=1, max_length=3)
    good = '{"claims":[{"who":"Ann","evidence":[1]}]}'
    assert parse(good, StopReason.EOS, schema, 1) == Parsed((RawClaim({"who": "Ann"}, (1,)),), None, ())
    assert parse(good.replace("Ann", "Anna"), StopReason.EOS, schema, 1).diagnostic is not None
    assert parse(good.replace("[1]", "[1,2]"), StopReason.EOS, schema, 2).diagnostic is not None
    assert parse(GOOD, StopReason.EOS, schema, 2).diagnostic == "claim 1: `who` is missing"


@pytest.mark.parametrize(
    ("text", "diagnostic"),
    [
        (GOOD.replace('"claims"', '"claims":[],"claims"'), "an object has a key twice"),
        (GOOD.replace('"evidence"', '"evidence":[1],"evidence"'), "an object has a key twice"),
        (GOOD.replace("[2]", "[2.0]"), "a number is not an integer"),
        (GOOD.replace("[2]", "[2e0]"), "a number is not an integer"),
        (GOOD.replace("[2]", "[NaN]"), "a number is not finite"),
        (GOOD.replace("[2]", "[20000000000]"), "an integer has more than 9 characters"),
        (GOOD.replace("P-37", "P\ud800"), "claim 1, field `subject` holds a lone surrogate"),
        (GOOD.replace("[2]", "[" * 100_000), "not JSON that can be read: nested too deeply"),
    ],
)
def test_what_a_lenient_decoder_might_let_through_is_refused_for_what_it_is(text: str, diagnostic: str) -> None:
    assert read(text, 10**12).diagnostic == diagnostic


def test_an_ordinary_answer_is_read_by_the_compiled_decoder_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("gsum.rules.parsing.json.loads")
    assert read(GOOD) == Parsed((RAW,), None, ())
