"""The null build: found by the index alone, recorded as every build is. Imports no click, no msgspec."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from gsum.cli.light import INDEX_FOLDER, STORE_FOLDER, utc_now
from gsum.engine.index.quick import Looked, NothingToDo, candidate, look_quickly, nearest_root
from gsum.engine.null import record_null_build
from gsum.store.errors import StoreError
from gsum.store.fs import PosixFileSystem
from gsum.store.opening import open_database


class NullBuild:
    """A build that had nothing to do, with its record's id and how long it took."""

    __slots__ = ("done", "invocation", "seconds")

    def __init__(self, done: NothingToDo, invocation: str, seconds: float) -> None:
        self.done, self.invocation, self.seconds = done, invocation, seconds


def null_build(
    start: Path, patterns: Sequence[str], *, store: Path | None, principal: str | None, toolchain: str | None
) -> NullBuild | Looked | None:
    """Record a build that has nothing to do; return what was seen on the way where it has, None: look properly.

    `start` is in the workspace; `store` null: the workspace's own. A store that can't be opened or written is the
    proper look's to report.
    """
    began = time.monotonic()
    root = nearest_root(start)
    if root is None:
        return None
    folder = root / STORE_FOLDER if store is None else store
    found = candidate(root, folder / INDEX_FOLDER, principal)
    if found is None:
        return None
    try:
        database = open_database(folder, PosixFileSystem(), create=False, read_only=False, before_durable=_nothing)
        try:
            done = look_quickly(found, patterns, toolchain, database)
            if not isinstance(done, NothingToDo):
                return done
            seconds = round(time.monotonic() - began, 3)
            return NullBuild(done, record_null_build(database, done, patterns, utc_now(), seconds), seconds)
        finally:
            database.close()
    except (StoreError, UnicodeEncodeError):  # an argument may be no text
        return None


def _nothing() -> None:
    """Sync nothing beside the database: the record of a null build is no durable one."""
