"""The target graph of a workspace on disk. Reads declarations and manifests; opens no document and no store."""

from __future__ import annotations

from pathlib import Path

from gsum.engine.query.graph import TargetGraph, target_graph
from gsum.rules.analysis import analyse
from gsum.rules.config import AuditPackage, Workspace
from gsum.rules.graph import ActionGraph
from gsum.rules.loader import load_workspace
from gsum.rules.snapshot import Snapshot
from gsum.store.digests import HEX_LENGTH, Digest

EVERYTHING = "//..."


class _NotRead:
    """Digests for a graph of which only labels and edges are used: no text, no key."""

    def digest(self, path: str, max_bytes: int) -> Digest:  # noqa: ARG002 - the protocol's
        """Return a digest that no document has."""
        return Digest("0" * HEX_LENGTH)


class _NoGold:
    """Golds for the same graph."""

    def digest(self, workspace: Workspace, package: AuditPackage, taken: Snapshot) -> Digest:  # noqa: ARG002
        """Return a digest that no gold has."""
        return Digest("0" * HEX_LENGTH)


def load_outline(
    root: Path, *, principal: str | None = None, toolchain: str | None = None
) -> tuple[Workspace, ActionGraph]:
    """Load the workspace at `root` and the graph of all its targets, in which rights stand and no text does.

    Raises:
        DeclarationError, VisibilityError, LabelError: as analysis.
    """
    workspace = load_workspace(root)
    graph = analyse(
        workspace, [EVERYTHING], principal=principal, toolchain=toolchain, digests=_NotRead(), golds=_NoGold()
    )
    return workspace, graph


def load_target_graph(root: Path, *, principal: str | None = None, toolchain: str | None = None) -> TargetGraph:
    """Load the declarations of the workspace at `root` and return the graph that queries walk."""
    return target_graph(*load_outline(root, principal=principal, toolchain=toolchain))
