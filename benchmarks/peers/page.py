"""Takes the figures beside other engines and writes `benchmarks/results/peers.md` of them.

    python benchmarks/peers/page.py                                      # the page again, of the raw figures
    python benchmarks/peers/page.py --harness DIR --dir /dev/shm/peers   # take them first, some ten minutes
    … --alone 62500                                                      # and those of a million actions, longer
    python benchmarks/peers/page.py --small                              # rows, start-up and Python's floor, a minute

GSUM names the command. Run it where nothing else runs; the page says what the load was.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from floor import floor_lines, rows_lines, small_goals
from small import take as take_small

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results"
SMALL, LARGE, ALONE, FEW = (RESULTS / f"peers-{name}.json" for name in ("10k", "100k", "alone", "small"))
SIZES = {625: "10,000 actions (7,500 documents)", 6_250: "100,000 actions (75,000 documents)"}
SCENARIOS = {
    "cold": "cold",
    "null": "nothing changed",
    "edit": "one document edited",
    "ws": "whitespace added to one",
    "touch": "one touched",
    "touchall": "all touched",
    "recipe": "reduce prompt changed",
    "null2": "nothing changed, at the end",
}
TOOLS = ("gsum", "floor-py", "ninja", "doit")
GOALS = [
    (625, "null", "ninja", 1.5),
    (625, "null", "doit", 0.15),
    (6_250, "null", "ninja", 0.6),
    (6_250, "edit", "ninja", 0.8),
    (625, "recipe", "floor-py", 1.5),
    (6_250, "recipe", "floor-py", 1.5),
    (6_250, "cold", "floor-py", 3.0),
]
"""Dossiers, scenario, the other tool, and the most of its time that gsum shall take."""
TOUCHES = [
    ("touch", "the first build after one was touched", None),
    ("touchall", "the first build after all were touched", None),
    ("null2", "a build after those", 1.2),
]
"""Scenario, what it is, and the most of a null build's time that it shall take; null: no goal."""
LARGE_SCENARIOS = ("--scenarios", "cold,null,edit,touch,recipe")
"""All eight take the others half an hour at 100,000 actions."""
DOCUMENTS = 12

Row = dict[str, Any]


def take(harness: Path, folder: Path, alone: int | None) -> None:
    """Run the harness at both sizes, and gsum alone over `alone` dossiers of 16 actions if asked."""
    plugged = ["--plugin", str(HERE / "gsum_tool.py"), "--dir", str(folder)]
    runs = [
        (SMALL, ["--D", "625", "--tools", "gsum,floor-py,ninja,doit", "--reps", "5", "--long", "8"]),
        (LARGE, ["--D", "6250", "--tools", "gsum,floor-py,ninja", "--reps", "3", "--long", "15", *LARGE_SCENARIOS]),
    ]
    for file, arguments in runs:
        command = [sys.executable, "peers.py", *plugged, *arguments, "--json", str(file)]
        subprocess.run(command, cwd=harness, check=True, stdout=subprocess.DEVNULL)
        rows = [{name: value for name, value in row.items() if name != "dir"} for row in json.loads(file.read_text())]
        file.write_text(json.dumps(rows, indent=1) + "\n")
    if alone is not None:
        environment = dict(os.environ, PYTHONPATH=f"{harness}{os.pathsep}{HERE}")
        command = [sys.executable, str(HERE / "million.py"), "--dossiers", str(alone), "--dir", str(folder)]
        command += ["--json", str(ALONE)]
        subprocess.run(command, env=environment, check=True)


class Figures:
    """Rows of the harness: medians of seconds, and how many actions ran."""

    def __init__(self, rows: list[Row]) -> None:
        wrong = [row for row in rows if row["err"] or "WRONG" in row["check"]]
        if wrong:
            raise SystemExit(f"a run failed or gave a wrong root: {wrong[0]}")
        self.rows = rows

    def of(self, dossiers: int, scenario: str, tool: str, field: str = "s") -> float | None:
        """Return the median of a field over the repetitions; None where there are none."""
        found = [
            row[field]
            for row in self.rows
            if (row["D"], row["scenario"], row["tool"]) == (dossiers, scenario, tool) and field in row
        ]
        return statistics.median(found) if found else None

    def ratio(self, dossiers: int, scenario: str, tool: str) -> float | None:
        """Return gsum's time as a multiple of another tool's in the same run."""
        mine, other = self.of(dossiers, scenario, "gsum"), self.of(dossiers, scenario, tool)
        return mine / other if mine and other else None

    def table(self, dossiers: int) -> list[str]:
        """Return the table of one size."""
        tools = [tool for tool in TOOLS if self.of(dossiers, "null", tool)]
        lines = [f"| scenario | {' | '.join(tools)} | gsum / ninja | gsum / floor |", "|---" * (len(tools) + 3) + "|"]
        for scenario, title in SCENARIOS.items():
            if self.of(dossiers, scenario, "gsum") is None:
                continue
            cells = [self._cell(dossiers, scenario, tool) for tool in tools]
            ratios = [shown(self.ratio(dossiers, scenario, tool), 2) for tool in ("ninja", "floor-py")]
            lines.append(f"| {title} | {' | '.join([*cells, *ratios])} |")
        return lines

    def _cell(self, dossiers: int, scenario: str, tool: str) -> str:
        ran, floor = (self.of(dossiers, scenario, name, "n") for name in (tool, "floor-py"))
        differs = "" if ran == floor or ran is None else f" ({ran:,.0f} ran)"
        return f"{shown(self.of(dossiers, scenario, tool), 3)}{differs}"

    def goals(self) -> list[str]:
        """Return the table of goals and what was reached."""
        lines = ["| goal | most | reached | |", "|---|---|---|---|"]
        for dossiers, scenario, tool, most in GOALS:
            name = f"{SCENARIOS[scenario]} at {dossiers * 16:,}, of {tool}"
            lines.append(goal(name, most, self.ratio(dossiers, scenario, tool)))
        for scenario, title, most in TOUCHES:
            mine, null = self.of(625, scenario, "gsum"), self.of(625, "null", "gsum")
            lines.append(goal(f"{title} at 10,000, of a null build", most, mine / null if mine and null else None))
        return lines


def goal(name: str, most: float | None, reached: float | None) -> str:
    """Return a line of the table of goals."""
    met = "" if reached is None or most is None else "met" if reached <= most else "not met"
    return f"| {name} | {shown(most, 2)} | {shown(reached, 2)} | {met} |"


def shown(value: float | None, digits: int) -> str:
    """Return a number as the tables show it."""
    return "–" if value is None else f"{value:,.{digits}f}"


def alone_lines(rows: list[Row], figures: Figures) -> list[str]:
    """Return what very many actions took, and what a source costs there and at 100,000."""
    lines = ["| scenario | wall s | CPU s | peak MiB | ran |", "|---|---|---|---|---|"]
    for scenario in ("slice", "null", "touch", "null after touch", "edit"):
        found = [row for row in rows if row["scenario"] == scenario]
        if found:
            cells = [shown(statistics.median(row[name] for row in found), 2) for name in ("s", "cpu")]
            title = f"cold, each of {len(found)} slices" if scenario == "slice" else scenario
            peak = max(row["rss"] for row in found)
            lines.append(f"| {title} | {' | '.join(cells)} | {peak:,.0f} | {max(row['ran'] for row in found):,} |")
    sources = rows[0]["actions"] // 16 * DOCUMENTS
    cost = statistics.median(row["cpu"] for row in rows if row["scenario"] == "null") / sources * 1e6
    at_large = figures.of(6_250, "null", "gsum", "cpu")
    beside = "" if at_large is None else f"; at 100,000 actions {at_large / (6_250 * DOCUMENTS) * 1e6:.1f}"
    loads = [row["load"] for row in rows]
    lines += [
        "",
        f"A null build costs {cost:.1f} µs of CPU a source{beside}. The load average was {min(loads):.1f} to "
        f"{max(loads):.1f}: above the number of CPUs, wall seconds say little.",
    ]
    return lines


def page(figures: Figures, alone: list[Row] | None, small: Row | None) -> str:
    """Return the page."""
    loads = [row["load"] for row in figures.rows if "load" in row]
    versions = dict.fromkeys(row["version"].replace(", version", "") for row in figures.rows)
    lines = [
        HEAD.format(
            cpus=os.cpu_count(),
            machine=platform.machine(),
            kernel=platform.release().partition("-")[0],
            load=f"{min(loads):.1f} to {max(loads):.1f}",
            versions=", ".join(versions),
        )
    ]
    for dossiers, title in SIZES.items():
        if figures.of(dossiers, "null", "gsum") is not None:
            lines += [f"## {title}", "", *figures.table(dossiers), ""]
    few = [goal(*one) for one in small_goals(small)] if small else []
    lines += ["## Goals", "", *figures.goals(), *few, ""]
    if small:
        cpu = [figures.of(6_250, "cold", tool, "cpu") for tool in ("floor-py", "gsum")]
        lines += [*rows_lines(small), "", *floor_lines(small, *cpu), ""]
    if alone:
        lines += [f"## {alone[0]['actions']:,} actions, gsum alone", "", *alone_lines(alone, figures), ""]
    taken = f"here {alone[0]['actions']:,} actions were taken" if alone else "none were taken here"
    return "\n".join([*lines, FOOT.format(alone=taken)])


HEAD = """\
# Beside other build engines

The workload of a harness that runs one summary tree (dossiers of 12 documents of 600 bytes; 12 leaves, 3 reductions,
1 root each, a deterministic action of microseconds) through several engines, interleaved in one run;
`benchmarks/peers/gsum_tool.py` plugs gsum in, as a `command` toolchain, with every generation committed durably. Roots
are compared with a reference answer.

Machine: {cpus} CPUs ({machine}), Linux {kernel}, tmpfs (so no disk is waited for), load average
{load}; {versions}. `floor-py` is the least a correct in-process Python engine does; it keeps its
state once, at the end, and loses all of it in a crash. Medians of wall seconds; `ran` is how many actions really ran,
where it differs from `floor-py`.
"""
FOOT = """\
Whitespace at the end of a document changes no request, so gsum runs nothing where the others run the leaf. What was
touched is read and hashed, not analysed. Cold builds pay for what the others do not keep: requests, generations,
preimages, evidence and results of every action, in one store, durably.

Made again by `python benchmarks/peers/page.py --harness DIR --dir DIR --small`; `--alone DOSSIERS` takes gsum alone
over so many dossiers of 16 actions (62,500 are a million actions; {alone}). Raw figures: `peers-10k.json`,
`peers-100k.json`, `peers-alone.json`, `peers-small.json`.
"""


def main() -> None:
    """Take the figures if asked, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--harness", type=Path, help="the folder of the harness: take the figures first")
    parser.add_argument("--dir", type=Path, default=Path("/dev/shm/peers"), help="where the trees are made")
    parser.add_argument("--alone", type=int, metavar="DOSSIERS", help="take those of so many dossiers, gsum alone, too")
    parser.add_argument("--small", action="store_true", help="take rows, start-up and Python's floor")
    given = parser.parse_args()
    if given.harness is not None:
        take(given.harness.resolve(), given.dir, given.alone)
    if given.small:
        FEW.write_text(json.dumps(take_small(given.dir), indent=1) + "\n")
    rows = [row for file in (SMALL, LARGE) if file.exists() for row in json.loads(file.read_text())]
    alone = json.loads(ALONE.read_text()) if ALONE.exists() else None
    small = json.loads(FEW.read_text()) if FEW.exists() else None
    (RESULTS / "peers.md").write_text(page(Figures(rows), alone, small))


if __name__ == "__main__":
    main()
