"""Stat fingerprints of files, and which of them may be trusted: the racy-clean rule.

A fingerprint is (mtime_ns, ctime_ns, size, inode) as 32 bytes. A file changed in the same clock tick in which it was
looked at can change again without a trace, so a fingerprint not clearly older than the look is kept as NEVER (git's
index does the same: Documentation/technical/racy-git). Reads the file system, writes nothing.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Iterable

WIDTH = 32
NEVER = bytes(WIDTH)
"""Equal to no fingerprint: a file has an inode."""

MISSING = b"\xff" * WIDTH
TICK_NS = 20_000_000
"""How far a coarse kernel clock (100 ticks a second) may lag, twice over."""

COARSE_NS = 2_000_000_000
"""The coarsest timestamps in use are two seconds wide; they show as whole seconds."""

_SECOND_NS = 1_000_000_000
_ONE = struct.Struct("=4q")


def fingerprints(paths: Iterable[str], folder: int | None = None) -> bytes:
    """Return the fingerprints of paths, one after the other; `MISSING` where there is no such file.

    `folder` is the descriptor of the folder that relative paths start from.
    """
    values: list[int] = []
    extend, look = values.extend, os.stat
    for path in paths:
        try:
            status = look(path, dir_fd=folder)
        except (OSError, ValueError):
            extend((-1, -1, -1, -1))
            continue
        extend((status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino))
    return _packed(values)


def fingerprint(path: str) -> bytes:
    """Return the fingerprint of one path."""
    try:
        return fingerprint_of(os.stat(path))  # noqa: PTH116 - strings, for speed
    except (OSError, ValueError):
        return MISSING


def fingerprint_of(status: os.stat_result) -> bytes:
    """Return the fingerprint of a file whose status is known."""
    return fingerprint_as(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def fingerprint_as(mtime_ns: int, ctime_ns: int, size: int, inode: int) -> bytes:
    """Return the fingerprint of a file of which so much was noted."""
    try:
        return _ONE.pack(mtime_ns, ctime_ns, size, inode)
    except struct.error:  # an inode of 64 bits
        return _packed([mtime_ns, ctime_ns, size, inode])


def size_in(one: bytes) -> int:
    """Return the size that a fingerprint holds."""
    return array("q", one)[2]


def trusted(prints: bytes, looked_ns: int) -> bytes:
    """Return fingerprints with those replaced by `NEVER` that a later change might repeat.

    `looked_ns` is the file system's clock before the first look.
    """
    values = array("q", prints)
    result = None
    for place in range(0, len(values), 4):
        newest = max(values[place], values[place + 1])
        coarse = values[place] % _SECOND_NS == 0 and values[place + 1] % _SECOND_NS == 0
        if newest >= looked_ns - (COARSE_NS if coarse else TICK_NS) and newest >= 0:
            result = result or bytearray(prints)
            result[place * 8 : place * 8 + WIDTH] = NEVER
    return prints if result is None else bytes(result)


def _packed(values: list[int]) -> bytes:
    try:
        return array("q", values).tobytes()
    except OverflowError:  # an inode of 64 bits
        return array("q", [value if value < 1 << 63 else value - (1 << 64) for value in values]).tobytes()
