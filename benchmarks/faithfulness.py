"""Measures how true summaries are, by grammar strength, on both corpora, with the embedded model.

    python benchmarks/faithfulness.py                  # four strengths, the final dossiers; writes benchmarks/results
    python benchmarks/faithfulness.py --strengths literal --dossiers S-030 T-10 --wrong --keep answers

A claim is supported if a line that it cites is one that the gold names for exactly that triple. The model must have
been fetched; gold is read after the last answer and reaches no prompt.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import platformdirs
from faithfulness_page import page, table

from gsum.engine.executors.make import make_executor
from gsum.engine.executors.protocol import ExecRequest, Executor, Failed
from gsum.rules.audit import ratio
from gsum.rules.claims import Claim, Result
from gsum.rules.config import LocalToolchain, Source, Strength, Workspace
from gsum.rules.graph import Action
from gsum.rules.ingest import read_text, snapshot
from gsum.rules.kinds import RULES
from gsum.rules.loader import load_workspace
from gsum.rules.requests import Request
from gsum.rules.rule import Finished, Inputs, ModelTerms
from gsum.rules.snapshot import Snapshot
from gsum.store.canonical import canonical_json
from gsum.store.digests import RecordKind, derive_key
from gsum.store.records import Generation

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks/results"
CACHE = Path(os.environ.get("GSUM_CACHE") or platformdirs.user_cache_path("gsum"))
CORPORA = {"S": ("corpus/dossiers", "corpus/labels"), "T": ("corpus/second/dossiers", "corpus/second/labels")}
NAMES = {"S": "corpus", "T": "corpus/second"}
FINAL = {
    Strength.LITERAL: ("S-010", "S-012", "S-015", "T-15", "T-16"),
    Strength.PATTERN: ("S-010", "T-15"),
    Strength.SCHEMA: ("S-010", "T-15"),
    Strength.NONE: ("S-010", "T-15"),
}
"""None of them was used to tune prompts and grammars; S-030, S-031, T-10 and T-11 were."""

LEAVES_ONLY = frozenset({Strength.NONE})
"""Where answers run to their length limit, and little is left to reduce."""

Fact = tuple[str, ...]
Place = tuple[str, str | None, int, int]


class Answer(msgspec.Struct, frozen=True):
    """A generation, with how many of its tokens the grammar forced and the model chose, and by which versions."""

    generation: Generation
    forced: int
    sampled: int
    versions: dict[str, str]


class Answers:
    """Answers by request key, from a folder if they are there, else from the model.

    The counts are of distinct requests, wherever their answers came from: a run in pieces counts as one in one go.
    """

    def __init__(self, executor: Executor, folder: Path | None, timeout: int) -> None:
        self._executor = executor
        self._folder = folder
        self._timeout = timeout
        self.forced = self.sampled = self.asked = 0
        self.versions: dict[str, str] = {}

    def of(self, requests: Sequence[Request]) -> list[Generation]:
        """Return the generations of requests, in order; each distinct request is asked once."""
        keys = [derive_key(RecordKind.REQUEST, canonical_json(request)) for request in requests]
        found = {key: kept for key in keys if (kept := self._kept(key)) is not None}
        missing = {key: request for key, request in zip(keys, requests, strict=True) if key not in found}
        self._executor.submit([ExecRequest(key, request, self._timeout) for key, request in missing.items()])
        while len(found) < len(set(keys)):
            for outcome in self._executor.wait(None):
                if isinstance(outcome, Failed):
                    raise SystemExit(f"{outcome.message}: {outcome.facts}")
                answer = Answer(outcome.generation, outcome.forced, outcome.sampled, outcome.versions)
                found[outcome.key] = answer
                if self._folder is not None:
                    (self._folder / outcome.key).write_bytes(msgspec.json.encode(answer))
        for answer in found.values():
            self.versions = answer.versions
            self.forced, self.sampled = self.forced + answer.forced, self.sampled + answer.sampled
        self.asked += len(found)
        return [found[key].generation for key in keys]

    def _kept(self, key: str) -> Answer | None:
        if self._folder is None or not (self._folder / key).exists():
            return None
        return msgspec.json.decode((self._folder / key).read_bytes(), type=Answer)


class Tree(msgspec.Struct):
    """One dossier's actions, texts and results by label."""

    taken: Snapshot
    actions: tuple[Action, ...]
    texts: dict[str, str]
    results: dict[str, Result] = {}

    @property
    def leaves(self) -> list[Action]:
        return [action for action in self.actions if action.scope is not None]


def plant(workspace: Workspace, dossier: str) -> Tree:
    source = dossier[0]
    taken = snapshot(workspace, source, dossier, workspace.section.principal)
    package = msgspec.structs.replace(workspace.packages["dossier"], sources=source)
    actions = RULES["summary_tree"].expand("dossier", package, taken, "smollm2")
    return Tree(taken, actions, {document: read_text(workspace, taken, document)[1] for document in taken.paths})


def grow(workspace: Workspace, trees: Sequence[Tree], terms: ModelTerms, answers: Answers, *, leaves: bool) -> None:
    """Build all trees, level by level, so that the executor gets as many requests at a time as there are."""
    rule = RULES["summary_tree"]
    left = [(tree, action) for tree in trees for action in tree.actions if action.scope is not None or not leaves]
    while left:
        ready = [(tree, action) for tree, action in left if all(child in tree.results for child in action.children)]
        left = [pair for pair in left if pair not in ready]
        inputs = [_inputs(workspace, tree, action, terms) for tree, action in ready]
        rendered = [rule.render(action, given) for (_, action), given in zip(ready, inputs, strict=True)]
        generations = iter(answers.of([one for one in rendered if isinstance(one, Request)]))
        for (tree, action), given, one in zip(ready, inputs, rendered, strict=True):
            done = one.result if isinstance(one, Finished) else rule.resolve(action, given, next(generations))
            tree.results[action.label] = done


def _inputs(workspace: Workspace, tree: Tree, action: Action, terms: ModelTerms) -> Inputs:
    return Inputs(
        workspace.schemas["product"],
        "benchmark",
        text=tree.texts[action.scope.id] if action.scope is not None else None,
        children=tuple(tree.results[child] for child in action.children),
        prompt=workspace.prompts[action.prompt or ""],
        terms=terms,
    )


class Gold(msgspec.Struct, frozen=True):
    """The facts of one document's active version, each with the lines that state it, and what is no longer true."""

    facts: dict[Fact, frozenset[Place]]
    superseded: frozenset[Fact]


def gold_of(dossier: str, taken: Snapshot) -> dict[str, Gold]:
    active = {scope.id: scope.version for scope in taken.scopes}
    labels = json.loads((ROOT / CORPORA[dossier[0]][1] / f"{dossier}.json").read_bytes())
    found = {}
    for document in labels["documents"]:
        name = document["document"]
        version = next(one for one in document["versions"] if one["version"] == active[name])
        facts = {
            _fact(fact): frozenset((name, version["version"], at["start"], at["end"]) for at in _intervals(fact))
            for fact in version["facts"]
        }
        found[name] = Gold(facts, frozenset(map(_fact, version.get("superseded", ()))))
    return found


def _intervals(fact: dict[str, object]) -> list[dict[str, int]]:
    return fact.get("intervals", [fact])  # type: ignore[return-value]


def _fact(fact: dict[str, str]) -> Fact:
    return fact["product"], fact["field"], fact["value"]


class Counts(msgspec.Struct):
    """Counts over leaves or roots. `ceiling`: of the expected facts, how many `max_claims` leaves room for."""

    summaries: int = 0
    invalid: int = 0
    claims: int = 0
    supported: int = 0
    duplicates: int = 0
    predicted: int = 0
    correct: int = 0
    superseded: int = 0
    """Distinct claims that the document itself says are no longer true."""
    expected: int = 0
    ceiling: int = 0
    varied: int = 0
    """Summaries of which no two claims share a subject or a field."""
    diagnostics: dict[str, int] = msgspec.field(default_factory=dict)
    """Why summaries are INVALID, without the numbers."""

    def add(self, result: Result, golds: Iterable[Gold], room: int) -> list[str]:
        """Count one summary; return its unsupported claims, to be read."""
        self.summaries += 1
        self.invalid += result.status.value == "INVALID"
        if result.diagnostic is not None:
            why = re.sub(r"\d+", "N", result.diagnostic)
            self.diagnostics[why] = self.diagnostics.get(why, 0) + 1
        said = [[claim.values[field] for claim in result.claims] for field in ("subject", "field")]
        self.varied += bool(result.claims) and all(len(set(values)) == len(values) for values in said)
        facts: dict[Fact, frozenset[Place]] = {}
        old: set[Fact] = set()
        for gold in golds:
            facts |= gold.facts
            old |= gold.superseded
        predicted = {_triple(claim) for claim in result.claims}
        wrong = [claim for claim in result.claims if not _supported(claim, result, facts)]
        self.claims += len(result.claims)
        self.supported += len(result.claims) - len(wrong)
        self.duplicates += len(result.claims) - len(predicted)
        self.predicted += len(predicted)
        self.correct += len(predicted & set(facts))
        self.superseded += len(predicted & old - set(facts))
        self.expected += len(facts)
        self.ceiling += min(room, len(facts))
        quotes = {record.id: record.quote for record in result.evidence}
        return [f"{_triple(one)} in {[quotes[cited][:100] for cited in one.evidence]}" for one in wrong]

    def row(self) -> dict[str, object]:
        """Return the counts with their ratios, null where nothing stands under one."""
        return {
            **msgspec.structs.asdict(self),
            "support": ratio(self.supported, self.claims),
            "precision": ratio(self.correct, self.predicted),
            "recall_of_ceiling": ratio(self.correct, self.ceiling),
        }


def _triple(claim: Claim) -> Fact:
    return claim.values["subject"], claim.values["field"], claim.values["value"]


def _supported(claim: Claim, result: Result, facts: dict[Fact, frozenset[Place]]) -> bool:
    records = {record.id: record for record in result.evidence}
    cited = [records[one] for one in claim.evidence]
    places = facts.get(_triple(claim), frozenset())
    return any((one.doc_id, one.version, one.start, one.end) in places for one in cited)


def measure(trees: Sequence[Tree], room: int, note: Callable[[str], None]) -> dict[str, object]:
    """Count the leaves and the roots of one corpus' trees against their gold."""
    leaves, roots = Counts(), Counts()
    for tree in trees:
        gold = gold_of(tree.taken.dossier, tree.taken)
        for leaf in tree.leaves:
            assert leaf.scope is not None
            for wrong in leaves.add(tree.results[leaf.label], [gold[leaf.scope.id]], room):
                note(f"{leaf.label}: {wrong}")
        top = tree.actions[-1]
        if top.label in tree.results:
            for wrong in roots.add(tree.results[top.label], gold.values(), room):
                note(f"{top.label}: {wrong}")
    dossiers = [tree.taken.dossier for tree in trees]
    documents = sum(len(tree.leaves) for tree in trees)
    found = {"dossiers": dossiers, "documents": documents, "leaves": leaves.row()}
    return {**found, "roots": roots.row()} if roots.summaries else found


def run(workspace: Workspace, wanted: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Yield one record for each strength and corpus."""
    declared = workspace.toolchains["smollm2"]
    if not isinstance(declared, LocalToolchain):
        raise SystemExit("the toolchain `smollm2` is not a local one")
    room = workspace.schemas["product"].max_claims
    executor = make_executor(
        declared,
        workspace.numerics[declared.numerics],
        cache_dir=CACHE,
        workspace_root=ROOT,
        name="smollm2",
        environ=os.environ,
    )
    try:
        for strength in map(Strength, wanted.strengths):
            dossiers = wanted.dossiers or FINAL[strength]
            for corpus in dict.fromkeys(dossier[0] for dossier in dossiers):
                answers = Answers(executor, wanted.keep, declared.timeout_seconds)
                trees = [plant(workspace, dossier) for dossier in dossiers if dossier[0] == corpus]
                terms = ModelTerms("benchmark", strength, declared.decoding.max_new_tokens)
                grow(workspace, trees, terms, answers, leaves=wanted.leaves or strength in LEAVES_ONLY)
                record: dict[str, object] = {"strength": strength.value, "corpus": NAMES[corpus]}
                record |= measure(trees, room, print if wanted.wrong else lambda _: None)
                tokens = {"forced": answers.forced, "sampled": answers.sampled}
                yield record | {"asked": answers.asked, **tokens}
                MACHINE.update(answers.versions)
    finally:
        executor.close()


MACHINE: dict[str, str] = {}


def _machine() -> dict[str, Any]:
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    name = names[0].partition(": ")[2] if names else platform.processor()
    return {"cpu": name, "cpus": os.cpu_count(), "python": platform.python_version(), "versions": dict(MACHINE)}


def _write(records: Sequence[dict[str, object]]) -> None:
    machine = _machine()
    RESULTS.mkdir(exist_ok=True)
    found = {"model": "SmolLM2-135M-Instruct, Q4_1 dequantised to float32", "machine": machine, "measured": records}
    (RESULTS / "faithfulness.json").write_text(json.dumps(found, indent=1) + "\n")
    pools = {strength.value: names for strength, names in FINAL.items()}
    (RESULTS / "faithfulness.md").write_text(page(records, pools, machine))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strengths", nargs="+", default=[one.value for one in FINAL], help="in this order")
    parser.add_argument("--dossiers", nargs="+", help="instead of the final ones; nothing is then written")
    parser.add_argument("--leaves", action="store_true", help="build no reductions")
    parser.add_argument("--wrong", action="store_true", help="print every unsupported claim")
    parser.add_argument("--keep", type=Path, help="a folder for answers, by request key: a run goes on from them")
    return parser.parse_args()


def main() -> None:
    """Measure, print, and write the results of the final dossiers."""
    wanted = _options()
    if wanted.keep is not None:
        wanted.keep.mkdir(parents=True, exist_ok=True)
    if wanted.dossiers is None and set(wanted.strengths) != {one.value for one in FINAL}:
        raise SystemExit("the results hold all four strengths: name `--dossiers` to measure some")
    workspace = load_workspace(ROOT)
    template = workspace.sources["corpus"]
    for name, (path, _) in CORPORA.items():
        workspace.sources[name] = Source(name, path, template.visibility, template.max_bytes)
    records = []
    for record in run(workspace, wanted):
        records.append(record)
        print(msgspec.json.encode(record).decode(), flush=True)
    print(table(records))
    if wanted.dossiers is None:
        _write(records)


if __name__ == "__main__":
    main()
