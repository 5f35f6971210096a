"""Audits: what each measure counts."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from support.products import PRODUCT, readable

from gsum.rules.audit import Audit, Counts, ratio, ratios, total
from gsum.rules.claims import Claim, Result, Status
from gsum.rules.documents import Evidence
from gsum.rules.evidence import catalogue
from gsum.rules.gold import decode_gold, encode_gold, parse_labels, select
from gsum.rules.metrics import audit, count
from gsum.store.canonical import canonical_json
from gsum.store.digests import sha256_hex

ROOT = Path(__file__).parents[2]

TEXT = "Product P-10-01 delivery: 18 October.\nProduct P-10-01 site: Hall 1.\nOn 23 October we met.\n"


def gold_of_text():
    raw = {
        "schema": 1,
        "dossier": "S-1",
        "split": "test",
        "documents": [
            {
                "document": "D",
                "versions": [
                    {
                        "version": "1",
                        "text_sha256": sha256_hex(TEXT.encode()),
                        "facts": [
                            {"product": "P-10-01", "field": "delivery", "value": "18 October"},
                            {"product": "P-10-01", "field": "site", "value": "Hall 1"},
                        ],
                    }
                ],
            }
        ],
    }
    labels = parse_labels(json.dumps(raw).encode(), "f", "S-1")
    return select(labels, [readable("D", TEXT)], PRODUCT.fields, "f")


RECORDS = catalogue(readable("D", TEXT), TEXT)


def result_of(*claims, records=RECORDS, status=Status.VALID):
    made = tuple(Claim({"subject": "P-10-01", "field": field, "value": value}, cited) for field, value, cited in claims)
    return Result(status, made, tuple(records))


def test_a_claim_that_says_one_date_and_cites_a_real_line_that_says_another_is_valid_in_reference_and_unsupported():
    result = result_of(("delivery", "23 October", (RECORDS[0].id,)))
    counts = count(result, gold_of_text(), PRODUCT)
    assert RECORDS[0].quote == "Product P-10-01 delivery: 18 October."
    assert (counts.references, counts.valid_references, counts.reference_valid) == (1, 1, 1)
    assert (counts.supported, counts.unsupported, counts.correct) == (0, 1, 0)
    assert ratios(counts).reference_validity == "1.0000"
    assert ratios(counts).support == "0.0000"


def test_a_true_claim_that_cites_another_line_is_correct_and_not_supported():
    """Development has 5 supported and 6 correct in the reference: correct looks at no citation."""
    counts = count(result_of(("delivery", "18 October", (RECORDS[2].id,))), gold_of_text(), PRODUCT)
    assert (counts.supported, counts.correct, counts.reference_valid) == (0, 1, 1)
    counts = count(result_of(("delivery", "18 October", (RECORDS[0].id,))), gold_of_text(), PRODUCT)
    assert (counts.supported, counts.correct, counts.reference_valid) == (1, 1, 1)


def test_one_quote_of_several_that_states_the_claim_supports_it():
    counts = count(result_of(("site", "Hall 1", (RECORDS[2].id, RECORDS[1].id))), gold_of_text(), PRODUCT)
    assert (counts.supported, counts.references, counts.valid_references) == (1, 2, 2)


def test_one_invalid_reference_takes_validity_and_support_from_a_claim_and_not_correctness():
    counts = count(result_of(("site", "Hall 1", (RECORDS[1].id, "D@1:0:9"))), gold_of_text(), PRODUCT)
    assert (counts.references, counts.valid_references, counts.reference_valid) == (2, 1, 0)
    assert (counts.supported, counts.correct) == (0, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"version": "2"},
        {"text_sha256": "0" * 64},
        {"doc_id": "E"},
        {"start": -1},
        {"end": 5},
        {"quote": "short"},
        {"id": "D@1:0:4"},
    ],
)
def test_a_record_that_does_not_fit_the_snapshot_is_no_valid_reference(change):
    wrong = msgspec.structs.replace(RECORDS[0], **change)
    counts = count(result_of(("delivery", "18 October", (wrong.id,)), records=(wrong,)), gold_of_text(), PRODUCT)
    assert (counts.valid_references, counts.reference_valid, counts.supported) == (0, 0, 0)


def test_a_claim_without_references_has_no_valid_ones():
    assert count(result_of(("site", "Hall 1", ())), gold_of_text(), PRODUCT).reference_valid == 0


def test_duplicates_are_counted_once_in_precision():
    same = ("site", "Hall 1", (RECORDS[1].id,))
    found = audit(result_of(same, same, ("site", "Hall 9", (RECORDS[1].id,))), gold_of_text(), PRODUCT)
    assert (found.counts.claims, found.counts.predicted, found.duplicates, found.counts.correct) == (3, 2, 1, 1)
    assert (found.ratios.precision, found.ratios.recall) == ("0.5000", "0.5000")


def test_a_quote_that_holds_a_fact_and_more_does_not_support():
    text = "Note: Product P-10-01 site: Hall 1.\n"
    record = catalogue(readable("D", text), text)[0]
    assert count(result_of(("site", "Hall 1", (record.id,)), records=(record,)), gold_of_text(), PRODUCT).supported == 0


def test_ratios_with_nothing_under_them_are_null_and_never_perfect():
    found = audit(result_of(status=Status.INVALID), gold_of_text(), PRODUCT)
    assert (found.ratios.precision, found.ratios.support, found.ratios.reference_validity) == (None, None, None)
    assert (found.ratios.recall, found.counts.expected, found.summary) == ("0.0000", 2, "INVALID")
    assert ratio(0, 0) is None
    assert ratio(65, 127) == "0.5118"
    assert ratio(65, 2640) == "0.0246"


def test_support_is_null_where_no_fact_pattern_defines_it():
    schema = msgspec.structs.replace(PRODUCT, fact_pattern=None)
    found = audit(result_of(("site", "Hall 1", (RECORDS[1].id,))), gold_of_text(), schema)
    assert (found.counts.supported, found.unsupported, found.ratios.support) == (None, None, None)
    assert total([found]).counts.supported is None


def test_groups_add_counts_and_then_divide():
    """Mean precision of 1/1 and 0/3 would be one half; it is 1/4."""
    one = Audit("A", "test", "VALID", Counts(1, 1, 1, 1, 1, 1, 1, 4), 0, 0, ratios(Counts()))
    other = Audit("B", "test", "PARTIAL", Counts(4, 4, 4, 4, 0, 3, 0, 4), 4, 1, ratios(Counts()))
    group = total([one, other, msgspec.structs.replace(one, counts=Counts(expected=4), summary="INVALID")])
    assert group.ratios.precision == "0.2500"
    assert group.ratios.recall == ratio(1, 12)
    assert (group.summaries, group.statuses) == (3, {"INVALID": 1, "PARTIAL": 1, "VALID": 1})
    assert (group.unsupported, group.duplicates) == (4, 1)


def test_the_stored_record_holds_counts_beside_every_ratio_and_no_fractions():
    data = json.loads(canonical_json(Result(Status.VALID, audit=audit(result_of(), gold_of_text(), PRODUCT))))
    assert set(data["audit"]["counts"]) == set(Counts.__struct_fields__)
    assert data["audit"]["ratios"] == {
        "precision": None,
        "recall": "0.0000",
        "reference_validity": None,
        "support": None,
    }
    assert data["audit"]["schema"] == 1


def test_results_without_an_audit_are_stored_as_before():
    assert b"audit" not in canonical_json(Result(Status.VALID))


def test_gold_is_written_canonically_and_read_back():
    gold = gold_of_text()
    assert decode_gold(encode_gold(gold).decode()) == gold


def test_an_evidence_record_of_the_corpus_is_what_the_tests_take_it_for():
    assert isinstance(RECORDS[0], Evidence)
    assert RECORDS[0].id == "D@1:0:37"
