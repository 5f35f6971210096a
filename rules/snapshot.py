"""A dossier's state for one principal: the scope of each document. Pure.

An ineligible document has neither version nor text here, so nothing downstream can read what it holds.
"""

from __future__ import annotations

import msgspec

from gsum.store.digests import Digest


class Scope(msgspec.Struct, frozen=True):
    """What a leaf's key says of its document. `version` and `text` (digest) are null unless active and eligible."""

    id: str
    active: bool
    """Not withdrawn."""
    eligible: bool
    """The principal may read it."""
    access_revision: int
    version: str | None
    text: Digest | None

    @property
    def readable(self) -> bool:
        """Whether the document may reach a prompt."""
        return self.active and self.eligible


class Snapshot(msgspec.Struct, frozen=True):
    """A dossier for one principal. `paths` maps readable document ids to files relative to the workspace root."""

    source: str
    dossier: str
    title: str
    principal: str
    scopes: tuple[Scope, ...]
    paths: dict[str, str]
