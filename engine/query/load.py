"""The target graph of a workspace on disk. Reads declarations, and the manifests that are needed; opens no document
and no store.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gsum.engine.query.demand import NONE, Bound, Dossier, Span, needed_dossiers
from gsum.engine.query.facts import parse_passage
from gsum.engine.query.graph import TargetGraph, target_graph
from gsum.engine.query.parser import EVERYTHING
from gsum.engine.query.syntax import Expression
from gsum.rules.analysis import analyse
from gsum.rules.config import AuditPackage, Workspace
from gsum.rules.graph import ActionGraph
from gsum.rules.ingest import has_dossier, list_dossiers
from gsum.rules.labels import RESERVED, Extent, LabelError, Pattern, parse_pattern
from gsum.rules.loader import load_workspace
from gsum.rules.snapshot import Snapshot
from gsum.store.digests import HEX_LENGTH, Digest

_WIDE = (Extent.ROOTS, Extent.PACKAGE, Extent.TREE)


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


def load_outline_around(
    root: Path, label: str | None, *, principal: str | None = None, toolchain: str | None = None
) -> tuple[Workspace, ActionGraph]:
    """Load the graph of all targets over the dossier of a label; of everything where there is none."""
    workspace = load_workspace(root)
    span = None if label is None else named(workspace, label)
    patterns = patterns_of(workspace, None if span is None else span.dossiers)
    return workspace, _outline(workspace, patterns, principal, toolchain)


def load_target_graph(
    root: Path, expression: Expression | None = None, *, principal: str | None = None, toolchain: str | None = None
) -> TargetGraph:
    """Load the declarations of the workspace at `root` and return the graph that a query (null: any) walks."""
    workspace = load_workspace(root)
    needed = None if expression is None else needed_dossiers(expression, lambda word: named(workspace, word))
    with _uncollected():
        graph = _outline(workspace, patterns_of(workspace, needed), principal, toolchain)
        return target_graph(workspace, graph, Unread(workspace, needed))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Look for no garbage in a block that makes a million objects and drops hardly any."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def patterns_of(workspace: Workspace, dossiers: Bound) -> list[str]:
    """Return the patterns of all targets over some dossiers; of all targets for null."""
    if dossiers is None:
        return [EVERYTHING]
    return [
        f"//{name}:{dossier}/..."
        for source, dossier in sorted(dossiers)
        for name, package in workspace.packages.items()
        if package.sources == source
    ]


def named(workspace: Workspace, word: str) -> Span | None:
    """Return what a word of a query can name; null where only the whole graph can say what is wrong with it."""
    try:
        pattern = parse_pattern(parse_passage(word).label)
    except LabelError:
        return Span(NONE, shared=False)
    if pattern.package in RESERVED:
        return Span(NONE, shared=True)
    sources = _sources(workspace, pattern)
    if not sources:
        return None
    if pattern.extent in _WIDE:
        return Span(None, shared=False)
    found: set[Dossier] = {(source, pattern.name) for source in sources}
    known = all(has_dossier(workspace, *dossier) for dossier in found)
    return Span(frozenset(found), shared=False) if known else None


class Unread:
    """Whether a pattern covers targets of dossiers that were not needed and so not read."""

    def __init__(self, workspace: Workspace, read: Bound) -> None:
        self._workspace, self._read = workspace, read

    def __call__(self, pattern: Pattern) -> bool:
        """Look for such a dossier."""
        if self._read is None or pattern.extent not in _WIDE:
            return False
        sources = _sources(self._workspace, pattern)
        return any(
            (source, name) not in self._read for source in sources for name in list_dossiers(self._workspace, source)
        )


def _sources(workspace: Workspace, pattern: Pattern) -> set[str]:
    """Return the sources of dossiers whose targets or documents a pattern is about; an audit's gold goes with them."""
    return {
        package.sources
        for name, package in workspace.packages.items()
        if pattern.covers_package(name)
        or (pattern.extent is not Extent.TREE and _documents(package) == pattern.package)
    }


def _documents(package: object) -> str:
    """Return the source that the documents of a package's leaves are of."""
    return str(package.labels if isinstance(package, AuditPackage) else getattr(package, "sources", ""))


def _outline(
    workspace: Workspace, patterns: Sequence[str], principal: str | None, toolchain: str | None
) -> ActionGraph:
    return analyse(workspace, patterns, principal=principal, toolchain=toolchain, digests=_NotRead(), golds=_NoGold())
