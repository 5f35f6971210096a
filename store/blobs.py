"""Blobs kept as files `blobs/ab/cdef…`: written under a temporary name in the same folder, synced, then renamed.

It knows the file system and digests, no database. Names are brought to the disk by `sync`, before a durable commit.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

from gsum.store.digests import Digest
from gsum.store.faults import StoreInputOutput, from_os_error
from gsum.store.fs import FileSystem


class BlobFiles:
    """The file blobs of one store."""

    def __init__(self, folder: Path, files: FileSystem) -> None:
        self._blobs = folder / "blobs"
        self._damaged = folder / "damaged"
        self._files = files
        self._unsynced: set[Path] = set()
        self._unnamed: tuple[Path, ...] = (folder,)
        """The store's folder, until the name of the blobs' folder in it has been synced once."""
        self._numbers = count()

    def path(self, digest: Digest) -> Path:
        """Return where a blob's file is."""
        return self._blobs / digest[:2] / digest[2:]

    def holds(self, digest: Digest, size: int) -> bool:
        """Tell whether a blob's file is there with the right size."""
        path = self.path(digest)
        try:
            return self._files.size(path) == size
        except OSError as error:
            raise from_os_error(error, path) from error

    def read(self, digest: Digest) -> bytes | None:
        """Return the bytes of a blob's file, unverified; None when there is no file."""
        path = self.path(digest)
        try:
            return self._files.read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise from_os_error(error, path) from error

    def stage(self, digest: Digest, data: bytes) -> Path:
        """Write a blob's bytes under a temporary name and bring them to the disk."""
        folder = self.path(digest).parent
        temporary = folder / f".tmp-{os.getpid()}-{next(self._numbers)}-{digest[2:10]}"
        try:
            self._files.make_folder(folder)
            self._files.remove(temporary)
            try:
                self._files.write_synced(temporary, data)
                if self._files.size(temporary) != len(data):
                    raise StoreInputOutput(temporary, "fewer bytes were kept than written")
            except BaseException:
                self.discard(temporary)
                raise
        except OSError as error:
            raise from_os_error(error, temporary) from error
        return temporary

    def publish(self, temporary: Path, digest: Digest) -> None:
        """Give a staged blob its name."""
        path = self.path(digest)
        try:
            self._files.replace(temporary, path)
        except OSError as error:
            self.discard(temporary)
            raise from_os_error(error, path) from error

    def claim(self, digest: Digest) -> None:
        """Have the blob's name synced by the next durable commit, whoever made it."""
        self._unsynced.add(self.path(digest).parent)

    def discard(self, temporary: Path) -> None:
        """Remove a staged file as far as possible; what stays is no blob."""
        try:
            self._files.remove(temporary)
        except OSError:
            return

    def set_aside(self, digest: Digest) -> None:
        """Move a blob's file to `damaged/`, beside earlier ones of that name."""
        try:
            if self._files.size(self.path(digest)) is None:
                return
            self._files.make_folder(self._damaged)
            taken = (self._damaged / f"{digest}.{number}" for number in count())
            target = next(path for path in taken if self._files.size(path) is None)
            self._files.replace(self.path(digest), target)
        except FileNotFoundError:
            return
        except OSError as error:
            raise from_os_error(error, self.path(digest)) from error

    def sync(self) -> None:
        """Bring the names of all blobs claimed since the last call to the disk."""
        if not self._unsynced:
            return
        try:
            for folder in (*sorted(self._unsynced), self._blobs, *self._unnamed):
                self._files.sync_folder(folder)
        except OSError as error:
            raise from_os_error(error, self._blobs) from error
        self._unsynced.clear()
        self._unnamed = ()
