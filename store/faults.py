"""What can go wrong with a store, as errors with facts and a hint. Pure.

Every failure of SQLite or of the file system leaves the store as one of these; `from_os_error` translates the latter.
"""

from __future__ import annotations

import errno
from pathlib import Path

from gsum.store.errors import ExitCode, StoreError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_ELSEWHERE = "or use another store with `--store DIR`"


class StoreMissing(StoreError):
    """There is no store at a place where one was expected."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            "there is no store here",
            facts={"store": folder},
            hint=f"type `gsum build` to make one, {_ELSEWHERE}",
        )


class StoreNewer(StoreError):
    """The store was written by a newer gsum."""

    def __init__(self, folder: Path, found: int, known: int) -> None:
        super().__init__(
            "the store was written by a newer gsum",
            facts={"store": folder, "its schema": found, "newest known schema": known},
            hint=f"type `pip install --upgrade gsum`, {_ELSEWHERE}",
        )


class StoreOlder(StoreError):
    """The store was written by an older gsum, and may not be written now, which brings it up to date."""

    def __init__(self, folder: Path, found: int, known: int) -> None:
        super().__init__(
            "the store was written by an older gsum and may not be brought up to date here",
            facts={"store": folder, "its schema": found, "schema": known},
            hint=f"build where it may be written, {_ELSEWHERE}",
        )


class StoreReadOnly(StoreError):
    """The store can be read but not written."""

    def __init__(self, place: Path, reason: str) -> None:
        super().__init__(
            "the store is read-only",
            facts={"place": place, "reason": reason},
            hint=f"make it writable, {_ELSEWHERE}",
        )


class StoreFull(StoreError):
    """There is no room left for what was to be kept; everything kept before is still there."""

    def __init__(self, place: Path, reason: str) -> None:
        super().__init__(
            "the store has no room left",
            facts={"place": place, "reason": reason},
            hint="free some space and type the same command again; what was finished is kept",
        )


class StoreBusy(StoreError):
    """Another process kept the store locked for too long."""

    def __init__(self, place: Path, seconds: float) -> None:
        super().__init__(
            "another process keeps the store locked",
            facts={"place": place, "waited": f"{seconds:g} s"},
            hint="wait for the other build to end and type the same command again",
        )


class StoreDamaged(StoreError):
    """The database of the store is malformed, truncated or no database of gsum."""

    exit_code = ExitCode.DAMAGE

    def __init__(self, place: Path, reason: str) -> None:
        super().__init__(
            "the store is damaged",
            facts={"place": place, "reason": reason},
            hint=f"restore it from a backup, move `{place.parent}` away and build again, {_ELSEWHERE}",
        )


class StoreMisused(StoreError):
    """The store was used in a way it is not made for: after its end, across a fork or from another thread."""


class StoreInputOutput(StoreError):
    """Reading or writing failed for a reason of the system's own."""

    def __init__(self, place: Path, reason: str) -> None:
        super().__init__(
            "the store can't be read or written",
            facts={"place": place, "reason": reason},
            hint=f"check the disk and the permissions of `{place.parent}`, {_ELSEWHERE}",
        )


class BlobMissing(StoreError):
    """A blob or record is not kept."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(
            f"the store does not hold the {what} `{name}`",
            facts={what: name},
            hint="type `gsum build` to make again what needs it",
        )


class BlobCorrupt(StoreError):
    """A blob's or record's bytes don't hash to its name; where the store is writable it has been set aside."""

    exit_code = ExitCode.DAMAGE

    def __init__(self, name: str, what: str, *, set_aside: bool) -> None:
        super().__init__(
            f"the kept bytes of the {what} `{name}` do not hash to its name",
            facts={what: name, "set aside": "yes" if set_aside else "no"},
            hint="type `gsum build` to make again what needs it",
        )
        self.set_aside = set_aside


def from_os_error(error: OSError, place: Path) -> StoreError:
    """Translate an error of the file system."""
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return StoreFull(place, reason)
    if error.errno in _READ_ONLY:
        return StoreReadOnly(place, reason)
    return StoreInputOutput(place, reason)
