"""What a command that shows must read of a workspace, it reads once: each manifest, each source."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.cli import Gsum, clean_environment
from support.workspaces import activate, edit_text, set_reader

from gsum.engine.reading import OneReading
from gsum.engine.universe import universe_of
from gsum.rules.ingest import SourceChanged
from gsum.rules.loader import load_workspace

_OPENED = """
import sys
from gsum.cli.main import main
opened = []
sys.addaudithook(lambda name, given: opened.append(f"{given[1]} {given[0]}") if name == "open" else None)
try:
    main()
finally:
    print("\\n".join(opened), file=sys.stderr)
"""
ROOT = "//dossier:S-1/root"


def opened(root: Path, *words: str) -> Counter[str]:
    """Return how often a command opens each file of the corpus: `open` with an opener is heard of twice."""
    command = [sys.executable, "-c", _OPENED, *words]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, env=clean_environment())
    assert ran.stdout
    heard = [line.partition(" ")[::2] for line in ran.stderr.splitlines() if "/corpus/dossiers/" in line]
    ways = [Counter(path for way, path in heard if (way == "None") is low) for low in (True, False)]
    return Counter({path.rpartition("/S-1/")[2]: max(way[path] for way in ways) for _, path in heard})


@pytest.fixture
def gsum(tmp_path: Path) -> Gsum:
    gsum = Gsum(tmp_path / "w", {"S-1": 3})
    set_reader(gsum.root, "S-1", "D-02", granted=False, revision=2)
    built = gsum("build", "//...")
    assert built.code == 0, built.err
    return gsum


@pytest.mark.parametrize("words", [("show", ROOT), ("show", "//baseline:S-1/root"), ("status", "//..."), ("key", ROOT)])
def test_each_source_that_may_be_read_is_opened_once(gsum: Gsum, words: tuple[str, ...]) -> None:
    once = {"dossier.toml": 1, "documents/D-00.v1.txt": 1, "documents/D-01.v1.txt": 1}
    assert opened(gsum.root, *words) == once


def test_a_build_opens_each_source_once(gsum: Gsum) -> None:
    once = {"dossier.toml": 1, "documents/D-00.v1.txt": 1, "documents/D-01.v1.txt": 1}
    assert opened(gsum.root, "build", "--full", "//baseline:all") == once


def test_an_edit_is_explained_from_one_reading(gsum: Gsum) -> None:
    activate(gsum.root, "S-1", "D-00", "2")
    assert set(opened(gsum.root, "explain-miss", ROOT).values()) == {1}


def test_the_text_that_is_used_is_the_one_that_was_hashed(gsum: Gsum) -> None:
    workspace = load_workspace(gsum.root)
    reading = OneReading(workspace)
    universe = universe_of(workspace, [ROOT], digests=reading)
    leaf = universe.graph.actions["//dossier:S-1/leaf-00"]
    before = (gsum.root / "corpus/dossiers/S-1/documents/D-00.v1.txt").read_text()
    edit_text(gsum.root, "S-1", "D-00", "Edited since.\n")
    assert reading.read(leaf).text == before


def test_what_exceeds_the_room_is_read_again_and_must_be_the_same(gsum: Gsum) -> None:
    workspace = load_workspace(gsum.root)
    reading = OneReading(workspace, kept_bytes=0)
    leaves = universe_of(workspace, [ROOT], digests=reading).graph.actions
    assert reading.read(leaves["//dossier:S-1/leaf-01"]).text.startswith("Reference S-1/01.")
    edit_text(gsum.root, "S-1", "D-00", "Edited since.\n")
    with pytest.raises(SourceChanged):
        reading.read(leaves["//dossier:S-1/leaf-00"])


def test_what_a_build_has_used_makes_room_and_is_read_again_if_wanted_again(gsum: Gsum) -> None:
    workspace = load_workspace(gsum.root)
    texts = [(gsum.root / f"corpus/dossiers/S-1/documents/D-0{number}.v1.txt").read_bytes() for number in (0, 1)]
    reading = OneReading(workspace, kept_bytes=max(map(len, texts)), let_go=True)
    leaves = universe_of(workspace, [ROOT], digests=reading).graph.actions
    edit_text(gsum.root, "S-1", "D-00", "Edited since.\n")
    assert reading.read(leaves["//dossier:S-1/leaf-00"]).data == texts[0]
    with pytest.raises(SourceChanged):
        reading.read(leaves["//dossier:S-1/leaf-00"])
    reading.digest("corpus/dossiers/S-1/documents/D-01.v1.txt", 1000)
    edit_text(gsum.root, "S-1", "D-01", "Edited since.\n")
    assert reading.read(leaves["//dossier:S-1/leaf-01"]).data == texts[1]
