"""The visibility rule: nothing that inference reads may touch a source with `visibility = "audit"`.

Touching is by declared name or by real path, in either direction. Resolves links, opens no document.
"""

from __future__ import annotations

from gsum.rules import paths
from gsum.rules.config import Visibility, Workspace
from gsum.rules.graph import Action, ActionGraph, ActionKind
from gsum.store.errors import ExitCode, GsumError

Audited = tuple[tuple[str, str], ...]
"""Names and real paths of the audit sources."""


class VisibilityError(GsumError):
    """An inference target can reach a source that only audit rules may see."""

    exit_code = ExitCode.DECLARATION

    def __init__(self, chain: tuple[str, ...], source: str) -> None:
        super().__init__(
            f"`{chain[0]}` can reach `{source}`, which only audit rules may see",
            facts={"path": " → ".join((*chain, f"//{source}"))},
            hint='remove the reference; a source with `visibility = "audit"` never informs a summary',
        )


def audited(workspace: Workspace) -> Audited:
    """Return the audit sources with their real paths."""
    return tuple(
        (name, paths.real_path(workspace.root, source.path))
        for name, source in workspace.sources.items()
        if source.visibility is Visibility.AUDIT
    )


def check_package(workspace: Workspace, package: str, audit: Audited) -> None:
    """Refuse a package whose sources touch an audit source. An audit's `sources` are those of what it audits.

    Raises:
        VisibilityError: with the path of the reference.
    """
    name = workspace.packages[package].sources
    source = workspace.sources[name]
    if source.visibility is Visibility.AUDIT:
        raise VisibilityError((f"//{package}",), name)
    check_path((f"//{package}", f"//{name}", source.path), paths.real_path(workspace.root, source.path), audit)


def check_path(chain: tuple[str, ...], real: str, audit: Audited) -> None:
    """Refuse a real path that touches an audit source; `chain` says how it is reached.

    Raises:
        VisibilityError: with the chain and the source.
    """
    for name, folder in audit:
        if paths.overlap(real, folder):
            raise VisibilityError(chain, name)


def check_graph(workspace: Workspace, graph: ActionGraph) -> None:
    """Refuse a graph in which an action below a requested target names an audit source or a path inside one.

    Audits are exempt, and so nothing may be made from one: an action above an audit is refused. Holds whatever a rule
    kind emitted. Paths are compared as declared: links were followed at ingestion.

    Raises:
        VisibilityError: with the chain of labels from the requested target down.
    """
    folders = tuple(
        (name, source.path) for name, source in workspace.sources.items() if source.visibility is Visibility.AUDIT
    )
    if not folders and all(action.kind is not ActionKind.AUDIT for action in graph.actions.values()):
        return
    names = {name for name, _ in folders}
    seen: set[str] = set()
    stack: list[tuple[str, ...]] = [(label,) for label in reversed(graph.requested)]
    while stack:
        chain = stack.pop()
        if chain[-1] in seen:
            continue
        seen.add(chain[-1])
        action = graph.actions[chain[-1]]
        for child in action.children:
            if graph.actions[child].kind is ActionKind.AUDIT:
                raise VisibilityError((*chain, child), graph.actions[child].source)
        if action.kind is not ActionKind.AUDIT:
            _check_action(chain, action, names, folders)
        stack += [(*chain, child) for child in reversed(action.children)]


def _check_action(chain: tuple[str, ...], action: Action, names: set[str], folders: Audited) -> None:
    if action.source in names:
        raise VisibilityError(chain, action.source)
    if action.path is not None:
        check_path((*chain, action.path), action.path, folders)
