"""Where the files of one analysis really stand: inside the workspace, and in no audit source, neither by link nor by
hard link. Looks at places and kinds; opens no file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import cached_property

from gsum.rules import paths
from gsum.rules.config import Workspace
from gsum.rules.toml import DeclarationError
from gsum.rules.visibility import VisibilityError, audited, check_path


class Places:
    """Places of one workspace, each folder resolved once. Good for one pass over a tree that stands still."""

    def __init__(self, workspace: Workspace) -> None:
        self._audit = audited(workspace)
        self._resolver = paths.Resolver(workspace.root)
        self._open: dict[str, str] = {}
        """The real paths of folders below which nothing is hidden: only a link there can lead to a place refused."""

    def check(self, path: str, label: str) -> None:
        """Check the place of what stands, or would stand, at a path relative to the root; `label` is what it is for.

        Raises:
            VisibilityError: if it is in an audit source, or a hard link of a file there.
            DeclarationError: if it is outside the workspace.
        """
        try:
            self.look(path, lambda: label)
        except OSError:
            self._admit(self._resolver.real(path), path, lambda: label)

    def look(self, path: str, label: Callable[[], str]) -> os.stat_result:
        """Check what stands at a path as `check` does; return its status.

        Raises:
            OSError: if nothing stands there.
            VisibilityError, DeclarationError: as `check`.
        """
        folder, _, name = path.rpartition("/")
        if folder in self._open and name not in ("", ".", ".."):
            status = os.lstat(f"{self._open[folder]}/{name}")
            if not stat.S_ISLNK(status.st_mode):
                self._admit_file(status, path, label)
                return status
        real, status = self._resolver.resolve(path)
        self._admit(real, path, label)
        self._admit_file(status, path, label)
        place = self._resolver.real(folder)
        if paths.inside(place, self._resolver.root) and not any(paths.overlap(place, one) for _, one in self._audit):
            self._open[folder] = place
        return status

    def _admit(self, real: str, path: str, label: Callable[[], str]) -> None:
        if any(paths.overlap(real, folder) for _, folder in self._audit):
            check_path((label(), path), real, self._audit)
        if not paths.inside(real, self._resolver.root):
            hint = "keep sources inside the workspace"
            raise DeclarationError(f"`{path}` leads outside the workspace", facts={"path": path}, hint=hint)

    def _admit_file(self, status: os.stat_result, path: str, label: Callable[[], str]) -> None:
        if status.st_nlink > 1 and self._audit and stat.S_ISREG(status.st_mode):
            source = self._hidden_files.get((status.st_dev, status.st_ino))
            if source is not None:
                raise VisibilityError((label(), path), source)

    @cached_property
    def _hidden_files(self) -> dict[tuple[int, int], str]:
        """Device and inode of each file in an audit source, with the source: listed when first a hard link is met."""
        found: dict[tuple[int, int], str] = {}
        for source, folder in self._audit:
            for place, _, names in os.walk(folder):
                for name in names:
                    try:
                        status = os.stat(os.path.join(place, name))  # noqa: PTH116, PTH118 - strings, for speed
                    except OSError:
                        continue
                    found[status.st_dev, status.st_ino] = source
        return found
