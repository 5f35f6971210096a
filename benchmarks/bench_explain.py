"""Times explanations and queries in a large workspace: `python benchmarks/bench_explain.py [--targets N] [--out FILE]`.

Builds dossiers of 12 documents (16 targets each) with an in-process executor, edits one document, and then times, in
one warm process, `explain-miss` of that dossier's root from the reading of BUILD.toml to the explanation: now, of past
builds, and between two builds; the loading of the whole graph, and queries over it once it is loaded. Goals: 50 ms each
but for the load. Prints medians by the clock and by the CPU: where other work runs, only the latter can be compared.
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
from typing import NamedTuple

from gsum.engine.build import Build
from gsum.engine.clock import Clock
from gsum.engine.events import Event
from gsum.engine.executors.protocol import ExecRequest, Outcome
from gsum.engine.executors.protocol import Generated as Answered
from gsum.engine.explain import explain, explain_between, explain_invocation, own_invocations
from gsum.engine.explain.reading import WorkspaceReader
from gsum.engine.query import parse, run_query
from gsum.engine.query.load import load_outline_around, load_target_graph
from gsum.engine.report import BuildOptions
from gsum.engine.universe import WorkspaceDocuments, load_universe
from gsum.store.local import LocalStore, open_store
from gsum.store.records import Generation, StopReason
from gsum.store.version import VERSION

DOCUMENTS = 12
PARTS = 16
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


class Took(NamedTuple):
    """Medians in milliseconds."""

    wall: float
    cpu: float


def timed(function: Callable[[], object], repeats: int) -> Took:
    taken = []
    for _ in range(repeats):
        began = time.perf_counter(), time.process_time()
        function()
        taken.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    wall, cpu = (round(statistics.median(column) * 1000, 2) for column in zip(*taken, strict=True))
    return Took(wall, cpu)


def explanations(root: Path, store_folder: Path, repeats: int) -> dict[str, Took]:
    def explain_now() -> None:
        universe = load_universe(root, [LABEL])
        with open_store(store_folder, create=False) as store:
            found = explain(universe, store, WorkspaceDocuments(universe.workspace), LABEL)
        assert len(found.causes) == 1
        assert found.way_back is not None

    def between(first: str, last: str) -> None:
        workspace, graph = load_outline_around(root, LABEL)
        with open_store(store_folder, create=False) as store:
            reader = WorkspaceReader(workspace, graph, store)
            assert len(explain_between(store, reader, "reader", first, last, LABEL).causes) == 1

    def past(invocation: str) -> None:
        workspace, graph = load_outline_around(root, LABEL)
        with open_store(store_folder, create=False) as store:
            reader = WorkspaceReader(workspace, graph, store)
            assert len(explain_invocation(store, reader, "reader", invocation, LABEL).causes) == 1

    found = {"explain-miss, now": timed(explain_now, repeats)}
    with open_store(store_folder, create=False) as store:
        build(root, store, LABEL)
        (root / "corpus/S-00000/D-03").write_text("Edited again.\n")
        build(root, store, LABEL)
        last, before, first = (record.id for record in own_invocations(store, "reader"))
    found["explain-miss, between the last two builds"] = timed(lambda: between(before, last), repeats)
    found["explain-miss, between the build of everything and the last"] = timed(lambda: between(first, last), repeats)
    found["explain-miss, of the last build"] = timed(lambda: past(last), repeats)
    found["explain-miss, of the build of everything"] = timed(lambda: past(first), repeats)
    return found


def queries(root: Path, repeats: int) -> dict[str, Took]:
    found = {"load of the whole graph": timed(lambda: load_target_graph(root), min(repeats, 3))}
    one = parse("rdeps(//dossier:..., //corpus:S-00001/D-03)")
    found["load of what can reach one document"] = timed(lambda: load_target_graph(root, one), repeats)
    graph = load_target_graph(root)
    assert len(run_query(graph, QUERIES[0]).labels) == 4  # also makes the reverse graph
    return found | {f"query {text}": timed(lambda text=text: run_query(graph, text), repeats) for text in QUERIES}  # type: ignore[misc]


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
        found = explanations(root, store_folder, given.repeats) | queries(root, given.repeats)
    conditions = {
        "targets": dossiers * PARTS,
        "repeats": given.repeats,
        "gsum": VERSION,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {platform.system()} {platform.release()}",
    }
    print(f"{conditions}\n")
    print(f"{'ms':>10}  {'CPU ms':>10}")
    for name, took in found.items():
        print(f"{took.wall:>10.1f}  {took.cpu:>10.1f}  {name}")
    if given.out is not None:
        wall, cpu = ({name: getattr(took, clock) for name, took in found.items()} for clock in Took._fields)
        document = {"conditions": conditions, "milliseconds": wall, "cpu_milliseconds": cpu}
        given.out.write_text(json.dumps(document, indent=2) + "\n")
    sys.exit(0)


if __name__ == "__main__":
    main()
