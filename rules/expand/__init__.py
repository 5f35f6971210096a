"""How packages expand to actions, by rule: all of a rule that analysis and queries need. Pure; no model in sight."""

from __future__ import annotations

from typing import Protocol

from gsum.rules.config import PackageSection
from gsum.rules.graph import Action
from gsum.rules.snapshot import Snapshot


class Expansion(Protocol):
    """The part of a rule kind that makes actions."""

    def expand(
        self, name: str, package: PackageSection, snapshot: Snapshot, toolchain: str | None
    ) -> tuple[Action, ...]:
        """Return the actions of one dossier, children before parents, the root last."""
