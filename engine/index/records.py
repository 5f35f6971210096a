"""The index as a value: columns, so that a null build makes no object per dossier. Pure.

Plain classes of the standard library: msgspec takes longer to import than ten thousand files take to look at.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from gsum.engine.index.fingerprints import WIDTH

DIGEST_BYTES = 32
ROOT = "root"


class Watched:
    """A dossier as it was looked at: its manifest (or its folder, where it has none) and its readable documents.

    `paths` are relative to the workspace. `prints` holds their fingerprints and `digests` the documents' blob digests,
    32 bytes each; the first path is no document and its digest is zeros.
    """

    __slots__ = ("digests", "paths", "prints")

    def __init__(self, paths: Sequence[str], prints: bytes, digests: bytes) -> None:
        self.paths, self.prints, self.digests = list(paths), prints, digests

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Watched) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    __hash__ = None  # type: ignore[assignment]


class Source:
    """A source's folder as it was listed: its fingerprint, its dossiers by name, and those that were looked at.

    `counts` gives for each dossier how many paths it has in the columns, 0 where it was not looked at; `joined` holds
    all paths, each ended by a NUL.
    """

    __slots__ = ("_paths", "_starts", "counts", "digests", "folder", "joined", "names", "prints")

    def __init__(
        self, folder: bytes, names: Sequence[str], counts: array[int], joined: bytes, prints: bytes, digests: bytes
    ) -> None:
        self.folder, self.names, self.counts = folder, list(names), counts
        self.joined, self.prints, self.digests = joined, prints, digests
        self._paths: list[str] | None = None
        self._starts: list[int] | None = None

    @property
    def paths(self) -> list[str]:
        """The paths of all dossiers, one after the other."""
        if self._paths is None:
            self._paths = self.joined.decode().split("\0")
            self._paths.pop()
        return self._paths

    @property
    def starts(self) -> list[int]:
        """Where each dossier's paths start, and where the last one's end."""
        if self._starts is None:
            self._starts = [0, *accumulate(self.counts)]
        return self._starts

    def place(self, name: str) -> int | None:
        """Return the place of a dossier, None where there is none of this name."""
        place = bisect_left(self.names, name)
        return place if place < len(self.names) and self.names[place] == name else None

    def watched(self, name: str) -> Watched | None:
        """Return what was looked at of a dossier."""
        place = self.place(name)
        if place is None or not self.counts[place]:
            return None
        start, end = self.starts[place], self.starts[place + 1]
        prints, digests = self.prints[start * WIDTH : end * WIDTH], self.digests[start * WIDTH : end * WIDTH]
        return Watched(self.paths[start:end], prints, digests)

    def with_prints(self, prints: bytes) -> Source:
        """Return this with other fingerprints of the same paths."""
        return Source(self.folder, self.names, self.counts, self.joined, prints, self.digests)

    def told(self, folder: bytes, names: Sequence[str], rows: Mapping[str, Watched | None]) -> Source:
        """Return what is known after a look: these names, these rows (None: not looked at), the rest as it was."""
        counts = array("I", bytes(array("I").itemsize * len(names)))
        joined: list[str] = []
        prints: list[bytes] = []
        digests: list[bytes] = []
        for first, last, row in self._pieces(names, rows):
            if row is not None:
                counts[first] = len(row.paths)
                joined += row.paths
                prints.append(row.prints)
                digests.append(row.digests)
                continue
            start = self.place(names[first])
            if start is None:
                continue
            end = start + last - first
            counts[first:last] = self.counts[start:end]
            start, end = self.starts[start], self.starts[end]
            joined += self.paths[start:end]
            prints.append(self.prints[start * WIDTH : end * WIDTH])
            digests.append(self.digests[start * DIGEST_BYTES : end * DIGEST_BYTES])
        text = "".join([f"{path}\0" for path in joined]).encode()
        return Source(folder, names, counts, text, b"".join(prints), b"".join(digests))

    def _pieces(
        self, names: Sequence[str], rows: Mapping[str, Watched | None]
    ) -> Iterator[tuple[int, int, Watched | None]]:
        """Cut names into rows of their own, and into runs (first, behind the last) that stand alike here."""
        same = names == self.names
        first = 0
        before: int | None = None
        for number, name in enumerate(names):
            if name in rows:
                if first < number:
                    yield first, number, None
                if (row := rows[name]) is not None:
                    yield number, number + 1, row
                first, before = number + 1, None
                continue
            place = number if same else self.place(name)
            if first < number and (place is None or before is None or place != before + 1):
                yield first, number, None
                first = number
            before = place
        if first < len(names):
            yield first, len(names), None


def empty_source() -> Source:
    """Return a source of which nothing is known."""
    return Source(b"", [], array("I"), b"", b"", b"")


class Served:
    """What of one package, under one toolchain, the store serves, none of it INVALID.

    `declared` digests everything that the package's keys depend on besides its dossiers. `marks` has a number for each
    dossier of the package's source: 0 for nothing, else what `mark_of` makes of it.
    """

    __slots__ = ("declared", "marks", "shapes")

    def __init__(self, declared: bytes, shapes: Sequence[tuple[str, ...]], marks: array[int]) -> None:
        self.declared, self.shapes, self.marks = declared, shapes, marks


def mark_of(shape: int, *, every_part: bool) -> int:
    """Return the mark of a dossier whose root is served, and perhaps each part alone; `shape` is that of its parts."""
    return 2 * shape + 1 + every_part


def parts_of(served: Served, mark: int, part: str | None) -> tuple[str, ...] | None:
    """Return the parts of a dossier with a mark, if that covers `part` (None: each of them), else None."""
    if not mark or not (part == ROOT or (part is None and mark % 2 == 0)):
        return None
    return served.shapes[(mark - 1) // 2]


class Declarations:
    """The files of declarations as they were looked at, and what a null build needs of what they say.

    `packages` gives the source of each package whose targets depend on nothing but its dossiers, and that source's
    folder. `declared` gives, by slot, what `Served.declared` must be. `code` is a fingerprint of gsum's own rules.
    """

    __slots__ = ("code", "declared", "packages", "paths", "prints", "toolchain")

    def __init__(
        self,
        paths: Sequence[str],
        prints: bytes,
        code: bytes,
        toolchain: str,
        packages: Mapping[str, tuple[str, str]],
        declared: Mapping[str, bytes],
    ) -> None:
        self.paths, self.prints, self.code, self.toolchain = tuple(paths), prints, code, toolchain
        self.packages, self.declared = packages, declared

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Declarations) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    __hash__ = None  # type: ignore[assignment]


class Index:
    """All that a null build compares. `epoch` and `invocation` name the store in a state that still holds it all.

    `served` is keyed by slot: `package`, or `package toolchain` where a toolchain was asked for.
    """

    __slots__ = ("declarations", "epoch", "invocation", "principal", "root", "served", "sources")

    def __init__(
        self,
        epoch: str,
        invocation: str,
        root: str,
        principal: str,
        declarations: Declarations | None = None,
        sources: Mapping[str, Source] | None = None,
        served: Mapping[str, Served] | None = None,
    ) -> None:
        self.epoch, self.invocation, self.root, self.principal = epoch, invocation, root, principal
        self.declarations, self.sources, self.served = declarations, sources or {}, served or {}

    def with_sources(self, sources: Mapping[str, Source]) -> Index:
        """Return this with other sources."""
        return Index(self.epoch, self.invocation, self.root, self.principal, self.declarations, sources, self.served)


def slot_of(package: str, toolchain: str | None) -> str:
    """Return the key of `Index.served` for a package, under a toolchain where one was asked for."""
    return package if toolchain is None else f"{package} {toolchain}"
