"""What explanations read beside preimages: names, rights and texts of a workspace and a store."""

from __future__ import annotations

from collections.abc import Iterable

from gsum.engine.documents import Documents
from gsum.engine.keys import named_record
from gsum.rules.config import Workspace
from gsum.rules.graph import Action, ActionGraph
from gsum.rules.labels import document_label
from gsum.store.api import Store
from gsum.store.digests import Digest, Key, RecordKind, preimage_of
from gsum.store.faults import BlobCorrupt, BlobMissing


def stored_record(store: Store, key: Key) -> bytes | None:
    """Return a kept preimage's bytes, None where it is lost or damaged."""
    try:
        return store.get_record(key).data
    except (BlobMissing, BlobCorrupt):
        return None


def declared_keys(workspace: Workspace) -> dict[tuple[RecordKind, str], Key]:
    """Return the keys of all declared toolchains, prompts and schemas by kind and name."""
    tables: tuple[tuple[RecordKind, Iterable[str]], ...] = (
        (RecordKind.TOOLCHAIN, workspace.toolchains),
        (RecordKind.PROMPT, workspace.prompts),
        (RecordKind.SCHEMA, workspace.schemas),
    )
    return {
        (kind, name): preimage_of(kind, named_record(workspace, kind, name)).key
        for kind, table in tables
        for name in sorted(table)
    }


class WorkspaceReader:
    """A `gsum.engine.explain.causes.Reader` for the principal whose graph it is given.

    `documents` reads texts that no store need hold yet; without it, texts come from the store alone.
    """

    def __init__(
        self, workspace: Workspace, graph: ActionGraph, store: Store, documents: Documents | None = None
    ) -> None:
        self._graph = graph
        self._store = store
        self._documents = documents
        self._keys = declared_keys(workspace)
        self._names = {(kind, key): name for (kind, name), key in reversed(self._keys.items())}
        self._leaves: dict[tuple[str, str], Action] = {}
        self._groups: dict[str, Action] = {}
        for action in graph.actions.values():
            group = action.label.rpartition("/")[0]
            self._groups.setdefault(group, action)
            if action.scope is not None:
                self._leaves[group, action.scope.id] = action

    def name(self, label: str, kind: RecordKind, key: Key) -> str | None:
        """Return the name by which a target's declaration means this record, else any that is declared for it."""
        action = self._graph.actions.get(label)
        if action is not None:
            own = {RecordKind.TOOLCHAIN: action.toolchain, RecordKind.PROMPT: action.prompt}.get(kind, action.schema)
            if own is not None and self._keys[kind, own] == key:
                return own
        return self._names.get((kind, key))

    def declared(self, kind: RecordKind, key: Key) -> str | None:
        """Return a name under which the workspace now declares the record with this key."""
        return self._names.get((kind, key))

    def names(self, kind: RecordKind, key: Key) -> frozenset[str]:
        """Return all names under which the workspace now declares the record with this key."""
        return frozenset(name for (other, name), own in self._keys.items() if other is kind and own == key)

    def document(self, label: str, document: str) -> str:
        """Return the label of a document below `label`."""
        group = label.rpartition("/")[0]
        action = self._groups.get(group)
        if action is None:
            return f"{group} {document}"
        return str(document_label(action.source, action.dossier, document))

    def may_read(self, label: str, document: str) -> bool:
        """Whether the graph's principal may read a document below `label` now."""
        leaf = self._leaves.get((label.rpartition("/")[0], document))
        return leaf is not None and leaf.scope is not None and leaf.scope.readable

    def text(self, label: str, digest: Digest) -> str | None:
        """Return a text by its digest: from the workspace where it is the present one, else from the store."""
        leaf = self._graph.actions.get(label)
        if self._documents is not None and leaf is not None and leaf.scope is not None and leaf.scope.text == digest:
            return self._documents.read(leaf).text
        try:
            return self._store.get_blob(digest).decode()
        except (BlobMissing, BlobCorrupt, UnicodeDecodeError):
            return None
