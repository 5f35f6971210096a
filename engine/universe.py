"""What every command starts from: the workspace as declared now, the graph of some patterns, and its keys.

Reads the workspace and its documents; opens no store, starts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from gsum.engine.documents import DocumentText
from gsum.engine.keys import KeySet, compute_keys
from gsum.rules.analysis import analyse
from gsum.rules.config import AuditPackage, Workspace
from gsum.rules.gold import GoldError
from gsum.rules.gold_files import FileGolds, read_gold_again
from gsum.rules.graph import Action, ActionGraph, ActionKind
from gsum.rules.ingest import Digests, read_text
from gsum.rules.loader import load_workspace
from gsum.rules.places import Places
from gsum.rules.snapshot import Snapshot
from gsum.store.digests import HEX_LENGTH, Digest


class Universe(msgspec.Struct, frozen=True):
    """A workspace, the action graph of the patterns asked for, and the keys of its actions.

    `unusable` says of each audit whose gold can't be used why: what stands as its key is none.
    """

    workspace: Workspace
    graph: ActionGraph
    keys: KeySet
    principal: str
    unusable: Mapping[str, GoldError] = {}

    def require(self, labels: Iterable[str]) -> None:
        """Raise GoldError if one of `labels` is an audit whose gold can't be used."""
        for label in labels if self.unusable else ():
            if label in self.unusable:
                raise self.unusable[label]


def load_universe(
    root: Path, patterns: Sequence[str], *, principal: str | None = None, toolchain: str | None = None
) -> Universe:
    """Load the workspace at `root` and analyse `patterns`, for a principal and toolchain other than declared if given.

    Every document below the patterns is read and hashed.
    """
    return universe_of(load_workspace(root), patterns, principal=principal, toolchain=toolchain)


def universe_of(
    workspace: Workspace,
    patterns: Sequence[str],
    *,
    principal: str | None = None,
    toolchain: str | None = None,
    digests: Digests | None = None,
) -> Universe:
    """Analyse `patterns` of a loaded workspace; documents are read and hashed through `digests` if given."""
    graph = analyse(workspace, patterns, principal=principal, toolchain=toolchain, digests=digests)
    return Universe(workspace, graph, compute_keys(workspace, graph), principal or workspace.section.principal)


def surrounding_universe(
    workspace: Workspace,
    patterns: Sequence[str],
    *,
    principal: str | None = None,
    toolchain: str | None = None,
    digests: Digests | None = None,
) -> Universe:
    """Analyse `patterns` that only say where to look: gold that can't be used is an error of its audits alone."""
    golds = _SparingGolds()
    graph = analyse(workspace, patterns, principal=principal, toolchain=toolchain, digests=digests, golds=golds)
    unusable = {
        action.label: golds.errors[package, action.dossier]
        for action in graph.actions.values()
        if isinstance(package := workspace.packages[action.package], AuditPackage)
        and (package, action.dossier) in golds.errors
    }
    who = principal or workspace.section.principal
    return Universe(workspace, graph, compute_keys(workspace, graph), who, unusable)


class _SparingGolds:
    """Golds read from their files; what is wrong with one is kept, and its digest is one that no gold has."""

    def __init__(self) -> None:
        self._files = FileGolds()
        self.errors: dict[tuple[AuditPackage, str], GoldError] = {}

    def digest(self, workspace: Workspace, package: AuditPackage, taken: Snapshot) -> Digest:
        """Return the digest of a snapshot's gold."""
        try:
            return self._files.digest(workspace, package, taken)
        except GoldError as error:
            self.errors[package, taken.dossier] = error
            return Digest("0" * HEX_LENGTH)


class WorkspaceDocuments:
    """Reads the documents of a workspace from disk (a `gsum.engine.documents.Documents`)."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._places = Places(workspace)

    def read(self, action: Action) -> DocumentText:
        """Read a readable leaf's document; it must hash to what the action's scope says."""
        scope, path = action.scope, action.path
        if scope is None or path is None:
            raise ValueError(f"`{action.label}` has no readable document")
        package = self._workspace.packages[action.package]
        if action.kind is ActionKind.AUDIT and isinstance(package, AuditPackage) and scope.text is not None:
            gold = read_gold_again(self._workspace, package, action.dossier, action.principal, scope.text)
            return DocumentText(gold, gold.decode())
        alone = Snapshot(action.source, action.dossier, "", action.principal, (scope,), {scope.id: path})
        data, text = read_text(self._workspace, alone, scope.id, self._places)
        return DocumentText(data, text)
