"""The real file system behind the seam: what is written is whole, synced, and never over another file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gsum.store.fs import PosixFileSystem

FILES = PosixFileSystem()


@pytest.fixture
def synced(monkeypatch):
    """Yield the list of what reached `os.fsync`: the path and the size it had by then."""
    seen = []
    real = os.fsync

    def fsync(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append((path, os.fstat(descriptor).st_size if path.is_file() else None))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return seen


def test_a_written_file_is_synced_with_all_its_bytes(tmp_path, synced):
    FILES.write_synced(tmp_path / "f", b"x" * 300_000)
    assert synced == [(tmp_path / "f", 300_000)]
    assert FILES.read(tmp_path / "f") == b"x" * 300_000


def test_a_folder_is_synced_as_such(tmp_path, synced):
    FILES.sync_folder(tmp_path)
    assert synced == [(tmp_path, None)]


def test_a_file_is_never_written_over(tmp_path):
    FILES.write_synced(tmp_path / "f", b"first")
    with pytest.raises(FileExistsError):
        FILES.write_synced(tmp_path / "f", b"second")
    assert FILES.read(tmp_path / "f") == b"first"


def test_a_rename_replaces_and_leaves_no_second_name(tmp_path):
    FILES.write_synced(tmp_path / "new", b"new")
    FILES.write_synced(tmp_path / "old", b"old")
    FILES.replace(tmp_path / "new", tmp_path / "old")
    assert FILES.read(tmp_path / "old") == b"new"
    assert FILES.size(tmp_path / "new") is None


def test_sizes_of_what_is_there_and_what_is_not(tmp_path):
    FILES.write_synced(tmp_path / "f", b"")
    assert FILES.size(tmp_path / "f") == 0
    assert FILES.size(tmp_path / "absent") is None
    assert FILES.size(tmp_path / "f" / "below") is None


def test_removing_and_making_folders_can_be_repeated(tmp_path):
    for _ in range(2):
        FILES.make_folder(tmp_path / "a" / "b")
        FILES.remove(tmp_path / "a" / "absent")
    assert FILES.writable(tmp_path / "a" / "b")
    assert not FILES.writable(tmp_path / "absent")
