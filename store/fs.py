"""Every file-system call of the store, behind one Protocol: tests inject full disks, torn writes and lying reads.

It knows paths and bytes, no digests. Calls raise `OSError` and nothing else; SQLite reaches its own file by itself.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol


class FileSystem(Protocol):
    """What the store asks of a file system. No call may follow up a failure by reporting success."""

    def size(self, path: Path) -> int | None:
        """Return the size of a file in bytes, None when there is none."""

    def writable(self, path: Path) -> bool:
        """Tell whether an existing file or folder may be written by this process."""

    def read(self, path: Path) -> bytes:
        """Return a whole file."""

    def write_synced(self, path: Path, data: bytes) -> None:
        """Write a new file and bring its bytes to the disk; the file must not exist."""

    def replace(self, source: Path, target: Path) -> None:
        """Rename a file atomically; a file at `target` gives way."""

    def remove(self, path: Path) -> None:
        """Remove a file; none there is no error."""

    def make_folder(self, path: Path) -> None:
        """Make a folder and its parents; one there is no error."""

    def sync_folder(self, path: Path) -> None:
        """Bring the names in a folder to the disk."""


class PosixFileSystem:
    """The real file system."""

    def size(self, path: Path) -> int | None:
        """Return the size of a file in bytes, None when there is none."""
        try:
            return path.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def writable(self, path: Path) -> bool:
        """Tell whether an existing file or folder may be written by this process."""
        return os.access(path, os.W_OK)

    def read(self, path: Path) -> bytes:
        """Return a whole file."""
        return path.read_bytes()

    def write_synced(self, path: Path, data: bytes) -> None:
        """Write a new file and bring its bytes to the disk; the file must not exist."""
        with path.open("xb", buffering=0) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())

    def replace(self, source: Path, target: Path) -> None:
        """Rename a file atomically; a file at `target` gives way."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file; none there is no error."""
        path.unlink(missing_ok=True)

    def make_folder(self, path: Path) -> None:
        """Make a folder and its parents; one there is no error."""
        path.mkdir(parents=True, exist_ok=True)

    def sync_folder(self, path: Path) -> None:
        """Bring the names in a folder to the disk."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
