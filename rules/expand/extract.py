"""How `extract` expands: one leaf a document and a root over all of them. Pure."""

from __future__ import annotations

from gsum.rules.config import ExtractPackage, PackageSection
from gsum.rules.expand import shape
from gsum.rules.graph import Action, ActionKind
from gsum.rules.snapshot import Scope, Snapshot


class ExtractExpansion:
    """Expand a dossier to its extractions and their union."""

    name = "extract"

    def expand(
        self, name: str, package: PackageSection, snapshot: Snapshot, toolchain: str | None
    ) -> tuple[Action, ...]:
        """Return one leaf a document and the root over all of them. There is no toolchain: `toolchain` is unused."""
        if not isinstance(package, ExtractPackage):
            raise TypeError(f"`{self.name}` does not expand a {type(package).__name__}")
        del toolchain
        shape.require_documents(name, snapshot)
        names = shape.leaf_names(len(snapshot.scopes))
        labels = [shape.label(name, snapshot, leaf) for leaf in names]
        leaves = [
            _action(name, package, snapshot, label, (), scope)
            for label, scope in zip(labels, snapshot.scopes, strict=True)
        ]
        return (*leaves, _action(name, package, snapshot, shape.label(name, snapshot, shape.ROOT), tuple(labels), None))


def _action(
    name: str,
    package: ExtractPackage,
    snapshot: Snapshot,
    label: str,
    children: tuple[str, ...],
    scope: Scope | None,
) -> Action:
    return Action(
        label=label,
        kind=ActionKind.MERGE if scope is None else ActionKind.EXTRACT,
        rule=ExtractExpansion.name,
        package=name,
        dossier=snapshot.dossier,
        source=snapshot.source,
        principal=snapshot.principal,
        children=children,
        scope=scope,
        path=None if scope is None else snapshot.paths.get(scope.id),
        prompt=None,
        schema=package.schema,
        toolchain=None,
        input_tokens=None,
        fan_in=None,
    )
