"""Looking at the disk with an index in hand: which dossiers are as they were, and whether gsum itself is.

Everything here may only ever err towards "changed": what is changed is read and analysed again.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from blake3 import blake3

import gsum.engine
import gsum.rules
import gsum.store
from gsum.engine.index.fingerprints import WIDTH, fingerprints
from gsum.engine.index.records import Source
from gsum.engine.index.touched import Touched

_AT_ONCE = 4096
"""So many paths are looked at before what was found is compared: memory stays small."""


class Look:
    """What a look at dossiers of a source found: which of them changed, and the source with today's fingerprints.

    `touched` tells whether a fingerprint is new: it is worth keeping.
    """

    __slots__ = ("changed", "seen", "source", "touched")

    def __init__(self, seen: Sequence[str], changed: set[str], source: Source, *, touched: bool) -> None:
        self.seen, self.changed, self.source, self.touched = seen, changed, source, touched


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


def look_at(root: str, source: Source, names: Sequence[str], folder: Path) -> Look:
    """Look at dossiers of a source: those that are not watched, or not as they were looked at, have changed.

    A document that was only touched is as it was, and is given its new fingerprint; `folder` is the index's.
    """
    changed = set()
    places = []
    for place, name in enumerate(names) if names is source.names else ((source.place(name), name) for name in names):
        if place is None or not source.counts[place]:
            changed.add(name)
        else:
            places.append(place)
    differing = _differing(root, source, places)
    if not differing:
        return Look(names, changed, source, touched=False)
    touched = Touched(root, source, clock_ns(folder))
    changed |= {source.names[place] for place, numbers in differing.items() if not touched.accept(place, numbers)}
    return Look(names, changed, touched.source(), touched=len(changed) < len(names))


def _differing(root: str, source: Source, places: Iterable[int]) -> dict[int, list[int]]:
    """Return the numbers of the paths that have other fingerprints than before, by the dossier's place."""
    found: dict[int, list[int]] = {}
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return {place: [source.starts[place]] for place in places}
    try:
        for first, end in _runs(source.starts, places):
            now = fingerprints(source.paths[first:end], folder)
            before = source.prints[first * WIDTH : end * WIDTH]
            if now == before:
                continue
            for number in range(first, end):
                at = (number - first) * WIDTH
                if now[at : at + WIDTH] != before[at : at + WIDTH]:
                    found.setdefault(bisect_right(source.starts, number) - 1, []).append(number)
    finally:
        os.close(folder)
    return found


def _runs(starts: Sequence[int], places: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield runs of paths of dossiers, none much longer than what is looked at in one go."""
    first = end = 0
    for place in places:
        if starts[place] != end or end - first >= _AT_ONCE:
            if first < end:
                yield first, end
            first = starts[place]
        end = starts[place + 1]
    if first < end:
        yield first, end


def linked(folder: str, watched: Collection[str] = ()) -> bool:
    """Tell whether a folder holds a link, hidden or `watched` ones aside: what stands behind it, and with that what a
    listing finds, changes and leaves the folder's fingerprint as it is.
    """
    try:
        with os.scandir(folder) as entries:
            return any(
                entry.is_symlink() and not entry.name.startswith(".") and entry.name not in watched for entry in entries
            )
    except OSError:
        return True


def code_print() -> bytes:
    """Return a fingerprint of the code that decides keys: an index made by other code is not believed."""
    rules = [place for folder in gsum.rules.__path__ for place, _, _ in os.walk(folder)]
    folders = [*rules, *gsum.engine.__path__, *gsum.store.__path__]
    found = [entry.path for folder in folders for entry in os.scandir(folder) if entry.name.endswith(".py")]
    return blake3(fingerprints(sorted(found))).digest()


def read_index(file: Path) -> bytes | None:
    """Return what an index file holds; None where there is none that can be read. A FIFO in its place holds nothing."""
    try:
        with open(file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as stream:
            return stream.read()
    except OSError:
        return None


def write_index(file: Path, data: bytes) -> None:
    """Put an index in its place, whole; failing to costs a look at the next build, and no error."""
    temporary = file.with_name(f".{file.name}-{os.getpid()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)


def index_file(folder: Path, principal: str | None) -> Path:
    """Return the index's file for a principal that was asked for; None: the workspace's own."""
    if principal is None:
        return folder / "default.index"
    return folder / f"{blake3(principal.encode(errors='surrogatepass')).hexdigest(8)}.index"
