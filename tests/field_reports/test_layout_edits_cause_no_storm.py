"""An upgrade or a reformatted file runs finished workflows again, because white space or times count (snakemake#1677,
#1694, #3456); the way out is to declare everything up to date by hand.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.cli import Gsum
from support.workspaces import edit_text


@pytest.fixture
def gsum(tmp_path: Path) -> Gsum:
    gsum = Gsum(tmp_path / "ws", {"S-1": 6, "S-2": 2})
    assert gsum("build", "//dossier:all").code == 0
    return gsum


def built(gsum: Gsum) -> tuple[list[str], list[str], int]:
    calls = gsum.calls
    document = gsum("build", "//dossier:all", "--json").document
    return document["recomputed"], document["generated"], gsum.calls - calls


def test_touching_every_file_runs_nothing(gsum: Gsum) -> None:
    for path in gsum.root.rglob("*"):
        if path.is_file() and ".gsum" not in path.parts:
            os.utime(path, (1, 1))
    assert built(gsum) == ([], [], 0)


def test_another_layout_of_declarations_runs_nothing(gsum: Gsum) -> None:
    file = gsum.root / "BUILD.toml"
    text = (
        file.read_text().replace(" = ", "   =   ").replace("[package.baseline]", "# A comment.\n\n[package.baseline]")
    )
    file.write_text(text + "\n\n# The end.\n")
    manifest = gsum.root / "corpus/dossiers/S-1/dossier.toml"
    manifest.write_text("# Dossier one.\n" + manifest.read_text().replace("withdrawn = false", "withdrawn    = false"))
    assert built(gsum) == ([], [], 0)


def test_white_space_in_a_document_is_read_and_goes_no_further(gsum: Gsum) -> None:
    file = gsum.root / "corpus/dossiers/S-1/documents/D-03.v1.txt"
    edit_text(gsum.root, "S-1", "D-03", "\n\n" + file.read_text().replace("\n", "\n\n") + "\n \n")
    recomputed, generated, calls = built(gsum)
    assert recomputed == [f"//dossier:S-1/{part}" for part in ("leaf-03", "reduce-00", "root")]
    assert (generated, calls) == ([], 0)  # what the model is shown is the same: no call, neither there nor above
    quoted = gsum("show", "//dossier:S-1/leaf-03", "--json").document["claims"][0]["evidence"][0]
    assert file.read_text()[quoted["start"] : quoted["end"]] == quoted["quote"]


def test_white_space_in_every_document_asks_the_model_nothing(gsum: Gsum) -> None:
    for folder in ("S-1", "S-2"):
        for file in (gsum.root / "corpus/dossiers" / folder / "documents").glob("*.v1.txt"):
            file.write_text(file.read_text() + "\n")
    assert built(gsum)[1:] == ([], 0)


def test_moving_the_workspace_runs_nothing(gsum: Gsum, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    gsum.root.rename(moved)
    gsum.root = moved
    assert built(gsum) == ([], [], 0)
