"""One target named on the command line, with all that is needed to show it. Prints nothing."""

from __future__ import annotations

from gsum.cli.context import Config, open_universe
from gsum.engine.documents import DocumentText
from gsum.engine.universe import Universe, WorkspaceDocuments
from gsum.rules.config import Workspace
from gsum.rules.graph import Action
from gsum.rules.labels import parse_target


class ReadOnce:
    """Documents of a workspace, each read and verified once for one command (a `gsum.engine.documents.Documents`)."""

    def __init__(self, workspace: Workspace) -> None:
        self._documents = WorkspaceDocuments(workspace)
        self._texts: dict[str, DocumentText] = {}

    def read(self, action: Action) -> DocumentText:
        """Read a readable leaf's document."""
        if action.label not in self._texts:
            self._texts[action.label] = self._documents.read(action)
        return self._texts[action.label]


def open_target(config: Config, text: str) -> tuple[str, Universe]:
    """Return the label that a text names (a dossier's is its root's) and the universe below it.

    Raises:
        LabelError: if it names nothing, or more than one target.
    """
    label = str(parse_target(text))
    return label, open_universe(config, [label])
