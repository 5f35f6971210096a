"""What the old answer saves as a draft: a document of a dossier changes, and the build goes with and without `--draft`.

    .venv/bin/python benchmarks/bench_drafts.py --write     # writes benchmarks/results/drafts.json and .md

Each document is edited in copies of one built workspace. The same warm workers serve both ways, which take turns at
going first. Token ids must be equal. Not for a machine that does else.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench_cold import Bench
from readme import LABEL

from gsum.store.local import open_store

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "drafts"
DOSSIER = LABEL.partition("/root")[0]
WITHOUT, WITH = "no draft", "draft"
SUMS = ("generations", "sampled", "foretold", "passes", "worker cpu s")


class Edits:
    """One dossier, built once; each edit starts from there."""

    def __init__(self, folder: Path) -> None:
        self.bench = Bench(folder)
        self._built = folder / "built"
        self.bench.gsum("build", LABEL)
        shutil.copytree(self.bench.place, self._built)

    def documents(self) -> list[str]:
        """Return the documents that have a second version."""
        files = (self._built / "corpus/dossiers/S-037/documents").glob("*.v2.txt")
        return sorted(file.name.partition(".")[0] for file in files)

    def kind(self, document: str) -> str:
        """Return the field of the facts by which the versions of a document differ."""
        folder = self._built / "corpus/dossiers/S-037/documents"
        old, new = ((folder / f"{document}.v{n}.txt").read_text().splitlines() for n in (1, 2))
        changed = [line for line in new if line not in old]
        facts = [line.partition(":")[0].split()[-1] for line in changed if line.startswith("Product ")]
        return ", ".join(dict.fromkeys(facts)) or "no fact"

    def build(self, document: str, way: str) -> tuple[dict[str, Any], dict[str, str]]:
        """Activate a document's second version and build; return the sums, and generations by label."""
        place, events = self.bench.place, self._built.with_name("events.jsonl")
        shutil.rmtree(place)
        shutil.copytree(self._built, place)
        self.bench.gsum("doc", "activate", DOSSIER, document, "--version", "2")
        before = sum(one["cpu_seconds"] for one in self.bench.workers())
        options = ["--draft"] if way == WITH else []
        self.bench.gsum("build", LABEL, "--events", str(events), *options)
        used = sum(one["cpu_seconds"] for one in self.bench.workers()) - before
        told = [json.loads(line) for line in events.read_text().splitlines()]
        made = [one for one in told if one["event"] == "ActionFinished" and one["how"] == "generated"]
        sampled, foretold = (sum(one[name] for one in made) for name in ("sampled_tokens", "drafted_tokens"))
        row = {
            "document": document,
            "changed": self.kind(document),
            "way": way,
            "generations": len(made),
            "sampled": sampled,
            "foretold": foretold,
            "passes": sampled - foretold,
            "worker cpu s": used,
            "load": os.getloadavg()[0],
        }
        return row, self._generations([one["key"] for one in made])

    def _generations(self, keys: list[str]) -> dict[str, str]:
        with open_store(self.bench.place / ".gsum") as store:
            return {key: str(entry.generation) for key, entry in store.entries(keys).items()}


def table(rows: list[dict[str, Any]]) -> str:
    """Return the page."""
    lines = [
        "# Old answers as drafts",
        "",
        f"One document of `{DOSSIER}` goes to its second version, and the root is built again: the leaf, its reduction",
        "and the root. `sampled`: tokens that the model chose, where the grammar left a choice; `foretold`: those of",
        "them that the draft said, which cost no pass of their own; `passes`: the others. All token ids were equal.",
        "",
        "| changed | way | edits | " + " | ".join(SUMS) + " |",
        "|---" * (len(SUMS) + 3) + "|",
    ]
    for kind in (*dict.fromkeys(row["changed"] for row in rows), "all"):
        for way in (WITHOUT, WITH):
            mine = [row for row in rows if row["way"] == way and kind in (row["changed"], "all")]
            lines.append(
                f"| {kind} | {way} | {len(mine)} | " + " | ".join(f"{_sum(mine, name):.4g}" for name in SUMS) + " |"
            )
    before, after = ([row for row in rows if row["way"] == way] for way in (WITHOUT, WITH))
    saved = 1 - _sum(after, "passes") / _sum(before, "passes")
    cpu = _sum(after, "worker cpu s") / _sum(before, "worker cpu s")
    lines += ["", f"A draft saves {saved:.0%} of the passes, and takes {cpu:.2f} times the CPU of the workers."]
    return "\n".join(lines) + "\n"


def _sum(rows: Iterable[dict[str, Any]], name: str) -> float:
    return sum(row[name] for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=12, help="how many are edited")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/drafts.json and .md")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        edits = Edits(Path(folder))
        try:
            for number, document in enumerate(edits.documents()[: given.documents]):
                found = {}
                for way in (WITHOUT, WITH) if number % 2 == 0 else (WITH, WITHOUT):
                    row, found[way] = edits.build(document, way)
                    rows.append(row)
                    print(json.dumps(row), flush=True)
                if found[WITH] != found[WITHOUT] or not found[WITH]:
                    raise SystemExit(f"a draft changed what was said of {document}")
        finally:
            edits.bench.gsum("worker", "stop")
    text = table(rows)
    print(text)
    if given.write:
        RESULTS.with_suffix(".json").write_text(
            json.dumps({"processors": os.cpu_count(), "rows": rows}, indent=1) + "\n"
        )
        RESULTS.with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
