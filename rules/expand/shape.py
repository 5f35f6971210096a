"""The shape of a tree of summaries: names of its nodes and which node reduces which. Pure; knows numbers only.

Nodes are named in slot order: `leaf-00…`, `reduce-00…`, in deeper trees `reduce2-00…` and on, and `root`.
"""

from __future__ import annotations

import msgspec

from gsum.rules.snapshot import Snapshot
from gsum.store.errors import ExitCode, GsumError

ROOT = "root"
_WIDTH = 2


class EmptyDossierError(GsumError):
    """A dossier has no document to summarise."""

    exit_code = ExitCode.DECLARATION


class Node(msgspec.Struct, frozen=True):
    """An inner node and the names of its children in slot order."""

    name: str
    children: tuple[str, ...]


def leaf_names(count: int) -> tuple[str, ...]:
    """Return the names of `count` leaves, numbered from 0 with at least two digits, all of one width."""
    return _numbered("leaf", count)


def inner_nodes(leaves: tuple[str, ...], fan_in: int) -> tuple[Node, ...]:
    """Return the inner nodes over the leaves, children before parents, the root last.

    While more than `fan_in` (at least 2) nodes are left they are grouped by `fan_in`, the last group taking what
    remains, be it one. A level of n > fan_in nodes has ceil(n / fan_in) < n above it, so this ends.
    """
    nodes: list[Node] = []
    below, level = leaves, 1
    while len(below) > fan_in:
        groups = [below[start : start + fan_in] for start in range(0, len(below), fan_in)]
        names = _numbered("reduce" if level == 1 else f"reduce{level}", len(groups))
        nodes.extend(map(Node, names, groups))
        below, level = names, level + 1
    return (*nodes, Node(ROOT, below))


def label(package: str, snapshot: Snapshot, name: str) -> str:
    """Return the label of a node as text."""
    return f"//{package}:{snapshot.dossier}/{name}"


def require_documents(package: str, snapshot: Snapshot) -> None:
    """Refuse a dossier without documents.

    Raises:
        EmptyDossierError: if the snapshot has no document at all, withdrawn ones counted.
    """
    if not snapshot.scopes:
        raise EmptyDossierError(
            f"dossier `{snapshot.dossier}` has no documents",
            facts={"package": package, "source": snapshot.source},
            hint="declare at least one under `[[documents]]` in its manifest, or put a file into its folder",
        )


def _numbered(prefix: str, count: int) -> tuple[str, ...]:
    width = max(_WIDTH, len(str(count - 1)))
    return tuple(f"{prefix}-{index:0{width}d}" for index in range(count))
