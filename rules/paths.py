"""Paths that declarations may name: relative, POSIX, inside the workspace. Resolving links is the only I/O here."""

from __future__ import annotations

import os
import re
import stat
from functools import lru_cache
from pathlib import Path, PurePosixPath

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def refusal(path: str) -> str | None:
    """Return why a declared path is refused as written, or None. Looks at the text alone."""
    if _CONTROL.search(path):
        return "holds a control character"
    if path.startswith("/"):
        return "is absolute"
    if ".." in path.split("/"):
        return "leaves its folder by `..`"
    return None


def join(folder: str, path: str) -> str:
    """Return a declared path, taken from a folder, as a normal path relative to the workspace root."""
    if "/" in path or path in ("", "."):
        return str(PurePosixPath(folder) / path)
    base = _normal(folder)
    return path if base == "." else f"{base}/{path}"


@lru_cache(maxsize=256)
def _normal(folder: str) -> str:
    return str(PurePosixPath(folder))


def resolve(root: str | Path, path: str) -> Path:
    """Return the real path of a path relative to the root, with every symbolic link followed."""
    return Path(real_path(root, path))


def real_path(root: str | Path, path: str) -> str:
    """Return what `resolve` returns, as text, for the comparisons below."""
    return os.path.realpath(Path(root) / path)


def inside(path: str, folder: str) -> bool:
    """Whether a normal path is a folder or stands below it."""
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")


def overlap(one: str, other: str) -> bool:
    """Whether one of two normal paths is the other or stands below it."""
    return inside(one, other) or inside(other, one)


class Resolver:
    """Resolves many paths below one root, each folder once. Good for one pass over a tree that stands still."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._folders: dict[str, str] = {"": real_path(root, "")}

    @property
    def root(self) -> str:
        """The real path of the root."""
        return self._folders[""]

    def resolve(self, path: str) -> tuple[str, os.stat_result]:
        """Return the real path of a file relative to the root, and the status of what stands there.

        Raises:
            OSError: if nothing stands there.
        """
        real = self._below_folder(path)
        status = os.lstat(real)
        if not stat.S_ISLNK(status.st_mode):
            return real, status
        real = os.path.realpath(real)
        return real, os.stat(real)  # noqa: PTH116 - strings, for speed

    def real(self, path: str) -> str:
        """Return the real path of what stands at a path relative to the root, or would stand there."""
        try:
            return self.resolve(path)[0]
        except FileNotFoundError:
            real = self._below_folder(path)
            return os.path.realpath(real) if os.path.islink(real) else real  # noqa: PTH114 - as above
        except OSError:
            return real_path(self._root, path)

    def _below_folder(self, path: str) -> str:
        """Return a path with its folder resolved."""
        folder, _, name = path.rpartition("/")
        if name in ("", ".", "..") or path.startswith("/"):
            return real_path(self._root, path)
        if folder not in self._folders:
            self._folders[folder] = self.real(folder)
        return os.path.join(self._folders[folder], name)  # noqa: PTH118 - as above
