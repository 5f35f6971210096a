"""Digests of documents by their fingerprints: a file that is as it was is not read again."""

from __future__ import annotations

from collections.abc import Iterable

from gsum.engine.index.fingerprints import NEVER, WIDTH, fingerprint
from gsum.engine.index.records import DIGEST_BYTES, Watched
from gsum.rules.ingest import Digests
from gsum.store.digests import Digest

NO_DIGEST = bytes(DIGEST_BYTES)


class IndexedDigests:
    """Digests of documents (a `gsum.rules.ingest.Digests`) that reads a file only when its fingerprint is not known.

    `looked` holds the fingerprints of all files it was asked for, as they were before they were read, and digests.
    """

    def __init__(self, root: str, known: Iterable[Watched], files: Digests) -> None:
        """`files` reads what is not `known`."""
        self._root = root
        self._files = files
        self._known: dict[str, tuple[bytes, bytes]] = {}
        for one in known:
            for number, path in enumerate(one.paths[1:], 1):
                digest = one.digests[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES]
                self._known[path] = (one.prints[number * WIDTH : (number + 1) * WIDTH], digest)
        self.looked: dict[str, tuple[bytes, bytes]] = {}

    def digest(self, path: str, max_bytes: int) -> Digest:
        """Return the blob digest of a valid document; raise DeclarationError where it is none."""
        now = fingerprint(f"{self._root}/{path}")
        before, known = self._known.get(path, (NEVER, NO_DIGEST))
        if now == before:
            digest = Digest(known.hex())
        else:
            digest = self._files.digest(path, max_bytes)
            known = bytes.fromhex(digest)
        self.looked[path] = (now, known)
        return digest
