"""Looking at the disk with an index in hand: which dossiers are as they were, and digests of documents that are.

Everything here may only ever err towards "changed": what is changed is read and analysed again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from gsum.engine.index.fingerprints import NEVER, WIDTH, fingerprint, fingerprints
from gsum.engine.index.records import DIGEST_BYTES, Watched
from gsum.rules.ingest import FileDigests
from gsum.store.digests import Digest

NO_DIGEST = bytes(DIGEST_BYTES)


def clock_ns(folder: Path) -> int:
    """Return the clock of the file system that holds `folder`, in ns since the epoch, by writing a file there."""
    probe = folder / f".clock-{os.getpid()}"
    try:
        probe.write_bytes(b"")
        now = probe.stat().st_mtime_ns
        probe.unlink()
    except OSError:
        return time.time_ns() - 1_000_000_000  # nothing can be written: distrust a second more
    return now


def changed_dossiers(root: str, watched: Mapping[str, Watched], names: Iterable[str]) -> set[str]:
    """Return those of `names` that are not watched, or not as they were looked at."""
    changed = set()
    looked_at: list[tuple[str, Watched]] = []
    for name in names:
        one = watched.get(name)
        if one is None:
            changed.add(name)
        else:
            looked_at.append((name, one))
    found = fingerprints([f"{root}/{path}" for _, one in looked_at for path in one.paths])
    if found == b"".join([one.prints for _, one in looked_at]):
        return changed
    place = 0
    for name, one in looked_at:
        end = place + len(one.prints)
        if found[place:end] != one.prints:
            changed.add(name)
        place = end
    return changed


class IndexedDigests:
    """Digests of documents (a `gsum.rules.ingest.Digests`) that reads a file only when its fingerprint is not known.

    `looked` holds the fingerprints of all files it was asked for, as they were before they were read, and digests.
    """

    def __init__(self, root: str, known: Iterable[Watched]) -> None:
        self._root = root
        self._files = FileDigests(root)
        self._known: dict[str, tuple[bytes, bytes]] = {}
        for one in known:
            for number, path in enumerate(one.paths[1:], 1):
                digest = one.digests[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES]
                self._known[path] = (one.prints[number * WIDTH : (number + 1) * WIDTH], digest)
        self.looked: dict[str, tuple[bytes, bytes]] = {}

    def digest(self, path: str, max_bytes: int) -> Digest:
        """Return the blob digest of a valid document; raise DeclarationError where it is none."""
        now = fingerprint(f"{self._root}/{path}")
        before, digest = self._known.get(path, (NEVER, NO_DIGEST))
        if now != before:
            digest = bytes.fromhex(self._files.digest(path, max_bytes))
        self.looked[path] = (now, digest)
        return Digest(digest.hex())
