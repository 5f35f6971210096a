"""gsum for the peers harness: `python peers.py --plugin …/gsum_tool.py --tools gsum,floor-py,ninja --D 30,625`.

Run it with the harness's folder as working directory. GSUM names the command (default: `gsum` on the path).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools import Tool  # the harness's

HERE = Path(__file__).resolve().parent
GSUM = os.environ.get("GSUM", "gsum")

BUILD = """\
[workspace]
name = "peers"
principal = "reader"
default_toolchain = "act"

[sources.docs]
path = "docs"

[toolchain.act]
executor = "command"
command = [{python}, {model}]
identity = "act-1"
reproducible = true
network = false
grammar = {{ strength = "none" }}

[prompt.leaf]
system = "leaf"
instruction = {{ file = "recipe/leaf.txt" }}

[prompt.reduce]
system = {{ file = "recipe/root.txt" }}
instruction = {{ file = "recipe/reduce.txt" }}

[schema.bytes]
fields = ["out"]
max_length = 4096

[package.bench]
rule = "summary_tree"
sources = "docs"
map_prompt = "leaf"
reduce_prompt = "reduce"
schema = "bytes"
fan_in = 4
map_input_tokens = 100000
reduce_input_tokens = 100000
"""


class Gsum(Tool):
    """Every root of the workload as a target; what really runs is logged by the model."""

    name = "gsum"

    def __init__(self) -> None:
        self._roots: dict[str, str] = {}
        self._read_at: tuple[int, bool] | None = None

    def version(self) -> str:
        return os.popen(f"{GSUM} --version").read().strip()

    def prepare(self, d: Path, D: int) -> None:
        model = str(HERE / "model.py")
        (d / "BUILD.toml").write_text(BUILD.format(python=json.dumps(sys.executable), model=json.dumps(model)))

    def cmd(self, d: Path, D: int) -> list[str]:
        return [GSUM, "build", "//bench:all", "--quiet"]

    def clean(self, d: Path) -> None:
        super().clean(d)
        shutil.rmtree(d / ".gsum", ignore_errors=True)

    def root(self, d: Path, i: int) -> bytes:
        """Return the bytes of a root's one claim, of what is current; read once for all roots after a build."""
        state = (d / ".gsum" / "store.sqlite").stat().st_mtime_ns, (d / ".gsum" / "store.sqlite-wal").exists()
        if state != self._read_at:
            python = Path(shutil.which(GSUM) or GSUM).parent / "python"
            found = subprocess.run([python, HERE / "roots.py", d], capture_output=True, text=True, check=True)
            self._roots, self._read_at = json.loads(found.stdout), state
        return bytes.fromhex(self._roots.get(f"//bench:d{i:05d}/root", ""))


TOOLS = [Gsum]
