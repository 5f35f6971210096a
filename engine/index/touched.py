"""Documents that have other fingerprints and hold what they held: touched, or written again. Reads, writes nothing.

Such a document is as analysis found it if nothing about its place is new either: a regular file of one name, reached
by no link. Whatever is not so, analysis looks at: this may only ever err towards "changed".
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from blake3 import blake3

from gsum.engine.index.fingerprints import NEVER, WIDTH, fingerprint_of, size_in, trusted
from gsum.engine.index.records import DIGEST_BYTES, Source

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_CHUNK = 1 << 20


class Touched:
    """What was touched of one source. `looked_ns` is the file system's clock before the first file is opened."""

    def __init__(self, root: str, source: Source, looked_ns: int) -> None:
        self._root, self._source, self._looked_ns = os.path.realpath(root), source, looked_ns
        self._prints = bytearray(source.prints)
        self._plain: dict[str, bool] = {}

    def accept(self, place: int, numbers: Sequence[int]) -> bool:
        """Tell whether the paths `numbers` of a dossier are documents that hold what they held; note that."""
        if numbers[0] == self._source.starts[place]:  # the manifest, or the folder: what documents there are
            return False
        found = [self._same(number) for number in numbers]
        if None in found:
            return False
        for number, one in zip(numbers, found, strict=True):
            self._prints[number * WIDTH : (number + 1) * WIDTH] = trusted(one or NEVER, self._looked_ns)
        return True

    def source(self) -> Source:
        """Return the source with the fingerprints of what was accepted."""
        return self._source.with_prints(bytes(self._prints))

    def _same(self, number: int) -> bytes | None:
        """Return a document's fingerprint from before it was read, None if it is not known to be what it was."""
        path = self._source.paths[number]
        folder = path.rpartition("/")[0]
        if folder not in self._plain:
            self._plain[folder] = os.path.realpath(f"{self._root}/{folder}") == f"{self._root}/{folder}"
        if not self._plain[folder]:
            return None
        before = self._source.prints[number * WIDTH : (number + 1) * WIDTH]
        digest = self._source.digests[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES]
        try:
            descriptor = os.open(f"{self._root}/{path}", _FLAGS)
        except (OSError, ValueError):
            return None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
                return None
            if before != NEVER and status.st_size != size_in(before):
                return None
            return fingerprint_of(status) if _digest(descriptor, status.st_size) == digest else None
        except OSError:
            return None
        finally:
            os.close(descriptor)


def _digest(descriptor: int, size: int) -> bytes | None:
    """Return the digest of an open file, None if it does not hold `size` bytes."""
    data = os.read(descriptor, min(size + 1, _CHUNK))
    if len(data) == size:
        return blake3(data).digest()
    hasher, length = blake3(data), len(data)
    while length <= size and (data := os.read(descriptor, _CHUNK)):
        hasher.update(data)
        length += len(data)
    return hasher.digest() if length == size else None
