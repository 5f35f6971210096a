"""What tests of explanations share: a workspace with its builds, and an explanation in short."""

from __future__ import annotations

from pathlib import Path

from support.engine import Built, run_build
from support.fake_executor import FakeExecutor
from support.memory_store import MemoryStore
from support.workspaces import make_workspace

from gsum.engine.explain import Explanation, Node, explain, explain_between, explain_invocation
from gsum.engine.explain.reading import WorkspaceReader
from gsum.engine.query.load import load_outline_around
from gsum.engine.universe import WorkspaceDocuments, load_universe

ROOT = "//dossier:S-1/root"
PRINCIPAL = "reader-demo"


class Case:
    """A workspace of some dossiers, fan-in 4, its store, and why things run or ran there."""

    def __init__(self, root: Path, dossiers: dict[str, int]) -> None:
        self.root = make_workspace(root, dossiers)
        self.store = MemoryStore()

    def build(self, *patterns: str, executor: FakeExecutor | None = None, **options) -> Built:
        return run_build(self.root, self.store, *patterns, executor=executor or FakeExecutor(), **options)

    def id_of_build(self, *patterns: str) -> str:
        return self.build(*patterns).report.invocation

    def now(self, label: str = ROOT, **options) -> Explanation:
        universe = load_universe(self.root, [label], **options)
        return explain(universe, self.store, WorkspaceDocuments(universe.workspace), label)

    def then(self, label: str | None = None, invocation: str | None = None, principal: str = PRINCIPAL) -> Explanation:
        reader = self._reader(label, principal)
        return explain_invocation(self.store, reader, principal, invocation, label)

    def between(self, first: str, second: str, label: str = ROOT) -> Explanation:
        return explain_between(self.store, self._reader(label, PRINCIPAL), PRINCIPAL, first, second, label)

    def _reader(self, label: str | None, principal: str) -> WorkspaceReader:
        workspace, graph = load_outline_around(self.root, label, principal=principal)
        return WorkspaceReader(workspace, graph, self.store)


def causes(explanation: Explanation) -> dict[str, list[str]]:
    """Texts of causes with the parts that run because of them."""
    return {cause.text: [target.rpartition("/")[2] for target in cause.targets] for cause in explanation.causes}


def tree(node: Node) -> dict:
    """A tree as nested maps of parts; what does not run is in brackets."""
    part = node.label.rpartition("/")[2]
    return {part if node.runs else f"[{part}]": [tree(child) for child in node.children]}
