"""The null build by the index alone: no declaration or manifest is opened, no document but what was touched.

It imports nothing of analysis, rules' values or executors, so that saying "nothing to do" costs little more than the
stats.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gsum.engine.index.encoding import decode_index, encode_index
from gsum.engine.index.fingerprints import fingerprint, fingerprints
from gsum.engine.index.looking import Look, code_print, index_file, look_at, read_index, write_index
from gsum.engine.index.records import ROOT, Declarations, Index, Served, parts_of, slot_of
from gsum.store.database import Database
from gsum.store.ledger import epoch_of, knows_invocation

BUILD_FILE = "BUILD.toml"
_ALL, _PARTS = "all", "..."

Run = tuple[str, Served, Sequence[str], Sequence[int]]
"""A package, what is served of it, and the names and marks of dossiers that stand."""


class Candidate:
    """An index whose declarations are as they were; what it says of dossiers is still to be looked at."""

    __slots__ = ("declarations", "file", "index")

    def __init__(self, file: Path, index: Index, declarations: Declarations) -> None:
        self.file, self.index, self.declarations = file, index, declarations


class Selected:
    """Dossiers of a package that a pattern names (`name` null: all of its source), and which part (null: each)."""

    __slots__ = ("name", "package", "part")

    def __init__(self, package: str, name: str | None, part: str | None) -> None:
        self.package, self.name, self.part = package, name, part


class Looked:
    """What a quick look has seen: a build that has something to do need not look again. `looks` is by source."""

    __slots__ = ("file", "index", "looks")

    def __init__(self, file: Path, index: Index, looks: Mapping[str, Look]) -> None:
        self.file, self.index, self.looks = file, index, looks


class NothingToDo:
    """All that was asked for stands. `alone` is the one target that was asked for, if it is one; `targets` counts."""

    __slots__ = ("_runs", "alone", "principal", "targets", "toolchain")

    def __init__(
        self,
        principal: str,
        toolchain: str,
        alone: tuple[str, ...],
        runs: Sequence[Run],
    ) -> None:
        self.principal, self.toolchain, self.alone, self._runs = principal, toolchain, alone, runs
        self.targets = 0
        for _, served, _, marks in runs:
            for mark in set(marks):
                self.targets += marks.count(mark) * len(served.shapes[(mark - 1) // 2])

    def dossiers(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Yield the package, name and parts of each dossier that stands."""
        for package, served, names, marks in self._runs:
            for name, mark in zip(names, marks, strict=True):
                yield package, name, served.shapes[(mark - 1) // 2]


def nearest_root(start: Path) -> Path | None:
    """Return the nearest folder at or above `start` with a BUILD.toml; whether it is a root, its index tells."""
    start = start.absolute()
    return next((folder for folder in (start, *start.parents) if os.path.lexists(folder / BUILD_FILE)), None)


def candidate(root: Path, folder: Path, principal: str | None) -> Candidate | None:
    """Return the index in `folder` if it is of this root, this code, and declarations that have not changed."""
    file = index_file(folder, principal)
    data = read_index(file)
    index = None if data is None else decode_index(data)
    if index is None or index.root != str(root) or index.declarations is None:
        return None
    if principal is not None and index.principal != principal:
        return None
    declarations = index.declarations
    if fingerprints(f"{root}/{path}" for path in declarations.paths) != declarations.prints:
        return None
    return Candidate(file, index, declarations) if code_print() == declarations.code else None


def look_quickly(
    found: Candidate, patterns: Sequence[str], toolchain: str | None, database: Database
) -> NothingToDo | Looked | None:
    """Return what stands, if that is all that `patterns` name; what was seen where something is to do; None for
    whatever needs a proper look or an error.
    """
    index = found.index
    if index.epoch != epoch_of(database) or not knows_invocation(database, index.invocation):
        return None
    asked = [_selected(found, text) for text in patterns]
    runs = [_standing(found, one, toolchain) for one in asked if one is not None]
    if not asked or None in asked or None in runs:
        return None
    wanted: dict[str, dict[str, None] | None] = {}
    for one in filter(None, asked):
        source = found.declarations.packages[one.package][0]
        if one.name is None:
            wanted[source] = None
        elif (names := wanted.setdefault(source, {})) is not None:
            names[one.name] = None
    looks = {
        source: look_at(index.root, index.sources[source], _named(index, source, names), found.file.parent)
        for source, names in wanted.items()
    }
    now = index.with_sources({**index.sources, **{source: look.source for source, look in looks.items()}})
    if any(look.changed for look in looks.values()):
        return Looked(found.file, now, looks)
    if any(look.touched for look in looks.values()):
        write_index(found.file, encode_index(now))
    only = asked[0] if len(asked) == 1 else None
    alone = (f"//{only.package}:{only.name}/{only.part}",) if only is not None and only.name and only.part else ()
    return NothingToDo(index.principal, toolchain or found.declarations.toolchain, alone, _distinct(filter(None, runs)))


def _selected(found: Candidate, text: str) -> Selected | None:
    """Return what a pattern names; None where the index can't say, which is so for whatever is no pattern."""
    if not text.startswith("//"):
        return None
    package, _, rest = text[2:].partition(":")
    if package not in found.declarations.packages:
        return None
    if rest not in (_ALL, _PARTS):
        name, slash, part = rest.partition("/")
        return Selected(package, name, ROOT if not slash else None if part == _PARTS else part)
    source, folder = found.declarations.packages[package]
    listed = found.index.sources.get(source)
    if listed is None or fingerprint(f"{found.index.root}/{folder}") != listed.folder:
        return None
    return Selected(package, None, ROOT if rest == _ALL else None)


def _standing(found: Candidate, one: Selected, toolchain: str | None) -> Run | None:
    """Return the dossiers that are selected, if the store serves all that is asked of them."""
    slot = slot_of(one.package, toolchain)
    served = found.index.served.get(slot)
    source = found.index.sources.get(found.declarations.packages[one.package][0])
    if served is None or source is None or served.declared != found.declarations.declared.get(slot):
        return None
    if one.name is None:
        names, marks = source.names, served.marks
    else:
        place = source.place(one.name)
        if place is None:
            return None
        names, marks = [one.name], served.marks[place : place + 1]
    if not names or any(parts_of(served, mark, one.part) is None for mark in set(marks)):
        return None
    return one.package, served, names, marks


def _named(index: Index, source: str, names: Mapping[str, None] | None) -> Sequence[str]:
    return index.sources[source].names if names is None else list(names)


def _distinct(runs: Iterator[Run]) -> list[Run]:
    """Return runs that name each dossier once."""
    whole: dict[str, Run] = {}
    some: dict[str, tuple[Served, dict[str, int]]] = {}
    for package, served, names, marks in runs:
        if len(names) == len(served.marks):
            whole[package] = (package, served, names, marks)
        else:
            some.setdefault(package, (served, {}))[1].update(zip(names, marks, strict=True))
    rest = [(package, served, list(of), list(of.values())) for package, (served, of) in some.items()]
    return [*whole.values(), *(run for run in rest if run[0] not in whole)]
