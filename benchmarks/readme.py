"""Runs the README's session with the real model on a scratch copy, and writes its output blocks.

    python benchmarks/readme.py            # rewrite the blocks of README.md
    python benchmarks/readme.py --check    # say which blocks differ in more than times, ids and the machine's speed

A block stands between `<!-- block NAME -->` and `<!-- /block -->`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
LABEL = "//dossier:S-037/root"
SESSION = {
    "show": [["build", LABEL, "--quiet"], ["show", LABEL]],
    "stale": [["doc", "activate", "//dossier:S-037", "D-37-11", "--version", "2"], ["show", LABEL]],
    "explain": [["explain-miss", LABEL]],
    "rebuild": [["build", LABEL]],
    "null": [["build", LABEL]],
}
"""By block: the commands of the session, in order; the last one of each block is the one shown, with `stale` both."""

_BLOCK = re.compile(r"<!-- block (\w+) -->\n.*?<!-- /block -->", re.DOTALL)
_VARIES = re.compile(
    r"\d{14}-[0-9a-f]{8}|\d{4}-\d\d-\d\dT[\d:]+Z|(?:\d+ h )?(?:\d+ min )?\d+(?:\.\d+)? s(?:/\w+)?\b|\d[\d,]* tokens"
)


def workspace(folder: Path) -> Path:
    """Make a workspace of this repository's declarations and dossier S-037 in `folder`."""
    shutil.copy(ROOT / "BUILD.toml", folder)
    dossier = folder / "corpus/dossiers/S-037"
    shutil.copytree(ROOT / "corpus/dossiers/S-037", dossier)
    (folder / "corpus/labels").mkdir()
    shutil.copy(ROOT / "corpus/labels/S-037.json", folder / "corpus/labels")
    return folder


def gsum(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run gsum in a workspace and return its exit code and what it printed, errors last."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GSUM_STORE")}
    done = subprocess.run(
        [sys.executable, "-m", "gsum.cli", *arguments], cwd=folder, capture_output=True, text=True, env=environment
    )
    return done.returncode, done.stdout + done.stderr


def session(folder: Path) -> dict[str, str]:
    """Run the session and return its blocks by name, as the README shows them."""
    blocks = {}
    for name, commands in SESSION.items():
        lines = []
        for command in commands:
            code, output = gsum(folder, *command)
            if command[0] == "build" and "--quiet" in command:
                continue
            lines += [f"$ gsum {' '.join(command)}", *output.rstrip().splitlines()]
            if code:
                lines.append(f"$ echo $?\n{code}")
        blocks[name] = "\n".join(lines)
    return blocks


def readme_blocks(text: str) -> dict[str, str]:
    """Return the blocks of a README by name, without their fences."""
    return {match[1]: "\n".join(match[0].splitlines()[2:-2]) for match in _BLOCK.finditer(text)}


def comparable(block: str) -> str:
    """Return a block without what differs from run to run: times, ids, counts of tokens."""
    return _VARIES.sub("…", block)


def main() -> int:
    """Rewrite or check the README."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as scratch:
        blocks = session(workspace(Path(scratch)))
    text = README.read_text()
    if check:
        written = readme_blocks(text)
        differing = [name for name, block in blocks.items() if comparable(written.get(name, "")) != comparable(block)]
        print("differ: " + ", ".join(differing) if differing else "the README's blocks are what the session prints")
        return bool(differing)
    README.write_text(
        _BLOCK.sub(lambda m: f"<!-- block {m[1]} -->\n```console\n{blocks[m[1]]}\n```\n<!-- /block -->", text)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
