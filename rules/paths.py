"""Paths that declarations may name: relative, POSIX, inside the workspace. Resolving is this module's only I/O."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath


def refusal(path: str) -> str | None:
    """Return why a declared path is refused as written, or None. Looks at the text alone."""
    if not path.isprintable():
        return "holds a control character"
    if path.startswith("/"):
        return "is absolute"
    if ".." in path.split("/"):
        return "leaves its folder by `..`"
    return None


def join(folder: str, path: str) -> str:
    """Return a declared path, taken from a folder, as a normal path relative to the workspace root."""
    return str(PurePosixPath(folder) / path)


def resolve(root: str | Path, path: str) -> Path:
    """Return the real path of a path relative to the root, with every symbolic link followed."""
    return Path(os.path.realpath(Path(root) / path))


def inside(path: Path, folder: Path) -> bool:
    """Whether a real path is a folder or stands below it."""
    return path == folder or folder in path.parents


def overlap(one: Path, other: Path) -> bool:
    """Whether one of two real paths is the other or stands below it."""
    return inside(one, other) or inside(other, one)
