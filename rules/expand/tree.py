"""How `summary_tree` expands: one leaf a document, reductions by fan-in, a root. Pure; renders and parses nothing."""

from __future__ import annotations

from gsum.rules.config import PackageSection, SummaryTreePackage
from gsum.rules.expand import shape
from gsum.rules.graph import Action, ActionKind
from gsum.rules.snapshot import Scope, Snapshot


class TreeExpansion:
    """Expand a dossier to a tree of actions."""

    name = "summary_tree"

    def expand(
        self, name: str, package: PackageSection, snapshot: Snapshot, toolchain: str | None
    ) -> tuple[Action, ...]:
        """Return leaves, reductions and root of a dossier. `toolchain` is the one chosen, else the package's own."""
        if not isinstance(package, SummaryTreePackage):
            raise TypeError(f"`{self.name}` does not expand a {type(package).__name__}")
        shape.require_documents(name, snapshot)
        chosen = toolchain if toolchain is not None else package.toolchain
        names = shape.leaf_names(len(snapshot.scopes))
        leaves = [_leaf(name, package, snapshot, chosen, *pair) for pair in zip(names, snapshot.scopes, strict=True)]
        inner = [_inner(name, package, snapshot, chosen, node) for node in shape.inner_nodes(names, package.fan_in)]
        return (*leaves, *inner)


def _leaf(
    name: str, package: SummaryTreePackage, snapshot: Snapshot, toolchain: str | None, leaf: str, scope: Scope
) -> Action:
    return Action(
        label=shape.label(name, snapshot, leaf),
        kind=ActionKind.MAP,
        rule=TreeExpansion.name,
        package=name,
        dossier=snapshot.dossier,
        source=snapshot.source,
        principal=snapshot.principal,
        children=(),
        scope=scope,
        path=snapshot.paths.get(scope.id),
        prompt=package.map_prompt,
        schema=package.schema,
        toolchain=toolchain,
        input_tokens=package.map_input_tokens,
        fan_in=None,
    )


def _inner(
    name: str, package: SummaryTreePackage, snapshot: Snapshot, toolchain: str | None, node: shape.Node
) -> Action:
    return Action(
        label=shape.label(name, snapshot, node.name),
        kind=ActionKind.REDUCE,
        rule=TreeExpansion.name,
        package=name,
        dossier=snapshot.dossier,
        source=snapshot.source,
        principal=snapshot.principal,
        children=tuple(shape.label(name, snapshot, child) for child in node.children),
        scope=None,
        path=None,
        prompt=package.reduce_prompt,
        schema=package.schema,
        toolchain=toolchain,
        input_tokens=package.reduce_input_tokens,
        fan_in=package.fan_in,
    )
