"""Which digests and keys a principal may be shown now: what `gsum cat` goes by. Reads the store, prints nothing.

Toolchain, prompt and schema records hold no document and are open. All else is shown only where it belongs to what one
of the principal's own labels was built as, and every document below that may be read by the principal now, under the
same id: requests, sources, generations and results hold document text, and preimages name versions and digests of it.
"""

from __future__ import annotations

import msgspec

from gsum.engine.keys import ActionPreimage
from gsum.engine.universe import Universe
from gsum.rules.graph import Action, ActionKind
from gsum.store.api import Store
from gsum.store.digests import Digest, Key, Preimage, RecordKind
from gsum.store.errors import StoreError
from gsum.store.records import ActionEntry

OPEN_KINDS = frozenset({RecordKind.TOOLCHAIN, RecordKind.PROMPT, RecordKind.SCHEMA})

_PREIMAGES = msgspec.json.Decoder(ActionPreimage)


class Found(msgspec.Struct, frozen=True):
    """What stands under a digest or key: `kind` is null for a blob."""

    name: str
    kind: RecordKind | None
    data: bytes


class Perimeter:
    """What a principal may be shown, given the universe of all targets for that principal."""

    def __init__(self, universe: Universe, store: Store) -> None:
        self._universe = universe
        self._store = store
        self._readable: dict[tuple[str, str], frozenset[str]] = {}
        self._open: dict[Key, bool] = {}
        self._names = self._collect()

    def admits(self, name: str) -> bool:
        """Whether a digest or key is of something that the principal may be shown now."""
        return name in self._names

    def _collect(self) -> frozenset[str]:
        built: dict[Key, Action] = {}
        for label, action in self._universe.graph.actions.items():
            built[self._universe.keys.actions[label].key] = action
            for ref in self._store.target_history(label, self._universe.principal):
                built.setdefault(ref.key, action)
        names: set[str] = set()
        for key, entry in self._store.entries(list(built)).items():
            if self._may_read(key, self._documents(built[key])):
                names |= self._held(entry)
        return frozenset(names)

    def _held(self, entry: ActionEntry) -> set[str]:
        """Return the names of all that an entry refers to, and the perimeter of its action."""
        preimage = self._preimage(entry.key)
        held: set[str] = {entry.key, entry.result, *entry.sources}
        if preimage is not None:
            held.add(preimage.perimeter)
        if entry.request is not None:
            held |= {entry.request, *self._store.generations(entry.request)}
        return held

    def _may_read(self, key: Key, readable: frozenset[str]) -> bool:
        """Whether all documents below an action key may be read; what can't be told may not."""
        if key not in self._open:
            self._open[key] = False
            preimage = self._preimage(key)
            if preimage is not None and preimage.principal == self._universe.principal:
                source = preimage.source
                own = source is None or source.version is None or source.id in readable
                self._open[key] = own and all(self._may_read(child, readable) for child in preimage.children)
        return self._open[key]

    def _preimage(self, key: Key) -> ActionPreimage | None:
        try:
            return _PREIMAGES.decode(self._store.get_record(key).data)
        except (StoreError, msgspec.MsgspecError):
            return None

    def _documents(self, action: Action) -> frozenset[str]:
        """Return the ids of the documents of an action's dossier that may be read now."""
        graph = self._universe.graph.actions
        if action.kind is ActionKind.AUDIT:  # its own source is the gold; what it counts is made from others
            return self._of((action.source, action.dossier)) | self._documents(graph[action.children[0]])
        return self._of((action.source, action.dossier))

    def _of(self, group: tuple[str, str]) -> frozenset[str]:
        if group not in self._readable:
            self._readable[group] = frozenset(
                other.scope.id
                for other in self._universe.graph.actions.values()
                if other.scope is not None and other.scope.readable and (other.source, other.dossier) == group
            )
        return self._readable[group]


def record_of(store: Store, name: str) -> Preimage | None:
    """Return the record kept under a name, null where it names a blob."""
    if store.missing_blobs([Digest(name)]):
        return store.get_record(Key(name))
    return None


def found(store: Store, name: str) -> Found:
    """Return what is kept under a full digest or key, verified.

    Raises:
        BlobMissing, BlobCorrupt: from the store.
    """
    record = record_of(store, name)
    if record is not None:
        return Found(name, record.kind, record.data)
    return Found(name, None, store.get_blob(Digest(name)))
