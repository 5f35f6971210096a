"""A staleness check that looks at the whole misses its parts: asked without a partition, an asset is fresh; above 100
partitions nothing is checked at all (dagster#22553, #14385); a corrupt cache is up to date (dvc#9641).
"""

from __future__ import annotations

from pathlib import Path

from support.cli import Gsum
from support.workspaces import activate, edit_manifest


def states(gsum: Gsum, pattern: str) -> dict[str, str]:
    targets = gsum("status", pattern, "--json").document["targets"]
    return {target["label"].rpartition("/")[2]: target["state"] for target in targets}


def test_of_130_parts_one_stale_one_is_found_and_so_is_the_whole(tmp_path: Path) -> None:
    gsum = Gsum(tmp_path / "ws", {"S-1": 130}, fan_in=16)
    gsum("build", "//dossier:S-1", "-q")
    assert set(states(gsum, "//dossier:S-1/...").values()) == {"VALID"}
    activate(gsum.root, "S-1", "D-129", "2")
    stale = {part for part, state in states(gsum, "//dossier:S-1/...").items() if state == "STALE"}
    assert stale == {"leaf-129", "reduce-08", "root"}
    assert gsum("status", "//dossier:S-1").code == 4
    for part in stale:
        ran = gsum("show", f"//dossier:S-1/{part}")
        assert (ran.code, "Hall" in ran.out) == (4, False)
    assert gsum("show", "//dossier:S-1/leaf-128").code == 0


def test_a_new_document_makes_the_whole_stale_though_no_old_one_changed(tmp_path: Path) -> None:
    gsum = Gsum(tmp_path / "ws", {"S-1": 3})
    manifest = (gsum.root / "corpus/dossiers/S-1/dossier.toml").read_text()
    last = "\n[[documents]]" + manifest.split("\n[[documents]]")[-1]
    edit_manifest(gsum.root, "S-1", last, "")
    gsum("build", "//dossier:S-1")
    (gsum.root / "corpus/dossiers/S-1/dossier.toml").write_text(manifest)
    assert states(gsum, "//dossier:S-1/...") == {
        "leaf-00": "VALID",
        "leaf-01": "VALID",
        "leaf-02": "NOT BUILT",
        "root": "STALE",
    }


def test_a_lost_blob_is_no_hit_and_is_made_again(tmp_path: Path) -> None:
    import sqlite3

    gsum = Gsum(tmp_path / "ws", {"S-1": 2})
    gsum("build", "//dossier:S-1")
    result = gsum("show", "//dossier:S-1", "--json").document["result"]
    (database,) = (path for path in (gsum.root / ".gsum").iterdir() if path.suffix in (".db", ".sqlite", ".sqlite3"))
    with sqlite3.connect(database) as connection:
        assert connection.execute("DELETE FROM blob WHERE digest = ?", (bytes.fromhex(result),)).rowcount == 1
    connection.close()
    assert gsum("status", "//dossier:S-1").code == 4
    assert gsum("build", "//dossier:S-1", "--json").document["recomputed"] == ["//dossier:S-1/root"]
    assert gsum("show", "//dossier:S-1").code == 0
