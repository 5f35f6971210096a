"""Ways to damage a local store, and a file system that fails on demand. Tests of the store reach for nothing else."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from gsum.store.digests import Digest
from gsum.store.fs import PosixFileSystem
from gsum.store.local import LocalStore, open_store


class FaultyFileSystem(PosixFileSystem):
    """The real file system, with faults that are switched on by assigning to its attributes. Logs its calls."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.room: int | None = None
        """Bytes that can still be written before the disk is full."""
        self.torn: int | None = None
        """Writes keep only so many bytes and claim to have kept all."""
        self.claimed_size: int | None = None
        """What every existing temporary file claims as its size."""
        self.lies = 0
        """So many reads to come return a flipped bit."""
        self.read_only = False
        self.failing: dict[str, int] = {}
        """Errno by name of the call that shall fail."""

    def size(self, path: Path) -> int | None:
        size = super().size(path)
        lie = size is not None and self.claimed_size is not None and ".tmp-" in path.name
        return self.claimed_size if lie else size

    def writable(self, path: Path) -> bool:
        return not self.read_only and super().writable(path)

    def read(self, path: Path) -> bytes:
        self._enter("read", path)
        data = super().read(path)
        if self.lies:
            self.lies -= 1
            return flipped(data)
        return data

    def write_synced(self, path: Path, data: bytes) -> None:
        self._enter("write", path)
        if self.room is not None and len(data) > self.room:
            path.write_bytes(data[: self.room])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        super().write_synced(path, data if self.torn is None else data[: self.torn])

    def replace(self, source: Path, target: Path) -> None:
        self._enter("replace", target)
        super().replace(source, target)

    def sync_folder(self, path: Path) -> None:
        self._enter("sync", path)
        super().sync_folder(path)

    def _enter(self, call: str, path: Path) -> None:
        self.log.append(f"{call} {path.name}")
        if call in self.failing:
            raise OSError(self.failing[call], os.strerror(self.failing[call]), str(path))


def flipped(data: bytes, bit: int | None = None) -> bytes:
    """Return data with one bit turned, the middle one unless told."""
    place = len(data) * 4 if bit is None else bit
    changed = bytearray(data)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


def flip_file(path: Path, bit: int | None = None) -> None:
    path.write_bytes(flipped(path.read_bytes(), bit))


def truncate(path: Path, size: int) -> None:
    os.truncate(path, size)


def blob_file(folder: Path, digest: Digest) -> Path:
    return folder / "blobs" / digest[:2] / digest[2:]


def sql(
    folder: Path, statement: str, parameters: tuple[object, ...] = (), *, checked: bool = True
) -> list[tuple[object, ...]]:
    """Run a statement on a store's database behind its back; `checked`: only what its tables admit."""
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection, connection:
        connection.execute(f"PRAGMA ignore_check_constraints = {'OFF' if checked else 'ON'}")
        return connection.execute(statement, parameters).fetchall()


def flip_inline(folder: Path, table: str, column: str, name: str, *, data: str = "data") -> int:
    """Turn a bit of the data kept in the rows of a name; return in how many."""
    row = (bytes.fromhex(name),)
    found = sql(folder, f"SELECT {data} FROM {table} WHERE {column} = ? AND {data} IS NOT NULL", row)
    for (content,) in found[:1]:
        assert isinstance(content, bytes)
        sql(folder, f"UPDATE {table} SET {data} = ? WHERE {column} = ?", (flipped(content), *row))
    return len(found)


def flip_preimage(folder: Path, key: str) -> None:
    """Turn a bit of every copy of a preimage, wherever it stands."""
    flips = (
        flip_inline(folder, "record", "key", key),
        flip_inline(folder, "entry", "key", key, data="preimage"),
        flip_inline(folder, "execution", "request", key, data="preimage"),
        flip_inline(folder, "entry", "perimeter", key, data="perimeter_preimage"),
    )
    assert any(flips)


def settle(folder: Path) -> None:
    """Bring a store into one file: nothing stays in the log."""
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def faulty_store(folder: Path) -> tuple[LocalStore, FaultyFileSystem]:
    files = FaultyFileSystem()
    return open_store(folder, files=files), files
