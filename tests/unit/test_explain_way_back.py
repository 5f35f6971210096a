"""The smallest way back to a hit: what is proposed gives a hit when it is done, and nothing less does."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from support.explaining import ROOT, Case
from support.workspaces import (
    activate,
    edit_build,
    edit_manifest,
    restore,
    set_fan_in,
    set_prompt,
    set_reader,
    withdraw,
)

from gsum.engine.explain import CauseKind


@pytest.fixture
def case(tmp_path: Path) -> Case:
    built = Case(tmp_path / "ws", {"S-1": 9})
    built.build(ROOT)
    return built


def hits(case: Case) -> bool:
    return not case.now().runs


def swap(root: Path, one: str, other: str) -> None:
    file = root / "corpus/dossiers/S-1/dossier.toml"
    head, *entries = file.read_text().split("\n[[documents]]")
    places = {name: next(n for n, entry in enumerate(entries) if f'"{name}"' in entry) for name in (one, other)}
    entries[places[one]], entries[places[other]] = entries[places[other]], entries[places[one]]
    file.write_text("\n[[documents]]".join([head, *entries]))


Edit = tuple[Callable[[Path], None], Callable[[Path], None], CauseKind]

EDITS: dict[str, Edit] = {
    "version": (
        lambda root: activate(root, "S-1", "D-03", "2"),
        lambda root: activate(root, "S-1", "D-03", "1"),
        CauseKind.DOCUMENT,
    ),
    "withdrawn": (
        lambda root: withdraw(root, "S-1", "D-05"),
        lambda root: restore(root, "S-1", "D-05"),
        CauseKind.WITHDRAWN,
    ),
    "prompt": (
        lambda root: set_prompt(root, "reduce-v1", "Other."),
        lambda root: set_prompt(root, "reduce-v1", "Choose the facts to keep."),
        CauseKind.PROMPT,
    ),
    "salt": (
        lambda root: edit_build(root, 'name = "test"', 'name = "test"\nsalt = "x"'),
        lambda root: edit_build(root, 'name = "test"\nsalt = "x"', 'name = "test"'),
        CauseKind.SETTING,
    ),
    "budget": (
        lambda root: edit_build(root, "map_input_tokens = 2048", "map_input_tokens = 99"),
        lambda root: edit_build(root, "map_input_tokens = 99", "map_input_tokens = 2048"),
        CauseKind.SETTING,
    ),
    "identity": (
        lambda root: edit_build(root, '"fake-1"', '"fake-2"'),
        lambda root: edit_build(root, '"fake-2"', '"fake-1"'),
        CauseKind.TOOLCHAIN,
    ),
    "schema": (
        lambda root: edit_build(root, 'fields = ["subject"', 'max_claims = 3\nfields = ["subject"'),
        lambda root: edit_build(root, "max_claims = 3\n", ""),
        CauseKind.SCHEMA,
    ),
    "fan-in": (lambda root: set_fan_in(root, 3), lambda root: set_fan_in(root, 4), CauseKind.SETTING),
    "order": (
        lambda root: swap(root, "D-01", "D-07"),
        lambda root: swap(root, "D-01", "D-07"),
        CauseKind.REORDERED,
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_one_edit_is_put_back_alone(case: Case, name: str) -> None:
    edit, undo, kind = EDITS[name]
    edit(case.root)
    found = case.now().way_back
    assert found is not None
    assert [cause.kind for cause in found.causes] == [kind]
    undo(case.root)
    assert hits(case)


@pytest.mark.parametrize("names", list(itertools.combinations(EDITS, 2)), ids="+".join)
def test_of_two_edits_both_are_put_back_and_neither_alone_hits(case: Case, names: tuple[str, str]) -> None:
    for name in names:
        EDITS[name][0](case.root)
    found = case.now().way_back
    assert found is not None
    assert sorted(cause.kind.value for cause in found.causes) == sorted(EDITS[name][2].value for name in names)
    EDITS[names[0]][1](case.root)
    assert not hits(case)
    EDITS[names[1]][1](case.root)
    assert hits(case)


def test_the_nearest_of_several_earlier_builds_is_taken(case: Case) -> None:
    activate(case.root, "S-1", "D-00", "2")
    activate(case.root, "S-1", "D-01", "2")
    case.build(ROOT)  # far from what follows
    for document in ("D-00", "D-01"):
        activate(case.root, "S-1", document, "1")
    set_prompt(case.root, "reduce-v1", "Other.")
    found = case.now().way_back
    assert found is not None
    assert [cause.kind for cause in found.causes] == [CauseKind.PROMPT]
    assert found.key != case.store.latest(ROOT, "reader-demo", "fake").key


def test_added_and_removed_documents_are_put_back(case: Case) -> None:
    entry = (case.root / "corpus/dossiers/S-1/dossier.toml").read_text().split("\n[[documents]]")[9]
    edit_manifest(case.root, "S-1", "\n[[documents]]" + entry, "")
    found = case.now().way_back
    assert found is not None
    assert [(cause.kind, cause.subject) for cause in found.causes] == [(CauseKind.REMOVED, "//corpus:S-1/D-08")]


def test_a_revocation_can_t_be_put_back(case: Case) -> None:
    set_reader(case.root, "S-1", "D-02", granted=False, revision=2)
    assert case.now().way_back is None


def test_a_revocation_and_an_edit_of_the_same_document_say_nothing_of_the_edit(case: Case) -> None:
    set_reader(case.root, "S-1", "D-02", granted=False, revision=2)
    one = case.now()
    activate(case.root, "S-1", "D-02", "2")
    assert case.now() == one


def test_what_is_lost_is_no_way_back(case: Case) -> None:
    activate(case.root, "S-1", "D-03", "2")
    assert case.now().way_back is not None
    latest = case.store.latest(ROOT, "reader-demo", "fake")
    del case.store.blobs[case.store.kept_entries[latest.key].result]
    assert case.now().way_back is None


def test_nothing_is_proposed_where_nothing_was_built(tmp_path: Path) -> None:
    assert Case(tmp_path / "ws", {"S-1": 2}).now().way_back is None
