"""Audits: what each measure counts, what gold is read, and the extractive baseline's figures on the whole corpus."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from support.engine import results, run_build
from support.gold import EVAL, labels_of
from support.graphs import make_action
from support.memory_store import MemoryStore
from support.products import PRODUCT, readable
from support.workspaces import (
    activate,
    edit_build,
    edit_text,
    make_workspace,
    set_reader,
    withdraw,
)

from gsum.engine.universe import load_universe
from gsum.rules.audit import Audit, Counts, ratio, ratios, total
from gsum.rules.claims import Claim, Result, Status
from gsum.rules.documents import Evidence
from gsum.rules.evidence import catalogue
from gsum.rules.gold import GoldError, decode_gold, encode_gold, parse_labels, select
from gsum.rules.graph import ActionGraph
from gsum.rules.loader import load_workspace
from gsum.rules.metrics import audit, count
from gsum.rules.toml import DeclarationError
from gsum.rules.visibility import VisibilityError, check_graph
from gsum.store.canonical import canonical_json
from gsum.store.digests import sha256_hex

ROOT = Path(__file__).parents[2]

TEXT = "Product P-10-01 delivery: 18 October.\nProduct P-10-01 site: Hall 1.\nOn 23 October we met.\n"


@pytest.fixture
def root(tmp_path):
    root = make_workspace(tmp_path / "w", {"S-1": 5, "S-2": 2}, extra=EVAL)
    for dossier in ("S-1", "S-2"):
        labels_of(root, dossier)
    return root


def audited(built, store, label):
    found = results(built, store)[label]
    assert found.status is Status.VALID
    assert isinstance(found.audit, Audit)
    return found.audit


# ---- the measures ----


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


# ---- audits as targets ----


def test_an_audit_is_built_above_its_summary_and_cached(root):
    store = MemoryStore()
    built = run_build(root, store, "//eval:S-1")
    assert built.report.recomputed[-1] == "//eval:S-1/root"
    assert built.report.pure == ("//eval:S-1/root",)
    found = audited(built, store, "//eval:S-1/root")
    assert (found.counts.claims, found.counts.supported, found.counts.correct, found.counts.expected) == (4, 4, 4, 10)
    assert run_build(root, store, "//eval:S-1").report.recomputed == ()


def test_gold_of_another_version_or_document_that_may_not_be_read_changes_no_key(root):
    before = key(root)
    labels = json.loads((root / "corpus/labels/S-1.json").read_text())
    labels["documents"][0]["versions"][1]["facts"][0]["value"] = "never"
    (root / "corpus/labels/S-1.json").write_text(json.dumps(labels))
    assert key(root) == before
    set_reader(root, "S-1", "D-01", granted=False, revision=2)
    without = key(root)
    labels["documents"][1]["versions"][0]["facts"][0]["value"] = "hidden"
    (root / "corpus/labels/S-1.json").write_text(json.dumps(labels))
    assert key(root) == without
    labels["documents"][0]["versions"][0]["facts"][0]["value"] = "changed"
    (root / "corpus/labels/S-1.json").write_text(json.dumps(labels))
    assert key(root) != without


def test_an_edit_of_gold_audits_again_and_builds_no_summary(root):
    store = MemoryStore()
    run_build(root, store, "//eval:S-1")
    file = root / "corpus/labels/S-1.json"
    file.write_text(file.read_text().replace("Hall 1", "Hall 77"))
    built = run_build(root, store, "//eval:S-1")
    assert built.report.recomputed == ("//eval:S-1/root",)
    assert audited(built, store, "//eval:S-1/root").counts.correct < 4


def test_expected_facts_are_those_of_eligible_documents_at_their_active_versions(root):
    store = MemoryStore()
    activate(root, "S-1", "D-00", "2")
    withdraw(root, "S-1", "D-01")
    set_reader(root, "S-1", "D-02", granted=False, revision=2)
    found = audited(run_build(root, store, "//eval-baseline:S-1"), store, "//eval-baseline:S-1/root")
    assert (found.counts.expected, found.counts.correct, found.counts.supported) == (6, 6, 6)


def test_a_toolchain_chosen_reaches_what_is_audited(root):
    edit_build(root, "[prompt.map-v1]", _other_toolchain() + "[prompt.map-v1]")
    universe = load_universe(root, ["//eval:S-1"], toolchain="other")
    assert universe.graph.actions["//dossier:S-1/leaf-00"].toolchain == "other"
    assert universe.graph.actions["//eval:S-1/root"].toolchain == "other"
    assert load_universe(root, ["//eval-baseline:S-1"]).graph.actions["//eval-baseline:S-1/root"].toolchain is None


def key(root):
    return load_universe(root, ["//eval:S-1"]).keys.actions["//eval:S-1/root"].key


def _other_toolchain():
    return (
        '[toolchain.other]\nexecutor = "command"\ncommand = ["x"]\nidentity = "o"\nreproducible = true\n'
        'network = false\ngrammar = { strength = "none" }\n\n'
    )


# ---- bad gold ----


def test_a_labels_file_that_misses_a_document_is_refused_before_anything_runs(root):
    labels_of(root, "S-1", leave_out=("D-03",))
    _refused(root, "the labels file misses document `D-03`")


def test_a_labels_file_that_misses_the_active_version_is_refused(root):
    labels_of(root, "S-1", versions=("1",))
    load_universe(root, ["//eval:S-1"])
    activate(root, "S-1", "D-04", "2")
    _refused(root, "the labels file misses version `2` of document `D-04`")


def test_gold_of_a_document_that_may_not_be_read_may_be_missing(root):
    labels_of(root, "S-1", leave_out=("D-03",))
    withdraw(root, "S-1", "D-03")
    assert load_universe(root, ["//eval:S-1"])


def test_a_missing_labels_file_is_refused_and_other_packages_do_not_mind(root):
    (root / "corpus/labels/S-1.json").unlink()
    _refused(root, "there is no usable labels file for dossier `S-1`")
    assert load_universe(root, ["//dossier:...", "//eval:S-2"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-1], "the labels file of dossier `S-1` can't be read"),
        (lambda text: text.replace('"schema": 1', '"schema": 2'), "the labels file of dossier `S-1` can't be read"),
        (lambda text: text.replace('"S-1"', '"S-9"'), "a labels file names dossier `S-9`"),
        (lambda text: text.replace('"D-01"', '"D-00"'), "document `D-00` is labelled twice"),
        (lambda text: text.replace('"version": "2"', '"version": "1"'), "version `1` of document `D-00`"),
        (lambda text: text.replace('"field"', '"fields"', 1), "fact 1 of document `D-00` does not give every field"),
        (lambda text: text.replace('"value": "', '"value": 1, "x": "', 1), "fact 1 of document `D-00` does not give"),
    ],
)
def test_malformed_gold_is_refused_and_never_quoted(root, change, message):
    file = root / "corpus/labels/S-1.json"
    file.write_text(change(file.read_text()))
    error = _refused(root, message)
    assert "March" not in str(error.facts)


def test_a_labels_file_may_not_lead_out_of_its_source(root):
    (root / "corpus/labels/S-1.json").rename(root / "elsewhere.json")
    (root / "corpus/labels/S-1.json").symlink_to("../../elsewhere.json")
    _refused(root, "the labels file of dossier `S-1` leads out of its source")


def test_gold_made_for_another_text_of_the_same_version_is_refused(root):
    edit_text(root, "S-1", "D-00", "Product P-1-00 site: Hall 9.\n")
    with pytest.raises(GoldError, match="the gold of document `D-00` was made for another text") as caught:
        run_build(root, MemoryStore(), "//eval:S-1")
    assert caught.value.exit_code == 3


def _refused(root, message):
    with pytest.raises(GoldError) as caught:
        load_universe(root, ["//eval:S-1"])
    assert caught.value.message.startswith(message)
    assert caught.value.exit_code == 3
    return caught.value


# ---- declarations and visibility ----


def test_an_audit_package_takes_source_and_schema_of_what_it_audits(root):
    package = load_workspace(root).packages["eval"]
    assert (package.targets, package.labels, package.sources, package.schema) == (
        "dossier",
        "labels",
        "corpus",
        "product",
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('targets = "dossier"', 'targets = "dosier"', "package of summaries `dosier` is not declared"),
        ('targets = "dossier"', 'targets = "eval-baseline"', "package of summaries `eval-baseline` is not declared"),
        (
            'targets = "dossier"\nlabels = "labels"',
            'targets = "dossier"\nlabels = "corpus"',
            "source `corpus` holds no gold",
        ),
        (
            'targets = "dossier"\nlabels = "labels"',
            'targets = "dossier"\nlabels = "gold"',
            "source `gold` is not declared",
        ),
        ('targets = "dossier"', 'targets = "dossier"\nsources = "corpus"', "`package.eval` has no key `sources`"),
    ],
)
def test_a_wrong_audit_package_is_shown_where_it_stands(root, old, new, message):
    edit_build(root, old, new)
    with pytest.raises(DeclarationError) as caught:
        load_workspace(root)
    assert caught.value.message == message
    assert caught.value.exit_code == 3


def test_gold_stays_out_of_reach_of_summaries_beside_an_audit_package(root):
    edit_build(root, 'rule = "extract"\nsources = "corpus"', 'rule = "extract"\nsources = "labels"')
    for pattern in ("//baseline:S-1", "//eval-baseline:S-1"):
        with pytest.raises(VisibilityError) as caught:
            load_universe(root, [pattern])
        assert caught.value.exit_code == 3


def test_below_an_audit_only_the_audit_itself_holds_gold(root):
    graph = load_universe(root, ["//eval:..."]).graph
    assert [action.label for action in graph.actions.values() if action.source == "labels"] == [
        "//eval:S-1/root",
        "//eval:S-2/root",
    ]


@pytest.mark.parametrize("audit_first", [True, False])
def test_nothing_may_be_made_from_an_audit_in_whatever_order_targets_are_asked_for(root, audit_first):
    workspace = load_workspace(root)
    audit_action = load_universe(root, ["//eval:S-1"]).graph.actions["//eval:S-1/root"]
    below = {audit_action.children[0]: make_action(audit_action.children[0])}
    middle = make_action("//dossier:S-1/reduce-09", [audit_action.label])
    top = make_action("//dossier:S-1/top", [middle.label])
    actions = below | {action.label: action for action in (audit_action, middle, top)}
    requested = (audit_action.label, top.label) if audit_first else (top.label, audit_action.label)
    with pytest.raises(VisibilityError) as caught:
        check_graph(workspace, ActionGraph(actions, requested))
    assert caught.value.facts["path"] == ("//dossier:S-1/top → //dossier:S-1/reduce-09 → //eval:S-1/root → //labels")
    check_graph(workspace, ActionGraph(below | {audit_action.label: audit_action}, (audit_action.label,)))


# ---- the extractive baseline on the whole corpus ----


def test_the_extractive_baseline_finds_every_fact_of_every_group(tmp_path):
    root = tmp_path / "w"
    shutil.copytree(ROOT / "corpus/dossiers", root / "corpus/dossiers")
    shutil.copytree(ROOT / "corpus/labels", root / "corpus/labels")
    shutil.copy(ROOT / "BUILD.toml", root)
    store = MemoryStore()
    initial = _audits(root, store, [f"S-0{number}" for number in range(10, 40)])
    development = total(found for found in initial if found.split == "development")
    test = total(found for found in initial if found.split == "test")
    dossiers = [found.dossier for found in initial if found.split == "test"]
    mutated = []
    for step in range(3):
        for dossier in dossiers:
            number = dossier[-2:]
            if step == 0:
                activate(root, dossier, f"D-{number}-00", "2")
            elif step == 1:
                withdraw(root, dossier, f"D-{number}-04")
            else:
                set_reader(root, dossier, f"D-{number}-08", granted=False, revision=2)
        mutated += _audits(root, store, dossiers)
    mutations = total(mutated)
    assert [group.counts.expected for group in (development, test, mutations)] == [480, 960, 2640]
    for group in (development, test, mutations):
        expected = group.counts.expected
        counts = group.counts
        assert group.statuses == {"VALID": group.summaries}
        assert (counts.claims, counts.reference_valid, counts.supported) == (expected, expected, expected)
        assert (counts.predicted, counts.correct, group.unsupported, group.duplicates) == (expected, expected, 0, 0)
        assert group.ratios.precision == group.ratios.recall == "1.0000"
    assert (development.summaries, test.summaries, mutations.summaries) == (10, 20, 60)


def _audits(root, store, dossiers):
    built = run_build(root, store, *(f"//eval-baseline:{dossier}" for dossier in dossiers))
    found = results(built, store)
    return [found[f"//eval-baseline:{dossier}/root"].audit for dossier in dossiers]


def test_gold_is_written_canonically_and_read_back():
    gold = gold_of_text()
    assert decode_gold(encode_gold(gold).decode()) == gold


def test_an_evidence_record_of_the_corpus_is_what_the_tests_take_it_for():
    assert isinstance(RECORDS[0], Evidence)
    assert RECORDS[0].id == "D@1:0:37"
