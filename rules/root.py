"""The root of a workspace: the nearest folder whose BUILD.toml has a `[workspace]`. Loads nothing it declares."""

from __future__ import annotations

import re
from pathlib import Path

from gsum.store.errors import ExitCode, GsumError

BUILD_FILE = "BUILD.toml"

_WORKSPACE = re.compile(rb"^[ \t]*(?:\[[ \t]*workspace[ \t]*\]|workspace[ \t]*[.=])", re.MULTILINE)


class NoWorkspace(GsumError):
    """There is no workspace where one was looked for."""

    exit_code = ExitCode.DECLARATION


def find_root(start: Path) -> Path:
    """Return the nearest folder at or above `start` whose BUILD.toml has a `[workspace]`.

    Raises:
        NoWorkspace: if there is none.
    """
    start = start.absolute()
    if not start.is_dir():
        raise NoWorkspace(f"`{start}` is no folder", hint="name a folder with `--workspace DIR`")
    for folder in (start, *start.parents):
        file = folder / BUILD_FILE
        try:
            if file.is_file() and _WORKSPACE.search(file.read_bytes()):
                return folder
        except OSError:
            continue
    raise NoWorkspace(
        f"no `{BUILD_FILE}` with a `[workspace]` here or above",
        facts={"looked from": str(start)},
        hint="change to a workspace, or name it with `--workspace DIR`",
    )
