"""Rights dominate: a change of the perimeter changes action keys and request keys up to the root, for its reader alone.

So nothing that was generated under other rights is reused, not even where every text came out as it was before.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support import workspaces
from support.engine import Built, run_build
from support.fake_executor import FakeExecutor

from gsum.rules import manifest_edit
from gsum.store.api import Store
from gsum.store.local import open_store

DOSSIER, PATTERN = "S-1", "//dossier:S-1/..."
OTHER = "other"


def edit(root: Path, change) -> None:
    file = root / f"corpus/dossiers/{DOSSIER}/dossier.toml"
    file.write_text(change(file.read_text()).text)


def above(built: Built, leaf: str) -> set[str]:
    """Return a leaf and its ancestors."""
    labels = {leaf}
    for label, action in built.universe.graph.actions.items():  # children before parents
        if labels & set(action.children):
            labels.add(label)
    return labels


def requests(built: Built, store: Store) -> dict[str, str | None]:
    keys = {label: keyed.key for label, keyed in built.universe.keys.actions.items()}
    entries = store.entries(list(keys.values()))
    return {label: entries[key].request for label, key in keys.items()}


@settings(max_examples=15, deadline=None)
@given(count=st.integers(1, 7), fan_in=st.integers(2, 3), data=st.data())
def test_no_generation_outlives_a_revocation_and_no_other_reader_notices(count, fan_in, data):
    slot = data.draw(st.integers(0, count - 1), label="slot")
    document = f"D-{slot:02}"
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "store") as store:
        root = workspaces.make_workspace(Path(folder) / "ws", {DOSSIER: count}, fan_in=fan_in)
        for number in range(count):
            edit(root, lambda text, number=number: manifest_edit.grant(text, f"D-{number:02}", OTHER))
        before = run_build(root, store, PATTERN)
        run_build(root, store, PATTERN, principal=OTHER)

        edit(root, lambda text: manifest_edit.revoke(text, document, workspaces.READER))
        edit(root, lambda text: manifest_edit.grant(text, document, workspaces.READER))
        after = run_build(root, store, PATTERN)

        concerned = above(before, f"//dossier:{DOSSIER}/leaf-{slot:02}")
        assert set(after.report.recomputed) == set(after.report.generated) == concerned
        old, new = requests(before, store), requests(after, store)
        assert {label for label in old if old[label] != new[label]} == concerned
        perimeters = [
            {label: keyed.perimeter for label, keyed in b.universe.keys.actions.items()} for b in (before, after)
        ]
        assert {label for label in old if perimeters[0][label] != perimeters[1][label]} == concerned

        executor = FakeExecutor()
        assert run_build(root, store, PATTERN, principal=OTHER, executor=executor).ran() == ()
        assert executor.calls == []


@settings(max_examples=10, deadline=None)
@given(count=st.integers(1, 6), fan_in=st.integers(2, 3))
def test_readers_with_the_same_rights_to_the_same_texts_share_no_request(count, fan_in):
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "store") as store:
        root = workspaces.make_workspace(Path(folder) / "ws", {DOSSIER: count}, fan_in=fan_in)
        for number in range(count):
            edit(root, lambda text, number=number: manifest_edit.grant(text, f"D-{number:02}", OTHER))
        mine = run_build(root, store, PATTERN)
        theirs = run_build(root, store, PATTERN, principal=OTHER)
        assert mine.report.recomputed == theirs.report.recomputed == theirs.report.generated
        assert not set(requests(mine, store).values()) & set(requests(theirs, store).values())
