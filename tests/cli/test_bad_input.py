"""Bad input at the command line: one clear error, the right exit code, no trace, nothing lost."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.cli import Gsum, clean_environment
from support.other_user import as_nobody
from support.workspaces import edit_build, edit_manifest, edit_text

from gsum.store.errors import ExitCode


@pytest.fixture
def gsum(tmp_path):
    return Gsum(tmp_path / "w", {"S-1": 2})


def refused(gsum, code, message, *arguments):
    """Check that a command fails as one error, in text and in JSON, and return the text."""
    arguments = arguments or ("build", "//dossier:S-1")
    ran = gsum(*arguments)
    assert ran.code == code, ran.err
    assert ran.err.startswith("error: ")
    assert message in ran.err
    assert "Traceback" not in ran.err
    document = gsum(*arguments, "--json").document
    assert document["schema"] == 1
    assert document["error"]["exit_code"] == code
    return ran.err


@pytest.mark.parametrize(
    ("old", "new", "message", "place"),
    [
        ("fan_in = 4", "fan_in = 4\nfan_inn = 3", "has no key `fan_inn`", "fan_inn = 3\n     | ^^^^^^^\n"),
        ("fan_in = 4", 'fan_in = "four"', "`package.dossier.fan_in` must be an integer", '"four"'),
        ("fan_in = 4", "fan_in = 1", "fan_in", "fan_in = 1"),
        ("[package.baseline]", "[package.dossier]", "is declared twice", "[package.dossier]"),
        ('map_prompt = "map-v1"', 'map_prompt = "map-v2"', "map-v2", "did you mean `map-v1`?"),
        ('default_toolchain = "fake"', 'default_toolchain = "fke"', "fke", "did you mean `fake`?"),
        ('schema = "product"\nfan_in', 'schema = "produkt"\nfan_in', "produkt", "did you mean `product`?"),
        ('path = "corpus/dossiers"', 'path = "../elsewhere"', "`..`", "../elsewhere"),
        ('path = "corpus/dossiers"', 'path = "/etc"', "absolute", "/etc"),
        ("fan_in = 4", "fan_in =", "not valid TOML", "fan_in ="),
        ('path = "corpus/dossiers"', 'path = "corpus/labels"', "", "corpus"),
    ],
)
def test_build_toml_errors_point_at_the_place(gsum, old, new, message, place):
    edit_build(gsum.root, old, new)
    err = refused(gsum, ExitCode.DECLARATION, message)
    assert place in err
    assert gsum.calls == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("documents/D-00.v1.txt", "documents/missing.txt", "does not exist"),
        ('id = "D-01"', 'id = "D-00"', "D-00"),
        ('id = "D-00"', 'id = "D@00"', "D@00"),
        ('id = "D-00"', 'id = "D:00"', "D:00"),
        ("documents/D-00.v1.txt", "../../../BUILD.toml", "`..`"),
        ("documents/D-00.v1.txt", "/etc/hostname", "absolute"),
        ('active = "1"', 'active = "3"', "3"),
        ("withdrawn = false", "withdrawn = 0", "withdrawn"),
        ("withdrawn = false", "withdrawnn = false", "withdrawnn"),
        ("revision = 1", "revision = -1", "revision"),
        ("schema = 1", "schema = 2", "schema"),
    ],
)
def test_manifest_errors_point_at_the_place(gsum, old, new, message):
    edit_manifest(gsum.root, "S-1", old, new)
    err = refused(gsum, ExitCode.DECLARATION, message)
    assert "corpus/dossiers/S-1/dossier.toml" in err


def test_a_link_that_leaves_the_workspace_is_refused(gsum, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("Product P-1-00 site: Secret hall.\n")
    file = gsum.root / "corpus/dossiers/S-1/documents/D-00.v1.txt"
    file.unlink()
    file.symlink_to(outside)
    assert "Secret" not in refused(gsum, ExitCode.DECLARATION, "leads outside the workspace")


def test_a_dossier_without_documents_is_refused(gsum):
    manifest = gsum.root / "corpus/dossiers/S-1/dossier.toml"
    manifest.write_text('schema = 1\nid = "S-1"\ntitle = "Empty"\n')
    assert "S-1" in refused(gsum, ExitCode.DECLARATION, "no documents")


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe\x00", b"Product \xe9\n", b"x" * 10_000_000])
def test_documents_that_cannot_be_read_are_refused_without_their_text(gsum, content):
    (gsum.root / "corpus/dossiers/S-1/documents/D-00.v1.txt").write_bytes(content)
    err = refused(gsum, ExitCode.DECLARATION, "D-00")
    assert "xxxx" not in err
    assert "Product" not in err


@pytest.mark.parametrize(
    "text", ["Product P-1-00 site: Hall 1.\r\n", "\ufeffProduct P-1-00 site: Hall 1.\n", "a\u2028b\x85c\x0cd\n"]
)
def test_unusual_but_valid_documents_are_accepted(gsum, text):
    edit_text(gsum.root, "S-1", "D-00", text)
    assert gsum("build", "//dossier:S-1").code == 0
    assert gsum("show", "//dossier:S-1").code == 0


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("//dosier:S-1", "did you mean `//dossier:S-1`?"),
        ("//dossier:S1", "did you mean `//dossier:S-1`?"),
        ("//dossier:S-1/leaf-9", "did you mean `//dossier:S-1/leaf-0"),
        ("dossier:S-1", "write `//package:name/part`"),
        ("//dossier", "`//dossier:all`"),
        ("//corpus:S-1/D-00", "gsum query"),
    ],
)
def test_a_label_that_matches_nothing_is_answered_with_the_nearest(gsum, pattern, hint):
    built = refused(gsum, ExitCode.USAGE, hint, "build", pattern)
    assert pattern in built
    shown = refused(gsum, ExitCode.USAGE, "error: ", "show", pattern)
    assert "hint: " in shown


def test_many_targets_cannot_be_shown_at_once(gsum):
    err = refused(gsum, ExitCode.USAGE, "names many targets where one is needed", "show", "//dossier:S-1/...")
    assert "//dossier:S-1/..." in err


def test_an_unknown_toolchain_is_answered_with_the_nearest(gsum):
    err = refused(gsum, ExitCode.USAGE, "`fak` is not declared", "build", "//dossier:S-1", "--toolchain", "fak")
    assert "did you mean `fake`?" in err


def test_no_workspace_here_or_above(gsum, tmp_path):
    ran = gsum("-C", str(tmp_path), "status", "//...")
    assert ran.code == ExitCode.DECLARATION
    assert "no `BUILD.toml` with a `[workspace]` here or above" in ran.err


def test_a_store_that_was_named_and_is_not_there(gsum, tmp_path):
    refused(gsum, ExitCode.STORE, "no store", "status", "//...", "--store", str(tmp_path / "nowhere"))
    assert not (tmp_path / "nowhere").exists()


def database_of(gsum):
    return gsum.root / ".gsum/store.sqlite"


def test_a_store_of_a_newer_schema_is_refused(gsum):
    gsum("build", "//dossier:S-1")
    with sqlite3.connect(database_of(gsum)) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    for command in ("build", "show"):
        assert "99" in refused(gsum, ExitCode.STORE, "newer gsum", command, "//dossier:S-1")


@pytest.mark.parametrize("size", [0, 100, 5000])
def test_a_truncated_store_is_damage(gsum, size):
    gsum("build", "//dossier:S-1")
    for extra in database_of(gsum).parent.glob("store.sqlite-*"):
        extra.unlink()
    os.truncate(database_of(gsum), size)
    assert "hint: " in refused(gsum, ExitCode.DAMAGE, "damaged", "show", "//dossier:S-1")


def test_a_store_that_may_not_be_written_can_be_read_and_not_built_into():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        gsum = Gsum(Path(folder) / "w", {"S-1": 2})
        gsum("build", "//dossier:S-1")
        for path in (gsum.root / ".gsum", *(gsum.root / ".gsum").rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)

        def look():
            shown, built = gsum("show", "//dossier:S-1"), gsum("build", "//dossier:S-1")
            return json.dumps([shown.code, shown.out, built.code, built.err])

        code, out, failed, err = json.loads(as_nobody(look))
        (gsum.root / ".gsum").chmod(0o755)
        assert (code, out) == (0, gsum("show", "//dossier:S-1").out)
        assert failed == ExitCode.STORE
        assert "read-only" in err


def test_a_store_where_a_file_is_in_the_way(gsum, tmp_path):
    (tmp_path / "file").write_text("")
    said = refused(gsum, ExitCode.STORE, "the store", "build", "//dossier:S-1", "--store", str(tmp_path / "file"))
    assert "File exists" in said
    assert (tmp_path / "file").read_text() == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_under_standard_output_is_no_bug_report(gsum):
    import subprocess
    import sys

    from support.cli import clean_environment

    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gsum.cli", "status", "//..."],
            cwd=gsum.root,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment(),
        )
    assert "this is a bug" not in done.stderr
    assert "No space left on device" in done.stderr
    assert done.returncode == 1


def test_a_store_that_fills_up_keeps_what_is_finished(tmp_path):
    """The limit on file sizes stands for a full disk: SQLite sees the write fail."""
    import resource
    import subprocess
    import sys

    from support.cli import clean_environment

    gsum = Gsum(tmp_path / "w", {"S-1": 40})
    gsum("build", "//dossier:S-1/leaf-00")
    limit = max(path.stat().st_size for path in (gsum.root / ".gsum").iterdir()) + 60_000
    done = subprocess.run(
        [sys.executable, "-m", "gsum.cli", "build", "//dossier:S-1"],
        cwd=gsum.root,
        capture_output=True,
        text=True,
        env=clean_environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == ExitCode.STORE, done.stderr
    assert done.stderr.startswith("error: ")
    finished = done.stdout.count("  generated ")
    assert finished >= 1
    document = gsum("build", "//dossier:S-1", "--json").document
    assert document["status"] == "ok"
    assert len(document["cached"]) >= finished


def test_a_damaged_result_is_damage_shows_no_claim_and_is_made_again_without_the_model(gsum):
    gsum("build", "//dossier:S-1")
    digest = gsum("show", "//dossier:S-1", "--json").document["result"]
    with sqlite3.connect(database_of(gsum)) as connection:
        done = connection.execute(
            "UPDATE blob SET data = replace(data, CAST('Hall' AS BLOB), CAST('Wall' AS BLOB)) WHERE digest = ?",
            (bytes.fromhex(digest),),
        )
        assert done.rowcount == 1
    connection.close()
    calls = gsum.calls
    ran = gsum("show", "//dossier:S-1")
    assert (ran.code, ran.out) == (ExitCode.DAMAGE, "")
    assert "Wall" not in ran.err
    document = gsum("build", "//dossier:S-1", "--json").document
    assert (document["cut_off"], gsum.calls) == (["//dossier:S-1/root"], calls)
    assert gsum("show", "//dossier:S-1").code == 0


def test_a_workspace_below_a_folder_whose_name_is_no_text_is_built_and_shown(gsum, tmp_path):
    folder = os.fsencode(tmp_path) + b"/\xff"
    os.rename(gsum.root, folder)  # noqa: PTH104 - a name of bytes
    for command in (["build", "//..."], ["build", "//..."], ["show", "//dossier:S-1"], ["status", "//...", "--json"]):
        ran = subprocess.run(
            [sys.executable, "-m", "gsum.cli", *command], cwd=folder, capture_output=True, env=clean_environment()
        )
        assert (ran.returncode, ran.stderr) == (0, b""), command
