"""Compares gsum's query evaluator with `bazel query` itself, on the same random graphs and the same queries.

Needs Debian's `bazel-bootstrap` (or any `bazel`): `python benchmarks/query_vs_bazel.py [--graphs 3] [--queries 60]`.
Each graph becomes a package of genrules and filegroups; both evaluate the same text. Of `somepath`, which is free to
choose, both answers must be paths of the graph, and exist or not alike. Exits with 1 at the first difference.
"""

from __future__ import annotations

import argparse
import itertools
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gsum.engine.query import Selection, TargetGraph, run_query

PACKAGE = "g"
RULES = ("genrule", "filegroup")


class Case:
    """One random acyclic graph, as Bazel's package and as a target graph."""

    def __init__(self, chance: random.Random, size: int, folder: Path) -> None:
        self.names = [f"n{number}" for number in range(size)]
        self.kinds = {name: chance.choice(RULES) for name in self.names}
        self.below = {
            name: sorted(chance.sample(self.names[:number], min(number, chance.randint(0, 4))))
            for number, name in enumerate(self.names)
        }
        self.folder = folder
        package = folder / PACKAGE
        package.mkdir(parents=True)
        (folder / "WORKSPACE").touch()
        (package / "BUILD").write_text("".join(map(self._rule, self.names)))
        self.graph = TargetGraph(
            {_label(name): f"{kind} rule" for name, kind in self.kinds.items()},
            {_label(name): [_label(other) for other in below] for name, below in self.below.items()},
        )

    def _rule(self, name: str) -> str:
        sources = ", ".join(f'":{other}"' for other in self.below[name])
        if self.kinds[name] == "genrule":
            return f'genrule(name="{name}", srcs=[{sources}], outs=["{name}.out"], cmd="touch $@")\n'
        return f'filegroup(name="{name}", srcs=[{sources}])\n'

    def is_path(self, labels: Sequence[str]) -> bool:
        """Whether each label depends directly on the one after it."""
        names = [label.rpartition(":")[2] for label in labels]
        return all(after in self.below[before] for before, after in itertools.pairwise(names))


def expression(chance: random.Random, case: Case, depth: int) -> str:
    """Return a random query over a graph's labels."""
    if depth == 0:
        some = chance.sample(case.names, chance.randint(1, 3))
        return _label(some[0]) if len(some) == 1 else f"set({' '.join(map(_label, some))})"
    inner = [expression(chance, case, depth - 1) for _ in range(2)]
    limit = chance.choice(["", f", {chance.randint(0, 3)}"])
    return chance.choice(
        [
            f"deps({inner[0]}{limit})",
            f"rdeps({inner[0]} + {inner[1]}, {inner[1]}{limit})",
            f"rdeps(set({' '.join(map(_label, case.names))}), {inner[0]}{limit})",
            f"allpaths({inner[0]}, {inner[1]})",
            f"kind('{chance.choice(['genrule', 'filegroup', 'rule'])}', {inner[0]})",
            f"filter('n[0-9]*{chance.randint(0, 9)}$', {inner[0]})",
            f"({inner[0]} {chance.choice(['+', '-', '^', 'union', 'except', 'intersect'])} {inner[1]})",
            f"let v = {inner[0]} in ($v ^ deps({inner[1]}))",
        ]
    )


def bazel(case: Case, text: str, base: Path) -> list[str]:
    """Return Bazel's answer, without files and the targets of its own tools."""
    command = ["bazel", f"--output_user_root={base}", "query", "--noimplicit_deps", text]
    ran = subprocess.run(command, cwd=case.folder, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"bazel can't answer `{text}`:\n{ran.stderr}")
    return [line for line in ran.stdout.split() if line in case.graph.numbers]


def gsum(case: Case, text: str) -> tuple[str, ...]:
    """Return gsum's answer."""
    result = run_query(case.graph, text)
    assert isinstance(result, Selection)
    return result.labels


def compare(case: Case, text: str, base: Path) -> str | None:
    """Return what differs, None where nothing does."""
    theirs, ours = bazel(case, text, base), gsum(case, text)
    if text.startswith("somepath"):
        if bool(theirs) == bool(ours) and case.is_path(ours) and case.is_path(theirs) and len(ours) <= len(theirs):
            return None
    elif set(theirs) == set(ours):
        return None
    return f"{text}\n  bazel {theirs}\n  gsum  {list(ours)}"


def _label(name: str) -> str:
    return f"//{PACKAGE}:{name}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=3)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--size", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if shutil.which("bazel") is None:
        sys.exit("`bazel` is not installed: on Debian, `apt-get install bazel-bootstrap`")
    chance = random.Random(given.seed)
    began, asked = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.graphs):
            case = Case(chance, given.size, Path(folder) / f"graph-{number}")
            base = Path(folder) / "bazel"
            texts = [expression(chance, case, chance.randint(1, 3)) for _ in range(given.queries)]
            texts += [f"somepath({expression(chance, case, 1)}, {expression(chance, case, 1)})" for _ in range(10)]
            try:
                for text in texts:
                    asked += 1
                    if (difference := compare(case, text, base)) is not None:
                        sys.exit(f"graph {number} differs:\n{difference}")
            finally:
                command = ["bazel", f"--output_user_root={base}", "shutdown"]
                subprocess.run(command, cwd=case.folder, capture_output=True, check=False)
    print(f"{asked} queries on {given.graphs} graphs of {given.size} targets: all answers agree")
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
