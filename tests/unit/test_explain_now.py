"""Why a target would run now: one edit after the other, with the words that are printed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.explaining import ROOT, Case, causes, tree
from support.workspaces import (
    activate,
    document_text,
    edit_build,
    edit_manifest,
    edit_text,
    restore,
    set_fan_in,
    set_prompt,
    set_reader,
    withdraw,
)

from gsum.engine.explain import CauseKind, Verdict, explain
from gsum.engine.universe import WorkspaceDocuments, load_universe
from gsum.rules.ingest import SourceChanged


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """A built workspace of twelve documents."""
    built = Case(tmp_path / "ws", {"S-1": 12})
    built.build()
    return built


BRANCH = ["leaf-11", "reduce-02", "root"]


def test_what_is_current_would_not_run(case: Case) -> None:
    explanation = case.now()
    assert explanation.verdict is Verdict.CURRENT
    assert (explanation.runs, explanation.causes, explanation.nodes) == ((), (), ())


def test_a_new_version_is_one_cause_of_a_whole_branch(case: Case) -> None:
    activate(case.root, "S-1", "D-11", "2")
    explanation = case.now()
    assert explanation.verdict is Verdict.STALE
    assert causes(explanation) == {"document `D-11`: version 1 → 2, line 2 changed": BRANCH}
    assert [tree(node) for node in explanation.nodes] == [{"root": [{"reduce-02": [{"leaf-11": []}]}]}]
    cause = explanation.causes[0]
    assert cause.subject == "//corpus:S-1/D-11"
    assert [change.name for change in cause.fields] == ["source.version", "source.text"]
    assert cause.details == (
        "@@ -1,3 +1,3 @@",
        " Reference S-1/11.",
        "-Product P-1-11 delivery: 12 March.",
        "+Product P-1-11 delivery: 12 April.",
        " Product P-1-11 site: Hall 12.",
    )


def test_an_edit_within_a_version_names_its_lines(case: Case) -> None:
    edit_text(case.root, "S-1", "D-11", document_text("S-1", 11) + "One more.\n")
    assert causes(case.now()) == {"document `D-11`: version 1, line 4 added": BRANCH}


def test_a_version_of_the_same_text_says_so(case: Case) -> None:
    edit_text(case.root, "S-1", "D-11", document_text("S-1", 11), version="2")
    activate(case.root, "S-1", "D-11", "2")
    assert causes(case.now()) == {"document `D-11`: version 1 → 2, same text": BRANCH}


def test_withdrawal_and_restoration(case: Case) -> None:
    withdraw(case.root, "S-1", "D-11")
    assert causes(case.now()) == {"document `D-11` withdrawn": BRANCH}
    case.build()
    restore(case.root, "S-1", "D-11")
    assert case.now().verdict is Verdict.CURRENT
    activate(case.root, "S-1", "D-11", "2")
    assert causes(case.now()) == {"document `D-11` restored": BRANCH}


@pytest.mark.parametrize(
    ("granted", "revision", "text"),
    [
        (False, 2, "access of `reader-demo` to `D-11` revoked (revision 1 → 2)"),
        (True, 3, "access of `reader-demo` to `D-11`: revision 1 → 3"),
    ],
)
def test_access(case: Case, granted: bool, revision: int, text: str) -> None:
    set_reader(case.root, "S-1", "D-11", granted=granted, revision=revision)
    assert causes(case.now()) == {text: BRANCH}
    case.build()
    set_reader(case.root, "S-1", "D-11", granted=True, revision=revision + 1)
    regained = f"access of `reader-demo` to `D-11` granted (revision {revision} → {revision + 1})"
    kept = f"access of `reader-demo` to `D-11`: revision {revision} → {revision + 1}"
    assert causes(case.now()) == {kept if granted else regained: BRANCH}


def test_a_changed_prompt_is_one_cause_of_all_that_use_it(case: Case) -> None:
    set_prompt(case.root, "reduce-v1", "Choose others.")
    explanation = case.now()
    (cause,) = explanation.causes
    assert cause.text.startswith("prompt `reduce-v1`: `instruction` changed (was `")
    assert [target.rpartition("/")[2] for target in cause.targets] == ["reduce-00", "reduce-01", "reduce-02", "root"]
    assert cause.details[:4] == (
        "@@ -1,4 +1,4 @@",
        " [instruction]",
        "-Choose the facts to keep.",
        "+Choose others.",
    )
    assert [tree(node) for node in explanation.nodes] == [
        {"root": [{"reduce-00": []}, {"reduce-01": []}, {"reduce-02": []}]}
    ]


def test_another_prompt_is_named_with_the_one_before(case: Case) -> None:
    new = '[prompt.reduce-v2]\nsystem = "Read."\ninstruction = "Keep all."\n\n[schema.product]'
    edit_build(case.root, "[schema.product]", new)
    edit_build(case.root, 'reduce_prompt = "reduce-v1"', 'reduce_prompt = "reduce-v2"')
    (cause,) = case.now().causes
    assert cause.text == "prompt `reduce-v1` → `reduce-v2`"
    assert {"-Choose the facts to keep.", "+Keep all.", "-Read a list of claims.", "+Read."} <= set(cause.details)
    edit_build(case.root, "[prompt.reduce-v1]", "[prompt.former]")
    assert case.now().causes[0].text == "prompt `former` → `reduce-v2`"


def test_a_prompt_under_another_name_changes_nothing(case: Case) -> None:
    edit_build(case.root, "[prompt.reduce-v1]", "[prompt.renamed]")
    edit_build(case.root, 'reduce_prompt = "reduce-v1"', 'reduce_prompt = "renamed"')
    assert case.now().verdict is Verdict.CURRENT


@pytest.mark.parametrize(
    ("old", "new", "text", "count"),
    [
        ("map_input_tokens = 2048", "map_input_tokens = 99", "`map_input_tokens`: 2048 → 99", 16),
        ("reduce_input_tokens = 3072", "reduce_input_tokens = 99", "`reduce_input_tokens`: 3072 → 99", 4),
        ('principal = "reader-demo"\n', 'principal = "reader-demo"\nsalt = "2"\n', "`salt`: empty → `2`", 16),
        ('identity = "fake-1"', 'identity = "fake-2"', "toolchain `fake`: `identity` `fake-1` → `fake-2`", 16),
        ('fields = ["subject"', 'max_claims = 3\nfields = ["subject"', "schema `product`: `max_claims` 4 → 3", 16),
    ],
)
def test_a_setting_is_one_cause(case: Case, old: str, new: str, text: str, count: int) -> None:
    edit_build(case.root, old, new)
    (cause,) = case.now().causes
    assert cause.text == text
    assert len(cause.targets) == count


def test_another_fan_in_leaves_the_leaves_alone(case: Case) -> None:
    set_fan_in(case.root, 3)
    explanation = case.now()
    inner = ["reduce-00", "reduce-01", "reduce-02", "reduce-03", "reduce2-00", "reduce2-01", "root"]
    assert causes(explanation) == {"`fan_in`: 4 → 3": inner}


def test_causes_are_told_apart_and_from_their_consequences(case: Case) -> None:
    activate(case.root, "S-1", "D-11", "2")
    withdraw(case.root, "S-1", "D-04")
    set_reader(case.root, "S-1", "D-08", granted=False, revision=2)
    set_fan_in(case.root, 3)
    assert causes(case.now()) == {
        "document `D-11`: version 1 → 2, line 2 changed": ["leaf-11", "reduce-03", "reduce2-01", "root"],
        "document `D-04` withdrawn": ["leaf-04", "reduce-01", "reduce2-00", "root"],
        "access of `reader-demo` to `D-08` revoked (revision 1 → 2)": ["leaf-08", "reduce-02", "reduce2-00", "root"],
        "`fan_in`: 4 → 3": ["reduce-00", "reduce-01", "reduce-02", "reduce-03", "reduce2-00", "reduce2-01", "root"],
    }


def manifest_entries(root: Path, edit: Callable[[list[str]], list[str]]) -> None:
    file = root / "corpus/dossiers/S-1/dossier.toml"
    head, *entries = file.read_text().split("\n[[documents]]")
    file.write_text("\n[[documents]]".join([head, *edit(entries)]))


def test_a_removed_document_is_the_cause_of_all_that_shifts(case: Case) -> None:
    manifest_entries(case.root, lambda entries: entries[:9] + entries[10:])
    explanation = case.now()
    assert causes(explanation) == {"document `D-09` removed": ["reduce-02", "root"]}
    (root,) = explanation.nodes
    assert (root.causes, root.children[0].causes) == ((), (0,))  # found where it happened, not all the way up
    manifest_entries(case.root, lambda entries: entries[1:])
    assert causes(case.now()) == {
        "document `D-00` removed": ["reduce-00", "reduce-01", "reduce-02", "root"],
        "document `D-09` removed": ["reduce-02", "root"],
    }


def test_an_added_document_makes_its_leaf_run_and_all_that_shifts(case: Case) -> None:
    manifest_entries(case.root, lambda entries: entries[:4] + entries[5:])
    case.build()
    shutil.copytree(case.root, case.root.parent / "copy")
    last = '\n[[documents]]\nid = "D-12"\nversions = { 1 = "documents/D-04.v1.txt" }\nactive = "1"\nwithdrawn = false\n'
    file = case.root / "corpus/dossiers/S-1/dossier.toml"
    file.write_text(file.read_text() + last + "readers = { reader-demo = { granted = true, revision = 1 } }\n")
    (cause,) = case.now().causes
    assert cause.text == "document `D-12` added"
    assert cause.note == "the number of documents changes which of them stand in one group"
    assert [target.rpartition("/")[2] for target in cause.targets] == BRANCH


def test_moved_documents_are_one_cause(case: Case) -> None:
    manifest_entries(case.root, lambda entries: [entries[1], entries[0], *entries[2:]])
    (cause,) = case.now().causes
    assert cause.kind is CauseKind.REORDERED
    assert [target.rpartition("/")[2] for target in cause.targets] == ["reduce-00", "root"]


def test_a_leaf_alone_can_only_tell_that_another_document_stands_there(case: Case) -> None:
    manifest_entries(case.root, lambda entries: entries[1:])
    activate(case.root, "S-1", "D-01", "2")
    assert causes(case.now("//dossier:S-1/leaf-00")) == {"document `D-01` stands in the place of `D-00`": ["leaf-00"]}


def test_a_revert_is_compared_with_what_the_target_was_built_from(case: Case) -> None:
    """The leaf's own latest build is of version 2; the root was built from version 1."""
    activate(case.root, "S-1", "D-11", "2")
    case.build("//dossier:S-1/leaf-11")
    edit_text(case.root, "S-1", "D-11", "Something else.\n", version="2")
    explanation = case.now()
    assert causes(explanation) == {"document `D-11`: version 1 → 2, line 1 changed, lines 2–3 removed": BRANCH}
    assert causes(case.now("//dossier:S-1/leaf-11")) == {
        "document `D-11`: version 2, line 1 changed, lines 2–3 removed": ["leaf-11"]
    }


def test_a_child_that_was_built_already_does_not_run_again(case: Case) -> None:
    activate(case.root, "S-1", "D-11", "2")
    case.build("//dossier:S-1/leaf-11")
    explanation = case.now()
    assert causes(explanation) == {"document `D-11`: version 1 → 2, line 2 changed": ["reduce-02", "root"]}
    assert [tree(node) for node in explanation.nodes] == [{"root": [{"reduce-02": [{"[leaf-11]": []}]}]}]


def test_what_was_never_built_says_for_whom(case: Case) -> None:
    explanation = case.now(principal="other")
    assert explanation.verdict is Verdict.NOT_BUILT
    (cause,) = explanation.causes
    assert cause.text == "never built for principal `other` and toolchain `fake`"
    assert len(cause.targets) == 16
    assert case.now("//baseline:S-1/root").causes[0].text == "never built for principal `reader-demo`"


def test_below_what_was_never_built_each_child_is_compared_with_its_own_past(tmp_path: Path) -> None:
    case = Case(tmp_path / "ws", {"S-1": 6})
    case.build("//dossier:S-1/reduce-00")
    activate(case.root, "S-1", "D-01", "2")
    explanation = case.now()
    assert explanation.verdict is Verdict.NOT_BUILT
    assert causes(explanation) == {
        "never built for principal `reader-demo` and toolchain `fake`": ["leaf-04", "leaf-05", "reduce-01", "root"],
        "document `D-01`: version 1 → 2, line 2 changed": ["leaf-01", "reduce-00", "root"],
    }


def test_another_principals_rights_are_no_cause(case: Case) -> None:
    old = "readers = { reader-demo = { granted = true, revision = 1 } }"
    edit_manifest(case.root, "S-1", old, old.replace("} }", "}, other = { granted = true, revision = 5 } }"))
    assert case.now().verdict is Verdict.CURRENT


@pytest.mark.parametrize("lost", ["result", "preimage", "source", "generation"])
def test_an_entry_that_lost_something_is_incomplete(case: Case, lost: str) -> None:
    universe = load_universe(case.root, [ROOT])
    key = universe.keys.actions["//dossier:S-1/leaf-03"].key
    entry = case.store.entries([key])[key]
    if lost == "preimage":
        del case.store.records[key]
    else:
        del case.store.blobs[entry.sources[0] if lost == "source" else getattr(entry, lost)]
    assert case.now().verdict is Verdict.CURRENT  # the root's own entry is whole, and nothing below it is asked for
    explanation = case.now("//dossier:S-1/leaf-03")
    assert explanation.verdict is Verdict.INCOMPLETE
    what = {"preimage": "preimage missing", "source": "source blob missing"}
    words = what.get(lost, "result blob, request or generation missing")
    assert causes(explanation) == {f"entry of `//dossier:S-1/leaf-03` incomplete: {words}": ["leaf-03"]}


def test_an_incomplete_child_is_not_blamed_for_its_parents(case: Case) -> None:
    universe = load_universe(case.root, [ROOT])
    key = universe.keys.actions["//dossier:S-1/leaf-03"].key
    del case.store.blobs[case.store.entries([key])[key].sources[0]]
    set_prompt(case.root, "reduce-v1", "Choose others.")
    explanation = case.now()
    by_kind = {cause.kind: [t.rpartition("/")[2] for t in cause.targets] for cause in explanation.causes}
    inner = ["reduce-00", "reduce-01", "reduce-02", "root"]
    assert by_kind == {CauseKind.PROMPT: inner, CauseKind.INCOMPLETE: ["leaf-03"]}


def test_a_lost_former_preimage_is_admitted(case: Case) -> None:
    former = case.store.latest(ROOT, "reader-demo", "fake")
    set_prompt(case.root, "reduce-v1", "Choose others.")
    del case.store.records[former.key]
    explanation = case.now()
    assert f"what `{ROOT}` was built from is not kept: its preimage is lost" in causes(explanation)


def test_a_lost_former_text_is_admitted(case: Case) -> None:
    universe = load_universe(case.root, [ROOT])
    text = universe.graph.actions["//dossier:S-1/leaf-11"].scope.text
    activate(case.root, "S-1", "D-11", "2")
    del case.store.blobs[text]
    (cause,) = case.now().causes
    assert cause.text == "document `D-11`: version 1 → 2, text changed (its former text is not kept)"
    assert cause.details == ()


def test_explaining_changes_nothing(case: Case) -> None:
    activate(case.root, "S-1", "D-11", "2")
    before = {name: repr(value) for name, value in vars(case.store).items()}
    case.now()
    assert {name: repr(value) for name, value in vars(case.store).items()} == before


def test_a_document_edited_in_between_is_an_error_not_a_guess(case: Case) -> None:
    activate(case.root, "S-1", "D-11", "2")
    universe = load_universe(case.root, [ROOT])
    edit_text(case.root, "S-1", "D-11", "Edited.\n", version="2")
    with pytest.raises(SourceChanged):
        explain(universe, case.store, WorkspaceDocuments(universe.workspace), ROOT)
