"""Times explanations and queries in a large workspace: `python benchmarks/bench_explain.py [--targets N] [--out FILE]`.

Builds dossiers of 12 documents (16 targets each) with an in-process executor, edits one document, and then times, in
one warm process, `explain-miss` of that dossier's root from the reading of BUILD.toml to the explanation; the same
between two builds; and queries over the whole graph after it is loaded. Goals: 50 ms each. Prints medians.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from gsum.engine.build import Build
from gsum.engine.clock import Clock
from gsum.engine.events import Event
from gsum.engine.executors.protocol import ExecRequest, Outcome
from gsum.engine.executors.protocol import Generated as Answered
from gsum.engine.explain import explain, explain_between, own_invocations
from gsum.engine.explain.reading import WorkspaceReader
from gsum.engine.query import run_query
from gsum.engine.query.load import load_outline_around, load_target_graph
from gsum.engine.report import BuildOptions
from gsum.engine.universe import WorkspaceDocuments, load_universe
from gsum.store.local import LocalStore, open_store
from gsum.store.records import Generation, StopReason
from gsum.store.version import VERSION

DOCUMENTS = 12
PARTS = 16
GOAL_MS = 50
LABEL = "//dossier:S-00000/root"
QUERIES = (
    "rdeps(//..., //corpus:S-00001/D-03)",
    "rdeps(//..., //schema:fact)",
    "somepath(//..., //corpus:S-00001/D-03)",
    "deps(//...)",
    "kind(map, //...)",
)

BUILD = """
[workspace]
name = "large"
principal = "reader"
default_toolchain = "fake"

[sources.corpus]
path = "corpus"

[toolchain.fake]
executor = "command"
command = ["none"]
identity = "bench-1"
reproducible = true
network = false
grammar = { strength = "none" }

[prompt.map]
system = "Read."
instruction = "List."

[prompt.reduce]
system = "Read."
instruction = "Choose."

[schema.fact]
fields = ["value"]

[package.dossier]
rule = "summary_tree"
sources = "corpus"
map_prompt = "map"
reduce_prompt = "reduce"
schema = "fact"
fan_in = 4
map_input_tokens = 2048
reduce_input_tokens = 2048
"""


class Instant:
    """An executor that answers at once, in process: no claims."""

    capacity = 256
    network = False
    reproducible = True

    def __init__(self) -> None:
        self._waiting: list[ExecRequest] = []

    def submit(self, requests: Sequence[ExecRequest]) -> None:
        self._waiting += requests

    def wait(self, timeout: float | None) -> list[Outcome]:
        del timeout
        taken, self._waiting = self._waiting, []
        return [self._answer(request) for request in taken]

    def cancel(self) -> None:
        self._waiting.clear()

    def close(self) -> None:
        self._waiting.clear()

    def _answer(self, request: ExecRequest) -> Answered:
        return Answered(
            key=request.key,
            generation=Generation((1,), '{"claims":[]}', StopReason.EOS),
            seconds=0.0,
            device="cpu",
            dtype="none",
            versions={},
            settings={},
            prompt_tokens=1,
            prefilled=1,
            reused=0,
            forced=0,
            sampled=1,
        )


def write(root: Path, dossiers: int) -> None:
    root.mkdir(parents=True)
    (root / "BUILD.toml").write_text(BUILD)
    for number in range(dossiers):
        folder = root / f"corpus/S-{number:05}"
        folder.mkdir(parents=True)
        for slot in range(DOCUMENTS):
            (folder / f"D-{slot:02}").write_text(f"Document {slot} of dossier {number}.\nIt says nothing.\n")


def build(root: Path, store: LocalStore, *patterns: str) -> str:
    universe = load_universe(root, patterns)
    executor = Instant()

    def ignore(event: Event) -> None:
        del event

    return (
        Build(
            workspace=universe.workspace,
            graph=universe.graph,
            keys=universe.keys,
            store=store,
            documents=WorkspaceDocuments(universe.workspace),
            executor_for=lambda _: executor,
            emit=ignore,
            interrupted=lambda: False,
            clock=Clock(lambda: datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic),
            options=BuildOptions(patterns, universe.principal, "fake"),
        )
        .run()
        .invocation
    )


def median_ms(function: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        taken.append((time.perf_counter() - began) * 1000)
    return round(statistics.median(taken), 2)


def measure(root: Path, store_folder: Path, repeats: int) -> dict[str, float]:
    def explain_now() -> None:
        universe = load_universe(root, [LABEL])
        with open_store(store_folder, create=False) as store:
            found = explain(universe, store, WorkspaceDocuments(universe.workspace), LABEL)
        assert len(found.causes) == 1
        assert found.way_back is not None

    def between() -> None:
        workspace, graph = load_outline_around(root, LABEL)
        with open_store(store_folder, create=False) as store:
            last, first, *_ = (record.id for record in own_invocations(store, "reader"))
            reader = WorkspaceReader(workspace, graph, store)
            assert len(explain_between(store, reader, "reader", first, last, LABEL).causes) == 1

    found = {"explain-miss, now": median_ms(explain_now, repeats)}
    with open_store(store_folder, create=False) as store:
        build(root, store, LABEL)
        (root / "corpus/S-00000/D-03").write_text("Edited again.\n")
        build(root, store, LABEL)
    found["explain-miss, between the last two builds"] = median_ms(between, repeats)
    began = time.perf_counter()
    graph = load_target_graph(root)
    found["load of the whole graph"] = round((time.perf_counter() - began) * 1000, 2)
    assert len(run_query(graph, "rdeps(//..., //corpus:S-00001/D-03)").labels) == 4  # also makes the reverse graph
    for text in (
        "rdeps(//..., //corpus:S-00001/D-03)",
        "rdeps(//..., //schema:fact)",
        "deps(//...)",
        "kind(map, //...)",
    ):
        found[f"query {text}"] = median_ms(lambda text=text: run_query(graph, text), repeats)  # type: ignore[misc]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    dossiers = -(-given.targets // PARTS)
    with tempfile.TemporaryDirectory() as folder:
        root, store_folder = Path(folder) / "ws", Path(folder) / "store"
        write(root, dossiers)
        with open_store(store_folder) as store:
            build(root, store, "//...")
        (root / "corpus/S-00000/D-03").write_text("Edited.\n")
        found = measure(root, store_folder, given.repeats)
    conditions = {
        "targets": dossiers * PARTS,
        "repeats": given.repeats,
        "gsum": VERSION,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {platform.system()} {platform.release()}",
    }
    print(f"{conditions}\n")
    for name, value in found.items():
        print(f"{value:>10.1f} ms  {name}")
    if given.out is not None:
        given.out.write_text(json.dumps({"conditions": conditions, "milliseconds": found}, indent=2) + "\n")
    sys.exit(0)


if __name__ == "__main__":
    main()
