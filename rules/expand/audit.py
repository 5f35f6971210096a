"""How `audit` expands: one action a dossier, over the summary's root and its gold. Pure."""

from __future__ import annotations

from gsum.rules.config import AuditPackage, PackageSection
from gsum.rules.expand import shape
from gsum.rules.graph import Action, ActionKind
from gsum.rules.snapshot import Snapshot


class AuditExpansion:
    """Expand a dossier to its audit."""

    name = "audit"

    def expand(
        self, name: str, package: PackageSection, snapshot: Snapshot, toolchain: str | None
    ) -> tuple[Action, ...]:
        """Return the one action of a dossier. `snapshot` holds the gold as its one document."""
        if not isinstance(package, AuditPackage):
            raise TypeError(f"`{self.name}` does not expand a {type(package).__name__}")
        (scope,) = snapshot.scopes
        return (
            Action(
                label=shape.label(name, snapshot, shape.ROOT),
                kind=ActionKind.AUDIT,
                rule=self.name,
                package=name,
                dossier=snapshot.dossier,
                source=snapshot.source,
                principal=snapshot.principal,
                children=(shape.label(package.targets, snapshot, shape.ROOT),),
                scope=scope,
                path=snapshot.paths[scope.id],
                prompt=None,
                schema=package.schema,
                toolchain=toolchain,
                input_tokens=None,
                fan_in=None,
            ),
        )
