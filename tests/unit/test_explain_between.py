"""What changed in a target from one build to another, also where the later one went back to an earlier state."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.explaining import ROOT, Case, causes, tree
from support.memory_store import MemoryStore
from support.workspaces import activate

from gsum.engine.explain import Verdict

BRANCH = {"root": [{"reduce-01": [{"leaf-05": []}]}]}
FORTH, BACK = (f"document `D-05`: version {way}, line 2 changed" for way in ("1 → 2", "2 → 1"))


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path / "ws", {"S-1": 6, "S-10": 2})


@pytest.fixture(params=["//dossier:...", ROOT])
def builds(case: Case, request: pytest.FixtureRequest) -> tuple[str, str, str]:
    """Builds of a first state, of another, and of the first again: that one finds all it needs and runs nothing."""
    ids = []
    for version in ("1", "2", "1"):
        activate(case.root, "S-1", "D-05", version)
        ids.append(case.id_of_build(request.param))
    return ids[0], ids[1], ids[2]


def test_a_build_that_went_back_differs_from_the_one_before_it(case: Case, builds: tuple[str, str, str]) -> None:
    first, other, again = builds
    assert causes(case.between(first, other)) == {FORTH: ["leaf-05", "reduce-01", "root"]}
    back = case.between(other, again)
    assert causes(back) == {BACK: ["leaf-05", "reduce-01", "root"]}
    assert [tree(node) for node in back.nodes] == [BRANCH]
    assert case.between(first, again).verdict is Verdict.SAME


def test_what_is_below_a_root_that_went_back_went_back_with_it(case: Case, builds: tuple[str, str, str]) -> None:
    first, other, again = builds
    leaf = "//dossier:S-1/leaf-05"
    assert causes(case.between(other, again, leaf)) == {BACK: ["leaf-05"]}
    assert case.between(first, again, leaf).verdict is Verdict.SAME
    assert case.between(other, again, "//dossier:S-1/leaf-04").verdict is Verdict.SAME


def test_a_leaf_built_alone_is_what_it_was_built_as(case: Case) -> None:
    leaf = "//dossier:S-1/leaf-05"
    first = case.id_of_build(ROOT)
    activate(case.root, "S-1", "D-05", "2")
    alone = case.id_of_build(leaf)
    assert causes(case.between(first, alone, leaf)) == {FORTH: ["leaf-05"]}
    assert case.between(first, alone, ROOT).verdict is Verdict.SAME


def test_targets_of_another_dossier_with_the_same_beginning_are_not_taken_for_its_own(case: Case) -> None:
    first = case.id_of_build("//dossier:S-10")
    case.build(ROOT)
    activate(case.root, "S-10", "D-00", "2")
    last = case.id_of_build("//dossier:...")
    found = case.between(first, last, "//dossier:S-10/root")
    assert [cause.targets for cause in found.causes] == [("//dossier:S-10/leaf-00", "//dossier:S-10/root")]


class Noting(MemoryStore):
    """A store that notes of which builds events were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def events_holding(self, invocation: str, part: bytes) -> list[bytes]:
        self.read.append(invocation)
        return super().events_holding(invocation, part)


def test_builds_before_the_two_are_not_read_where_these_tell_all_that_changed(case: Case) -> None:
    case.store = store = Noting()
    ids = []
    for version in ("1", "2", "1"):
        activate(case.root, "S-1", "D-05", version)
        activate(case.root, "S-1", "D-04", "2" if ids else "1")
        ids.append(case.id_of_build(ROOT))
    assert len(case.between(ids[1], ids[2]).nodes) == 1
    assert store.read == ids[1:]
