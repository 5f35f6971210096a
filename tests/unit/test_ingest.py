"""Ingestion: snapshots, canonical texts, and what a bad file gives."""

from __future__ import annotations

import os
import shutil

import pytest
from support.workspaces import (
    READER,
    activate,
    edit_manifest,
    edit_text,
    make_workspace,
    set_reader,
    withdraw,
    write_text,
)

from gsum.rules.ingest import SourceChanged, list_dossiers, outline, read_text, snapshot
from gsum.rules.loader import load_workspace
from gsum.rules.snapshot import Scope
from gsum.rules.toml import DeclarationError
from gsum.store.digests import blob_digest


@pytest.fixture
def root(tmp_path):
    return make_workspace(tmp_path / "w", {"S-1": {"D-0": "first\n", "D-1": "second\n", "D-2": "third\n"}})


def taken(root, dossier="S-1", principal=READER):
    return snapshot(load_workspace(root), "corpus", dossier, principal)


def test_a_snapshot_has_version_and_digest_of_readable_documents_only(root):
    activate(root, "S-1", "D-0", "2")
    withdraw(root, "S-1", "D-1")
    set_reader(root, "S-1", "D-2", granted=False, revision=5)
    result = taken(root)
    assert result.scopes == (
        Scope("D-0", True, True, 1, "2", blob_digest(b"first\n")),
        Scope("D-1", False, True, 1, None, None),
        Scope("D-2", True, False, 5, None, None),
    )
    assert result.paths == {"D-0": "corpus/dossiers/S-1/documents/D-0.v2.txt"}
    assert result.title == "Dossier S-1"


def test_a_reader_that_is_not_listed_may_read_nothing(root):
    assert [(s.eligible, s.access_revision) for s in taken(root, principal="stranger").scopes] == [(False, 0)] * 3


@pytest.mark.parametrize("hide", ["withdraw", "revoke"])
def test_an_ineligible_documents_file_decides_nothing(root, hide):
    """Two worlds: whatever the file of an unreadable document is, the snapshot is the same."""
    if hide == "withdraw":
        withdraw(root, "S-1", "D-1")
    else:
        set_reader(root, "S-1", "D-1", granted=False, revision=2)
    expected = taken(root)
    file = root / "corpus/dossiers/S-1/documents/D-1.v1.txt"
    edit_text(root, "S-1", "D-1", "changed\n")
    assert taken(root) == expected
    edit_text(root, "S-1", "D-1", "")
    assert taken(root) == expected
    file.write_bytes(b"\xff" * 5_000_000)
    assert taken(root) == expected
    file.unlink()
    assert taken(root) == expected
    file.symlink_to("/etc/passwd")
    assert taken(root) == expected
    activate(root, "S-1", "D-1", "2")
    assert taken(root) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a\r\nb\r\n",
        "\ufeffone\ntwo",
        "a\u2028b\u0085c\x0cd\x0be\n",
        "tab\there\n\n\n",
        "no newline",
        "nul\x00\n",
        "𝄞 é e\u0301\n",
    ],
)
def test_a_canonical_text_is_the_decoding_of_the_bytes_and_nothing_else(root, text):
    edit_text(root, "S-1", "D-0", text)
    workspace = load_workspace(root)
    data, read = read_text(workspace, taken(root), "D-0")
    assert read == text
    assert data == text.encode()


@pytest.mark.parametrize("text", ["", "\n\n", " \t\r\n", "\ufeff", "\ufeff\n", "\u2028"])
def test_a_document_without_a_non_empty_line_is_refused(root, text):
    edit_text(root, "S-1", "D-0", text)
    error = _refused(root, "document `corpus/dossiers/S-1/documents/D-0.v1.txt` is empty")
    assert error.exit_code == 3


LIMIT = "split it, or raise `max_bytes` of `[sources.corpus]`"


@pytest.mark.parametrize(
    ("size", "problem", "hint"),
    [
        (None, "does not exist", "write `corpus/dossiers/S-1/documents/D-0.v1.txt`"),
        (4_194_305, "has 4194305 bytes, and `corpus` admits 4194304", LIMIT),
    ],
)
def test_the_hint_for_a_bad_file_is_about_what_is_wrong_with_it(root, size, problem, hint):
    file = root / "corpus/dossiers/S-1/documents/D-0.v1.txt"
    file.unlink()
    if size is not None:
        file.write_bytes(b"x" * size)
    error = _refused(root, f"the file of document `D-0` {problem}")
    assert error.hint == f"{hint}, correct its path here, or withdraw the document"


def test_the_hints_for_a_file_without_a_manifest_speak_of_no_manifest(root):
    folder = root / "corpus/dossiers/S-1"
    shutil.rmtree(folder / "documents")
    (folder / "dossier.toml").unlink()
    (folder / "a.txt").write_bytes(b"x" * 4_194_305)
    error = _refused(root, "the file of document `a.txt` has 4194305 bytes, and `corpus` admits 4194304")
    assert error.hint == f"{LIMIT}, or remove it from the dossier's folder"
    (folder / "a.txt").write_bytes(b"\n")
    error = _refused(root, "document `corpus/dossiers/S-1/a.txt` is empty")
    assert error.hint is not None
    assert error.hint.endswith("without a manifest, remove the file")


def test_a_document_that_is_not_utf8_is_refused_by_its_byte_offset_without_its_content(root):
    (root / "corpus/dossiers/S-1/documents/D-0.v1.txt").write_bytes("sécret ".encode() + b"\xff\xfe rest")
    error = _refused(root, "document `corpus/dossiers/S-1/documents/D-0.v1.txt` is not UTF-8 at byte 8")
    assert error.facts["byte"] == 8
    assert "cret" not in f"{error.message}{error.facts}{error.excerpt}{error.hint}"
    assert error.__cause__ is error.__context__ is None


def test_an_encoded_surrogate_is_not_utf8(root):
    (root / "corpus/dossiers/S-1/documents/D-0.v1.txt").write_bytes(b"a\xed\xa0\x80")
    _refused(root, "document `corpus/dossiers/S-1/documents/D-0.v1.txt` is not UTF-8 at byte 1")


def test_a_document_of_10_mb_is_refused_with_both_numbers_and_not_read(root):
    file = root / "corpus/dossiers/S-1/documents/D-0.v1.txt"
    with file.open("wb") as stream:
        stream.truncate(10_000_000)
    error = _refused(root, "the file of document `D-0` has 10000000 bytes, and `corpus` admits 4194304")
    assert error.facts["line"] == 9
    assert "max_bytes" in error.hint


def test_a_document_at_the_limit_is_accepted(root):
    text = "x" * 4_194_304
    edit_text(root, "S-1", "D-0", text)
    assert taken(root).scopes[0].text == blob_digest(text.encode())
    edit_text(root, "S-1", "D-0", text + "x")
    _refused(root, "the file of document `D-0` has 4194305 bytes, and `corpus` admits 4194304")


def test_a_missing_file_of_a_readable_document_is_refused_at_its_place_in_the_manifest(root):
    (root / "corpus/dossiers/S-1/documents/D-1.v1.txt").unlink()
    error = _refused(root, "the file of document `D-1` does not exist")
    assert error.facts["file"] == "corpus/dossiers/S-1/dossier.toml"
    assert error.excerpt.split("\n")[2].count("^") == len('"documents/D-1.v1.txt"')


@pytest.mark.parametrize("kind", ["folder", "fifo", "loop", "outside", "outside through a folder"])
def test_a_file_of_the_wrong_kind_or_place_is_refused_without_being_opened(root, tmp_path, kind):
    file = root / "corpus/dossiers/S-1/documents/D-1.v1.txt"
    file.unlink()
    if kind == "folder":
        file.mkdir()
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "loop":
        file.symlink_to(file.name)
    else:
        (tmp_path / "outside").mkdir()
        write_text(tmp_path / "outside/x.txt", "outside\n")
        if kind == "outside":
            file.symlink_to(tmp_path / "outside/x.txt")
        else:
            (file.parent / "sub").symlink_to(tmp_path / "outside")
            edit_manifest(root, "S-1", "documents/D-1.v1.txt", "documents/sub/x.txt")
    expected = {
        "folder": "is no regular file",
        "fifo": "is no regular file",
        "loop": "can't be read: Too many levels of symbolic links",
    }
    _refused(root, f"the file of document `D-1` {expected.get(kind, 'leads outside the workspace')}")


def test_a_link_within_the_workspace_is_followed(root):
    file = root / "corpus/dossiers/S-1/documents/D-1.v1.txt"
    file.unlink()
    file.symlink_to("D-0.v1.txt")
    assert taken(root).scopes[1].text == blob_digest(b"first\n")


def test_a_plain_folder_is_a_dossier_versioned_by_content(root):
    folder = root / "corpus/dossiers/plain"
    (folder / "sub").mkdir(parents=True)
    for name in ("b.txt", "a @:1.txt", ".hidden"):
        write_text(folder / name, f"text of {name}\n")
    result = taken(root, "plain", "anyone")
    digests = [blob_digest(f"text of {name}\n".encode()) for name in ("a @:1.txt", "b.txt")]
    assert result.scopes == (
        Scope("a @:1.txt", True, True, 0, digests[0][:16], digests[0]),
        Scope("b.txt", True, True, 0, digests[1][:16], digests[1]),
    )
    before = result.scopes[1].version
    write_text(folder / "b.txt", "other\n")
    assert taken(root, "plain").scopes[1].version != before


def test_a_plain_folder_without_files_is_refused(root):
    (root / "corpus/dossiers/empty/sub").mkdir(parents=True)
    _refused(root, "dossier `empty` has no documents", "empty")


def test_a_dangling_manifest_never_turns_a_dossier_into_a_folder_that_everyone_may_read(root):
    (root / "corpus/dossiers/S-1/dossier.toml").unlink()
    (root / "corpus/dossiers/S-1/dossier.toml").symlink_to("gone.toml")
    _refused(root, "manifest `corpus/dossiers/S-1/dossier.toml` can't be read")


def test_a_file_name_that_is_not_utf8_is_refused(root):
    folder = root / "corpus/dossiers/plain"
    folder.mkdir()
    try:
        (folder / os.fsdecode(b"a\xff")).write_bytes(b"x")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    _refused(root, "dossier `plain` has a file whose name is not UTF-8", "plain")


def test_the_dossiers_of_a_source_are_its_visible_folders_by_name(root):
    for name in ("S-10", "S-2", ".git", "Ärger"):
        (root / "corpus/dossiers" / name).mkdir()
    write_text(root / "corpus/dossiers/README", "no dossier")
    assert list_dossiers(load_workspace(root), "corpus") == ("S-1", "S-10", "S-2", "Ärger")


@pytest.mark.parametrize("name", ["a b", "a:b", "all", "a'b", "a(b", "a\nb", "x,y"])
def test_a_folder_that_no_label_can_name_is_refused_with_a_hint_to_rename(root, name):
    (root / "corpus/dossiers" / name).mkdir()
    with pytest.raises(DeclarationError, match="can't be named in a label") as caught:
        list_dossiers(load_workspace(root), "corpus")
    assert caught.value.exit_code == 3
    assert caught.value.hint.startswith("rename it")
    assert "\n" not in caught.value.message


def test_a_text_that_changed_since_the_snapshot_is_refused(root):
    before = taken(root)
    workspace = load_workspace(root)
    edit_text(root, "S-1", "D-0", "FIRST\n")
    with pytest.raises(SourceChanged, match="document `D-0` changed while it was in use") as caught:
        read_text(workspace, before, "D-0")
    assert caught.value.exit_code == 4
    edit_text(root, "S-1", "D-0", "first\n")
    assert read_text(workspace, before, "D-0") == (b"first\n", "first\n")
    (root / before.paths["D-0"]).unlink()
    with pytest.raises(SourceChanged, match="document `D-0` can't be read any more"):
        read_text(workspace, before, "D-0")


def test_a_text_that_became_a_link_out_of_the_workspace_is_refused_whatever_it_holds(root, tmp_path):
    before = taken(root)
    file = root / before.paths["D-0"]
    (tmp_path / "elsewhere").write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SourceChanged) as caught:
        read_text(load_workspace(root), before, "D-0")
    assert "leads outside the workspace" in caught.value.facts["now"]


def test_an_unreadable_documents_text_can_not_be_asked_for(root):
    withdraw(root, "S-1", "D-1")
    with pytest.raises(KeyError):
        read_text(load_workspace(root), taken(root), "D-1")


def test_an_outline_lists_all_documents_and_opens_none(root):
    for file in (root / "corpus/dossiers/S-1/documents").iterdir():
        file.unlink()
    result = outline(load_workspace(root), "corpus", "S-1")
    assert [scope.id for scope in result.scopes] == ["D-0", "D-1", "D-2"]
    assert not any(scope.readable for scope in result.scopes)


def test_digests_may_come_from_an_index(root):
    class Index:
        def digest(self, path, max_bytes):
            return blob_digest(path.encode())

    result = snapshot(load_workspace(root), "corpus", "S-1", READER, Index())
    assert [scope.text for scope in result.scopes] == [blob_digest(path.encode()) for path in result.paths.values()]


def _refused(root, message, dossier="S-1"):
    with pytest.raises(DeclarationError) as caught:
        taken(root, dossier)
    assert caught.value.message == message
    assert caught.value.exit_code == 3
    return caught.value
