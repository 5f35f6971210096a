"""One target named on the command line, with all that is needed to show it. Prints nothing."""

from __future__ import annotations

import msgspec

from gsum.cli.context import Config
from gsum.engine.reading import OneReading
from gsum.engine.universe import Universe, universe_of
from gsum.rules.labels import parse_target
from gsum.rules.loader import load_workspace


class Opened(msgspec.Struct, frozen=True):
    """A target's label, the universe below it, and the documents as they were read for it."""

    label: str
    universe: Universe
    documents: OneReading


def open_target(config: Config, text: str) -> Opened:
    """Open the target that a text names; a dossier's is its root.

    Raises:
        LabelError: if it names nothing, or more than one target.
    """
    label = str(parse_target(text))
    workspace = load_workspace(config.root)
    documents = OneReading(workspace)
    universe = universe_of(
        workspace, [label], principal=config.principal, toolchain=config.toolchain, digests=documents
    )
    return Opened(label, universe, documents)
