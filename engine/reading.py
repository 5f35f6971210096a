"""Documents read once for one command: the bytes whose digest stands in the snapshot are those whose text is used.

Up to a budget; what does not fit is read and verified again when its text is asked for. A build, which wants each
document once, lets go of it then. Reads files of the workspace.
"""

from __future__ import annotations

from gsum.engine.documents import DocumentText
from gsum.engine.universe import WorkspaceDocuments
from gsum.rules.config import Workspace
from gsum.rules.files import read_document
from gsum.rules.graph import Action
from gsum.store.digests import Digest, blob_digest

KEPT_BYTES = 64 * 1024 * 1024
"""How many bytes of documents are kept between hashing and use."""


class OneReading:
    """A `gsum.rules.ingest.Digests` and a `gsum.engine.documents.Documents` over the same reading."""

    def __init__(self, workspace: Workspace, kept_bytes: int = KEPT_BYTES, *, let_go: bool = False) -> None:
        """`let_go`: a document that was asked for is kept no longer."""
        self._root = workspace.root
        self._again = WorkspaceDocuments(workspace)
        self._room = kept_bytes
        self._let_go = let_go
        self._kept: dict[tuple[str, Digest], bytes] = {}

    def digest(self, path: str, max_bytes: int) -> Digest:
        """Read, validate and hash a document."""
        data, _ = read_document(self._root, path, max_bytes)
        digest = blob_digest(data)
        if len(data) <= self._room and (path, digest) not in self._kept:
            self._room -= len(data)
            self._kept[path, digest] = data
        return digest

    def read(self, action: Action) -> DocumentText:
        """Return a readable leaf's document as it was hashed, else as it is read now, which must hash to the same."""
        if action.path is None or action.scope is None or action.scope.text is None:
            return self._again.read(action)
        name = (action.path, action.scope.text)
        data = self._kept.get(name)
        if data is None:
            read = self._again.read(action)
            if not self._let_go:
                self._kept[name] = read.data
            return read
        if self._let_go:
            del self._kept[name]
            self._room += len(data)
        return DocumentText(data, data.decode())
