"""Documents that were touched and hold what they held are taken for what they were; nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support import workspaces
from support.engine import first_look, quick_look, run_build
from support.opening import opened_files
from support.ticks import age, settle, wait_a_tick

from gsum.engine.index import consulting
from gsum.engine.index.quick import Looked, NothingToDo
from gsum.store.local import open_store

ALL = "//dossier:all"


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
def index(root, store, tmp_path):
    settle(root, store, tmp_path / "index")
    return tmp_path / "index"


def document(root: Path, dossier: str = "S-2", slot: int = 0) -> Path:
    return root / f"corpus/dossiers/{dossier}/documents/D-{slot:02}.v1.txt"


def opened_documents(names: list[str]) -> set[str]:
    return {Path(name).name for name in names if name.endswith((".txt", ".toml"))}


def write_again(file: Path) -> None:
    temporary = file.with_name(".new")
    temporary.write_bytes(file.read_bytes())
    temporary.replace(file)


@pytest.mark.parametrize("touch", [Path.touch, write_again, lambda file: file.chmod(0o600)])
def test_what_was_touched_is_read_once_and_nothing_is_to_do(root, store, index, touch):
    touch(document(root))
    wait_a_tick()
    with opened_files() as names:
        assert isinstance(first_look(root, store, index, ALL), NothingToDo)
    assert opened_documents(names) == {"D-00.v1.txt"}
    with opened_files() as names:
        assert isinstance(first_look(root, store, index, ALL), NothingToDo)
    assert opened_documents(names) == set()


def test_all_that_was_touched_is_taken_for_what_it_was(root, store, index):
    for file in root.rglob("*.txt"):
        file.touch()
    wait_a_tick()
    assert quick_look(root, store, index, ALL).targets == 10
    with opened_files() as names:
        assert run_build(root, store, index=index).ran() == ()
    assert opened_documents(names) <= {"BUILD.toml"}


def test_what_was_touched_in_the_tick_of_the_look_is_read_until_it_can_be_trusted(root, store, index, monkeypatch):
    file = document(root)
    ahead = file.stat().st_mtime_ns + 10**15
    os.utime(file, ns=(ahead, ahead))
    for _ in range(2):
        with opened_files() as names:
            assert quick_look(root, store, index, ALL) is not None
        assert opened_documents(names) == {"D-00.v1.txt"}
    text = file.read_text()
    file.write_text(text.replace("1 March", "9 March"))
    os.utime(file, ns=(ahead, ahead))
    assert isinstance(first_look(root, store, index, ALL), Looked)


def edited(file: Path) -> None:
    file.write_text(file.read_text() + "Note.\n")


def edited_to_the_same_size(file: Path) -> None:
    file.write_text(file.read_text().replace("March", "April"))


def linked(file: Path) -> None:
    file.rename(file.with_suffix(".kept"))
    file.symlink_to(file.with_suffix(".kept").name)


def linked_by_its_folder(file: Path) -> None:
    file.parent.rename(file.parent.with_name("elsewhere"))
    file.parent.symlink_to("elsewhere")
    file.touch()


def given_a_second_name(file: Path) -> None:
    file.with_name(".second").hardlink_to(file)


def replaced_by_a_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def replaced_by_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    "change",
    [
        edited,
        edited_to_the_same_size,
        linked,
        linked_by_its_folder,
        given_a_second_name,
        replaced_by_a_fifo,
        replaced_by_a_folder,
        Path.unlink,
    ],
    ids=lambda change: change.__name__,
)
def test_what_is_not_merely_touched_is_left_to_analysis(root, store, index, change):
    change(document(root))
    found = first_look(root, store, index, ALL)
    assert isinstance(found, Looked)
    assert found.looks["corpus"].changed == {"S-2"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_document_that_may_not_be_read_is_left_to_analysis(root, store, index):
    document(root).chmod(0)
    assert isinstance(first_look(root, store, index, ALL), Looked)


def test_a_touched_manifest_is_read_again_and_nothing_runs(root, store, index):
    (root / "corpus/dossiers/S-2/dossier.toml").touch()
    assert isinstance(first_look(root, store, index, ALL), Looked)
    assert run_build(root, store, index=index).ran() == ()


def test_a_build_after_a_look_looks_no_second_time_and_keeps_what_was_touched(root, store, index, monkeypatch):
    document(root, "S-1").touch()
    edited(document(root, "S-2"))
    wait_a_tick()
    looked = first_look(root, store, index, "//dossier:...")
    assert isinstance(looked, Looked)
    monkeypatch.setattr(consulting, "look_at", None)
    with opened_files() as names:
        built = run_build(root, store, index=index, looked=looked)
    assert built.ran() == ("leaf-00", "root")
    assert {Path(name).parts[-2] for name in names if name.endswith("dossier.toml")} == {"S-2"}
    with opened_files() as names:
        assert quick_look(root, store, index, "//dossier:...").targets == 10
    assert opened_documents(names) == set()


def test_a_look_into_a_store_that_lost_something_since_is_not_believed(root, store, index):
    edited(document(root, "S-2"))
    looked = first_look(root, store, index, ALL)
    store._db.query("DELETE FROM entry WHERE label LIKE '%S-1/root'")
    built = run_build(root, store, ALL, index=index, looked=looked)
    assert [label.partition(":")[2] for label in built.report.recomputed if "S-1" in label] == ["S-1/root"]


def test_a_folder_that_no_label_can_name_does_not_fail_the_build_of_another(root, store, tmp_path):
    (root / "corpus/dossiers/S 9").mkdir()
    assert run_build(root, store, "//dossier:S-1", index=tmp_path / "index").report.exit_code == 0


def test_patterns_that_overlap_count_each_target_once(root, store, index):
    assert quick_look(root, store, index, "//dossier:S-1", "//dossier:S-1/...").targets == 5
    assert quick_look(root, store, index, "//dossier:S-1", "//dossier:all").targets == 10
    assert quick_look(root, store, index, "//dossier:S-1", "//dossier:S-2").targets == 10
