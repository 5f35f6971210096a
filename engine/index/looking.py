"""Looking at the disk with an index in hand: which dossiers are as they were, and whether gsum itself is.

Everything here may only ever err towards "changed": what is changed is read and analysed again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from blake3 import blake3

import gsum.engine
import gsum.rules
from gsum.engine.index.fingerprints import fingerprints
from gsum.engine.index.records import Watched


def clock_ns(folder: Path) -> int:
    """Return the clock of the file system that holds `folder`, in ns since the epoch, by writing a file there."""
    probe = folder / f".clock-{os.getpid()}"
    try:
        probe.write_bytes(b"")
        now = probe.stat().st_mtime_ns
        probe.unlink()
    except OSError:
        return time.time_ns() - 1_000_000_000  # nothing can be written: distrust a second more
    return now


def changed_dossiers(root: str, watched: Mapping[str, Watched], names: Iterable[str]) -> set[str]:
    """Return those of `names` that are not watched, or not as they were looked at."""
    changed = set()
    looked_at: list[tuple[str, Watched]] = []
    for name in names:
        one = watched.get(name)
        if one is None:
            changed.add(name)
        else:
            looked_at.append((name, one))
    found = fingerprints([f"{root}/{path}" for _, one in looked_at for path in one.paths])
    if found == b"".join([one.prints for _, one in looked_at]):
        return changed
    place = 0
    for name, one in looked_at:
        end = place + len(one.prints)
        if found[place:end] != one.prints:
            changed.add(name)
        place = end
    return changed


def code_print() -> bytes:
    """Return a fingerprint of the code that decides keys: an index made by other code is not believed."""
    folders = [*gsum.rules.__path__, *(f"{folder}/kinds" for folder in gsum.rules.__path__), *gsum.engine.__path__]
    found = [entry.path for folder in folders for entry in os.scandir(folder) if entry.name.endswith(".py")]
    return blake3(fingerprints(sorted(found))).digest()


def read_index(file: Path) -> bytes | None:
    """Return what an index file holds; None where there is none that can be read. A FIFO in its place holds nothing."""
    try:
        with open(file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as stream:
            return stream.read()
    except OSError:
        return None


def index_file(folder: Path, principal: str | None) -> Path:
    """Return the index's file for a principal that was asked for; None: the workspace's own."""
    if principal is None:
        return folder / "default.index"
    return folder / f"{blake3(principal.encode(errors='surrogatepass')).hexdigest(8)}.index"
