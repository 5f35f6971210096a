"""The stat index where what is looked at is not what was read: links, other code, lost ends, patterns that overlap."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import workspaces
from support.engine import quick_look, run_build
from support.gold import EVAL, labels_of
from support.ticks import age, settle, wait_a_tick

from gsum.engine.index import consulting
from gsum.rules.loader import load_workspace
from gsum.store.local import open_store

ALL = "//dossier:all"
TEXT = "Product P-3-00 site: Hall 1.\n"


@pytest.fixture
def root(tmp_path):
    root = workspaces.make_workspace(tmp_path / "ws", {"S-1": 4, "S-2": 4})
    age(root)
    return root


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def index(tmp_path):
    return tmp_path / "index"


def plain_dossier(folder: Path) -> Path:
    """Write a dossier without a manifest."""
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text(TEXT)
    return folder


@pytest.mark.parametrize("path", [".", "./"])
def test_an_edit_is_seen_in_a_source_that_is_the_workspace_itself(tmp_path, store, index, path):
    root = tmp_path / "ws"
    document = plain_dossier(root / "S-1") / "a.txt"
    declared = workspaces.make_workspace(tmp_path / "other", {}) / "BUILD.toml"
    text = declared.read_text().replace('path = "corpus/dossiers"', f'path = "{path}"')
    (root / "BUILD.toml").write_text(text[: text.index("[sources.labels]")] + text[text.index("[toolchain.fake]") :])
    settle(root, store, index, "//dossier:S-1")
    assert quick_look(root, store, index, "//dossier:S-1") is not None
    document.write_text("Product P-3-00 site: Hall 2.\n")
    assert quick_look(root, store, index, "//dossier:S-1") is None
    assert run_build(root, store, "//dossier:S-1", index=index).ran() == ("leaf-00", "root")


def test_an_index_of_other_code_is_not_believed_by_a_build_either(root, store, index, monkeypatch):
    settle(root, store, index)
    assert run_build(root, store, index=index).universe.graph.actions == {}
    monkeypatch.setattr(consulting, "code_print", lambda: b"other")
    assert len(run_build(root, store, index=index).universe.graph.actions) == 10


def test_a_build_during_which_the_code_changed_tells_the_index_nothing(root, store, index, monkeypatch):
    prints = iter([b"before", b"after"])
    monkeypatch.setattr(consulting, "code_print", lambda: next(prints))
    run_build(root, store, index=index)
    assert list(index.glob("*.index")) == []


def test_an_index_is_not_believed_while_the_end_of_its_invocation_is_not_kept(root, store, index):
    settle(root, store, index)
    assert quick_look(root, store, index, ALL) is not None
    with store._db.transaction():  # as after a loss of power that took the commits behind its beginning
        store._db.write("UPDATE invocation SET running = 1")
    assert quick_look(root, store, index, ALL) is None
    assert len(run_build(root, store, index=index).universe.graph.actions) == 10


def test_what_appears_behind_a_link_of_a_plain_folder_is_seen(root, store, index, tmp_path):
    plain = plain_dossier(root / "corpus/dossiers/S-3")
    (plain / "b.txt").symlink_to(root / "later.txt")
    settle(root, store, index, "//dossier:S-3")
    (root / "later.txt").write_text("Product P-3-01 site: Hall 2.\n")
    assert quick_look(root, store, index, "//dossier:S-3") is None
    assert run_build(root, store, "//dossier:S-3", index=index).ran() == ("leaf-01", "root")
    settle(root, store, index, "//dossier:S-3")
    assert quick_look(root, store, index, "//dossier:S-3") is not None  # a link that is read is looked at itself


def test_a_dossier_that_appears_or_goes_behind_a_link_is_seen(root, store, index):
    (root / "corpus/dossiers/S-3").symlink_to(root / "later")
    settle(root, store, index, ALL)
    plain_dossier(root / "later")
    assert quick_look(root, store, index, ALL) is None
    assert run_build(root, store, ALL, index=index).ran() == ("leaf-00", "root")
    settle(root, store, index, ALL)
    (root / "later").rename(root / "gone")
    assert quick_look(root, store, index, ALL) is None
    assert run_build(root, store, ALL, index=index).report.targets == 10


def test_declarations_that_are_others_after_the_build_than_were_read_are_not_trusted(root, store, index):
    settle(root, store, index)
    file, text = root / "BUILD.toml", (root / "BUILD.toml").read_text()
    (root / "old.toml").write_text(text)
    (root / "new.toml").write_text(text.replace("List its facts.", "List all facts."))
    file.unlink()
    file.symlink_to("old.toml")
    wait_a_tick()

    def switched() -> bool:
        (root / "link").symlink_to("new.toml")
        (root / "link").replace(file)
        return False

    run_build(root, store, index=index, interrupted=switched)
    assert quick_look(root, store, index, ALL) is None
    assert len(run_build(root, store, ALL, index=index).ran()) == 10


def test_a_workspace_knows_what_its_files_were_when_it_was_read(root):
    workspaces.edit_build(root, 'system = "Read one document."', 'system = { file = "p.txt" }')
    (root / "p.txt").write_text("First.")
    loaded = load_workspace(root)
    found = [(root / path).stat() for path in loaded.files]
    assert loaded.files == ("BUILD.toml", "p.txt")
    assert loaded.stamps == tuple((one.st_mtime_ns, one.st_ctime_ns, one.st_size, one.st_ino) for one in found)


@pytest.mark.parametrize(
    ("patterns", "count"),
    [
        (["//dossier:S-1/leaf-00", "//dossier:S-1/root"], 5),
        (["//dossier:S-1/root", "//dossier:S-1/leaf-00", "//dossier:S-2"], 10),
        (["//dossier:S-1", "//eval:S-1"], 6),
        (["//eval:all", "//dossier:..."], 12),
        (["//..."], 24),
    ],
)
def test_patterns_that_overlap_count_each_target_once_and_leave_the_next_build_quick(
    root, store, index, patterns, count
):
    (root / "BUILD.toml").write_text((root / "BUILD.toml").read_text() + EVAL)
    for name in ("S-1", "S-2"):
        labels_of(root, name)
    age(root)
    settle(root, store, index, "//...")
    for _ in range(3):
        built = run_build(root, store, *patterns, index=index)
        labels = list(built.report.cached)
        assert (len(labels), len(set(labels)), built.report.targets) == (count, count, count)
        assert built.ran() == ()
    assert quick_look(root, store, index, "//dossier:S-1", "//dossier:S-2") is not None
