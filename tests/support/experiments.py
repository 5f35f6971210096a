"""A workspace of the real corpus, cut to some dossiers, with the fake model as a toolchain; and `gsum` in it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from support.cli import Gsum, fake_toolchain

ROOT = Path(__file__).parents[2]


class Corpus(Gsum):
    """`gsum` in a copy of this repository's workspace. The call log of the fake model is `calls`."""

    def __init__(self, root: Path, dossiers: Sequence[str], *model_options: str) -> None:
        self.root = root
        self.log = root.parent / f"{root.name}.calls"
        for dossier in dossiers:
            shutil.copytree(ROOT / "corpus/dossiers" / dossier, root / "corpus/dossiers" / dossier)
            (root / "corpus/labels").mkdir(exist_ok=True)
            shutil.copy(ROOT / f"corpus/labels/{dossier}.json", root / "corpus/labels")
        shutil.copy(ROOT / "corpus/edits.toml", root / "corpus")
        text = (ROOT / "BUILD.toml").read_text().replace('default_toolchain = "smollm2"', 'default_toolchain = "fake"')
        (root / "BUILD.toml").write_text(text + fake_toolchain(self.log, *model_options))

    def experiment(self, *arguments: str):
        """Run `gsum experiment …`."""
        return self("experiment", *arguments)
