"""`gsum doc`: exact edits, atomic, with what became stale by them."""

from __future__ import annotations

import json
import stat
import tempfile
import tomllib
from pathlib import Path

import pytest
from support.cli import Gsum
from support.other_user import as_nobody
from support.workspaces import write_text

from gsum.store.errors import ExitCode


@pytest.fixture
def gsum(tmp_path):
    gsum = Gsum(tmp_path / "w", {"S-1": 2})
    gsum("build", "//...")
    return gsum


def manifest_of(gsum):
    return gsum.root / "corpus/dossiers/S-1/dossier.toml"


def document_of(gsum, number=0):
    return tomllib.loads(manifest_of(gsum).read_text())["documents"][number]


def test_activate_edits_the_manifest_and_names_what_became_stale(gsum):
    manifest = manifest_of(gsum)
    commented = manifest.read_text().replace('active = "1"', 'active = "1"  # as received', 1)
    write_text(manifest, commented)
    ran = gsum("doc", "activate", "//dossier:S-1", "D-00", "--version", "2")
    assert ran.out == (
        "//corpus:S-1/D-00: version 2 is active (written to corpus/dossiers/S-1/dossier.toml)\n"
        "became STALE:\n"
        "  //dossier:S-1/leaf-00\n"
        "  //dossier:S-1/root\n"
        "  //baseline:S-1/leaf-00\n"
        "  //baseline:S-1/root\n"
        "next: gsum build //dossier:S-1/root //baseline:S-1/root\n"
    )
    assert (ran.code, ran.err) == (0, "")
    assert manifest.read_text() == commented.replace('active = "1"  #', 'active = "2"  #')


def test_going_back_says_what_is_current_again(gsum):
    gsum("doc", "activate", "//dossier:S-1", "D-00", "--version", "2")
    ran = gsum("doc", "activate", "//corpus:S-1", "D-00", "--version", "1", "--json")
    assert ran.document["stale"] == []
    assert ran.document["current_again"] == [
        "//dossier:S-1/leaf-00",
        "//dossier:S-1/root",
        "//baseline:S-1/leaf-00",
        "//baseline:S-1/root",
    ]


def test_going_between_states_that_are_built_says_that_another_build_is_shown(gsum):
    gsum("doc", "activate", "//dossier:S-1", "D-00", "--version", "2")
    gsum("build", "//...")
    before = gsum("show", "//dossier:S-1").out
    ran = gsum("doc", "activate", "//dossier:S-1", "D-00", "--version", "1")
    assert ran.out == (
        "//corpus:S-1/D-00: version 1 is active (written to corpus/dossiers/S-1/dossier.toml)\n"
        "current still, now as an earlier build made it:\n"
        "  //dossier:S-1/leaf-00\n"
        "  //dossier:S-1/root\n"
        "  //baseline:S-1/leaf-00\n"
        "  //baseline:S-1/root\n"
    )
    assert gsum("show", "//dossier:S-1").out != before
    document = gsum("doc", "activate", "//dossier:S-1", "D-00", "--version", "2", "--json").document
    assert (document["stale"], document["current_again"]) == ([], [])
    assert document["switched"][:2] == ["//dossier:S-1/leaf-00", "//dossier:S-1/root"]
    assert gsum("show", "//dossier:S-1").out == before


def test_what_nothing_built_depends_on_is_said_to_touch_nothing(gsum):
    document = gsum("doc", "grant", "//dossier:S-1", "D-00", "--reader", "other")
    assert document.out.splitlines()[1:] == ["nothing that is built is touched by it"]


def test_an_edit_that_is_in_force_changes_nothing(gsum):
    before = (manifest_of(gsum).read_bytes(), manifest_of(gsum).stat().st_ino)
    for words in (("activate", "--version", "1"), ("restore",), ("grant",), ("revoke", "--reader", "stranger")):
        ran = gsum("doc", words[0], "//dossier:S-1", "D-00", *words[1:])
        assert ran.out.startswith("no change: //corpus:S-1/D-00: ")
        assert ran.code == 0
    assert (manifest_of(gsum).read_bytes(), manifest_of(gsum).stat().st_ino) == before


def test_withdraw_and_restore(gsum):
    ran = gsum("doc", "withdraw", "//dossier:S-1", "D-01", "--json")
    assert document_of(gsum, 1)["withdrawn"] is True
    assert "//dossier:S-1/leaf-01" in ran.document["stale"]
    assert "//dossier:S-1/leaf-00" not in ran.document["stale"]
    gsum("doc", "restore", "//dossier:S-1", "D-01")
    assert document_of(gsum, 1)["withdrawn"] is False
    assert gsum("status", "//...").code == 0


def test_revoke_and_grant_each_raise_the_revision_of_that_reader_alone(gsum):
    assert "//dossier:S-1/root" in gsum("doc", "revoke", "//dossier:S-1", "D-00", "--json").document["stale"]
    assert document_of(gsum)["readers"] == {"reader-demo": {"granted": False, "revision": 2}}
    gsum("doc", "grant", "//dossier:S-1", "D-00")
    assert document_of(gsum)["readers"] == {"reader-demo": {"granted": True, "revision": 3}}
    ran = gsum("doc", "grant", "//dossier:S-1", "D-00", "--reader", "other", "--json")
    assert ran.document["principal"] == "other"
    assert document_of(gsum)["readers"]["other"] == {"granted": True, "revision": 1}
    assert document_of(gsum)["readers"]["reader-demo"] == {"granted": True, "revision": 3}


def test_another_readers_change_leaves_mine_current(gsum):
    gsum("doc", "grant", "//dossier:S-1", "D-00", "--reader", "other")
    assert gsum("status", "//...").code == 0


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("activate", "//dossier:S-1", "D-0", "--version", "2"), "did you mean `D-0"),
        (("activate", "//dossier:S-1", "D-00", "--version", "7"), "its versions are: `1`, `2`"),
        (("withdraw", "//dossier:S-2", "D-00"), "did you mean `//dossier:S-1`?"),
        (("withdraw", "//corpse:S-1", "D-00"), "did you mean `corpus`?"),
        (("withdraw", "//dossier:...", "D-00"), "give one label"),
    ],
)
def test_what_is_not_there_is_answered_with_the_nearest(gsum, words, hint):
    before = manifest_of(gsum).read_bytes()
    ran = gsum("doc", *words)
    assert ran.code == ExitCode.USAGE
    assert hint in ran.err
    assert manifest_of(gsum).read_bytes() == before


def test_an_edit_that_would_break_the_dossier_is_undone(gsum):
    (gsum.root / "corpus/dossiers/S-1/documents/D-00.v2.txt").unlink()
    before = manifest_of(gsum).read_bytes()
    ran = gsum("doc", "activate", "//dossier:S-1", "D-00", "--version", "2")
    assert ran.code == ExitCode.DECLARATION
    assert "does not exist" in ran.err
    assert manifest_of(gsum).read_bytes() == before
    assert gsum("status", "//...").code == 0


def test_a_broken_dossier_can_be_mended_by_an_edit(gsum):
    (gsum.root / "corpus/dossiers/S-1/documents/D-00.v1.txt").write_text("\n")
    assert gsum("status", "//...").code == ExitCode.DECLARATION
    ran = gsum("doc", "withdraw", "//dossier:S-1", "D-00")
    assert ran.code == 0
    assert "what became STALE by it is not known" in ran.out
    assert gsum("build", "//...").code == 0


def test_mode_is_kept_and_nothing_is_left_beside_the_manifest(gsum):
    manifest_of(gsum).chmod(0o640)
    gsum("doc", "withdraw", "//dossier:S-1", "D-00")
    assert stat.S_IMODE(manifest_of(gsum).stat().st_mode) == 0o640
    assert sorted(path.name for path in manifest_of(gsum).parent.iterdir()) == ["documents", "dossier.toml"]


def test_a_manifest_that_is_a_link_is_edited_where_it_lies(gsum):
    manifest = manifest_of(gsum)
    real = gsum.root / "manifests.toml"
    manifest.rename(real)
    manifest.symlink_to(real)
    assert gsum("doc", "withdraw", "//dossier:S-1", "D-00").code == 0
    assert manifest.is_symlink()
    assert "withdrawn = true" in real.read_text()


def test_a_manifest_that_leads_out_of_the_workspace_is_refused(gsum, tmp_path):
    manifest = manifest_of(gsum)
    outside = tmp_path / "outside.toml"
    manifest.rename(outside)
    manifest.symlink_to(outside)
    before = outside.read_bytes()
    ran = gsum("doc", "withdraw", "//dossier:S-1", "D-00")
    assert ran.code == ExitCode.DECLARATION
    assert outside.read_bytes() == before


def test_a_plain_folder_has_no_manifest_to_edit(gsum):
    folder = gsum.root / "corpus/dossiers/plain"
    folder.mkdir()
    (folder / "a.txt").write_text("Product P-1-00 site: Hall 1.\n")
    ran = gsum("doc", "withdraw", "//dossier:plain", "a.txt")
    assert ran.code == ExitCode.DECLARATION
    assert "has no manifest" in ran.err


def test_two_edits_at_once_are_both_kept(gsum):
    processes = [gsum.start("doc", "withdraw", "//dossier:S-1", document) for document in ("D-00", "D-01")]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert [document_of(gsum, number)["withdrawn"] for number in (0, 1)] == [True, True]


def test_a_folder_that_cannot_be_written_is_an_error():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        gsum = Gsum(Path(folder) / "w", {"S-1": 2})
        before = manifest_of(gsum).read_bytes()
        manifest_of(gsum).parent.chmod(0o555)

        def edit():
            ran = gsum("doc", "withdraw", "//dossier:S-1", "D-00")
            return json.dumps([ran.code, ran.err])

        code, err = json.loads(as_nobody(edit))
        manifest_of(gsum).parent.chmod(0o755)
        assert code == ExitCode.DECLARATION
        assert "can't be written" in err
        assert manifest_of(gsum).read_bytes() == before
