"""A cache that hands out its own objects is changed by whoever changes an answer (dspy#10373)."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.engine import results, run_build
from support.memory_store import MemoryStore
from support.workspaces import make_workspace

from gsum.engine.serving import serve
from gsum.engine.universe import WorkspaceDocuments, load_universe

ROOT = "//dossier:S-1/root"


def test_what_is_served_is_the_caller_s_own(tmp_path: Path) -> None:
    root, store = make_workspace(tmp_path / "ws", {"S-1": 2}), MemoryStore()
    built = run_build(root, store, ROOT)
    universe = load_universe(root, [ROOT])

    def served():
        return serve(universe, store, WorkspaceDocuments(universe.workspace), ROOT).result

    first = served()
    assert first.claims
    expected = [dict(claim.values) for claim in first.claims]
    with pytest.raises(AttributeError):
        first.claims = ()
    for claim in first.claims:
        claim.values.clear()
        claim.values["value"] = "forged"
    assert [claim.values for claim in served().claims] == expected
    assert [claim.values for claim in results(built, store)[ROOT].claims] == expected


def test_a_build_hands_its_parents_what_is_stored(tmp_path: Path) -> None:
    """A rule that spoils its inputs in one build must not spoil the next."""
    root, store = make_workspace(tmp_path / "ws", {"S-1": 2}), MemoryStore()
    built = run_build(root, store, ROOT)
    before = dict(store.blobs)
    for result in results(built, store).values():
        for claim in result.claims:
            claim.values["value"] = "forged"
    assert run_build(root, store, ROOT).ran() == ()
    assert store.blobs == before
