"""Edits of declarations on disk: one at a time in a folder, and all or nothing. Knows no content."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gsum.rules.toml import DeclarationError


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other edits of files in a folder waiting."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes) -> None:
    """Put new bytes in the place of a file: its name holds the old or the new ones, whole, whatever happens."""
    temporary: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        temporary = None
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> DeclarationError:
    facts = {"file": path, "why": error.strerror or type(error).__name__}
    return DeclarationError(
        f"`{path.name}` can't be written", facts=facts, hint="make its folder writable; nothing was changed"
    )
