"""The seam through which the engine reads document texts: by action, verified against the action's scope."""

from __future__ import annotations

from typing import Protocol

import msgspec

from gsum.rules.graph import Action


class DocumentText(msgspec.Struct, frozen=True):
    """A document's exact bytes and its canonical text."""

    data: bytes
    text: str


class Documents(Protocol):
    """Reads the documents of readable leaves."""

    def read(self, action: Action) -> DocumentText:
        """Return the text of a readable leaf's document, read now.

        Raises `gsum.rules.ingest.SourceChanged` when its bytes are not the ones that the action's scope names.
        """
