"""Audits as targets: what their keys depend on, what gold and which packages are refused, and the extractive baseline's
figures on the whole corpus.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.engine import results, run_build
from support.fake_executor import FakeExecutor
from support.gold import EVAL, labels_of
from support.graphs import make_action
from support.memory_store import MemoryStore
from support.workspaces import (
    activate,
    edit_build,
    edit_text,
    make_workspace,
    set_reader,
    withdraw,
)

from gsum.engine.events import ActionFailed
from gsum.engine.universe import load_universe
from gsum.rules.audit import Audit, total
from gsum.rules.claims import Status
from gsum.rules.gold import GoldError
from gsum.rules.graph import ActionGraph
from gsum.rules.loader import load_workspace
from gsum.rules.toml import DeclarationError
from gsum.rules.visibility import VisibilityError, check_graph

ROOT = Path(__file__).parents[2]


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


# ---- audits as targets ----


def test_an_audit_is_built_above_its_summary_and_cached(root):
    store = MemoryStore()
    built = run_build(root, store, "//eval:S-1")
    assert built.report.recomputed[-1] == "//eval:S-1/root"
    assert built.report.pure == ("//eval:S-1/root",)
    found = audited(built, store, "//eval:S-1/root")
    assert (found.counts.claims, found.counts.supported, found.counts.correct, found.counts.expected) == (4, 4, 4, 10)
    assert run_build(root, store, "//eval:S-1").report.recomputed == ()


class Harming(FakeExecutor):
    """Does something to the workspace before its first answer: all was surveyed by then."""

    def __init__(self, harm) -> None:
        super().__init__()
        self._harm = harm

    def wait(self, timeout):
        if not self.calls:
            self._harm()
        return super().wait(timeout)


@pytest.mark.parametrize(
    "harm",
    [
        lambda root: (root / "corpus/labels/S-1.json").unlink(),
        lambda root: (root / "corpus/labels/S-1.json").write_text("{"),
        lambda root: (root / "corpus/dossiers/S-1/dossier.toml").write_text("["),
    ],
    ids=["removed", "broken", "manifest broken"],
)
def test_gold_that_can_t_be_read_any_more_in_mid_build_fails_its_audit_and_no_other_target(root, harm):
    built = run_build(root, MemoryStore(), "//eval:all", executor=Harming(lambda: harm(root)), keep_going=True)
    (failed,) = built.of(ActionFailed)
    assert (failed.label, failed.reason, failed.exit_code) == ("//eval:S-1/root", "source_changed", 4)
    assert failed.message == "the gold of dossier `S-1` can't be read any more"
    assert failed.facts["file"] == "corpus/labels/S-1.json" and failed.facts["now"]
    assert built.report.exit_code == 4
    assert "//eval:S-2/root" in built.report.pure and "//dossier:S-1/root" in built.report.generated


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
    error = _refused(root, "the labels file misses document `D-03`")
    assert error.exit_code == 3


def test_a_labels_file_that_misses_the_active_version_is_refused(root):
    labels_of(root, "S-1", versions=("1",))
    load_universe(root, ["//eval:S-1"])
    activate(root, "S-1", "D-04", "2")
    error = _refused(root, "the labels file misses version `2` of document `D-04`")
    assert error.exit_code == 3


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
    error = _refused(root, "the labels file of dossier `S-1` leads out of its source")
    assert error.exit_code == 3


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
