"""The null build by the index alone: no declaration, manifest or document is opened. None means: look properly.

It imports nothing of analysis, rules or executors, so that saying "nothing to do" costs little more than the stats.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gsum.engine.index.fingerprints import fingerprint, fingerprints
from gsum.engine.index.looking import changed_dossiers, code_print, index_file, read_index
from gsum.engine.index.records import ROOT, Declarations, Index, decode_index, slot_of, standing_parts
from gsum.engine.standing import StandingDossier
from gsum.rules.labels import Extent, parse_pattern
from gsum.store.api import Store

BUILD_FILE = "BUILD.toml"


class NothingToDo(msgspec.Struct, frozen=True):
    """All that was asked for stands. `alone` is the one target that was asked for, if it is one."""

    principal: str
    toolchain: str
    standing: tuple[StandingDossier, ...]
    alone: tuple[str, ...]


class Candidate(msgspec.Struct, frozen=True):
    """An index whose declarations are as they were; what it says of dossiers is still to be looked at."""

    index: Index
    declarations: Declarations


def nearest_root(start: Path) -> Path | None:
    """Return the nearest folder at or above `start` with a BUILD.toml; whether it is a root, its index tells."""
    start = start.absolute()
    return next((folder for folder in (start, *start.parents) if os.path.lexists(folder / BUILD_FILE)), None)


def candidate(root: Path, folder: Path, principal: str | None) -> Candidate | None:
    """Return the index in `folder` if it is of this root, this code, and declarations that have not changed."""
    data = read_index(index_file(folder, principal))
    index = None if data is None else decode_index(data)
    if index is None or index.root != str(root) or index.declarations is None:
        return None
    if principal is not None and index.principal != principal:
        return None
    declarations = index.declarations
    if fingerprints(f"{root}/{path}" for path in declarations.paths) != declarations.prints:
        return None
    return Candidate(index, declarations) if code_print() == declarations.code else None


def nothing_to_do(found: Candidate, patterns: Sequence[str], toolchain: str | None, store: Store) -> NothingToDo | None:
    """Return what stands, if that is all that `patterns` name; None for whatever needs a proper look or an error."""
    index = found.index
    if index.epoch != store.epoch() or not store.has_invocation(index.invocation):
        return None
    asked = [one for text in patterns for one in _selected(found, text)]
    if None in asked or not asked:
        return None
    wanted: dict[str, dict[str, None]] = {}
    standing: dict[tuple[str, str], StandingDossier] = {}
    for package, dossier, part in filter(None, asked):
        slot = slot_of(package, toolchain)
        parts = standing_parts(index, slot, found.declarations.declared.get(slot, b""), dossier, part)
        if parts is None:
            return None
        wanted.setdefault(found.declarations.packages[package][0], {})[dossier] = None
        standing.setdefault((package, dossier), StandingDossier(package, dossier, parts))
    for source, names in wanted.items():
        if source not in index.sources or changed_dossiers(index.root, index.sources[source].dossiers, names):
            return None
    only = asked[0] if len(asked) == 1 else None
    alone = (f"//{only[0]}:{only[1]}/{only[2]}",) if only is not None and only[2] is not None else ()
    chosen = toolchain or found.declarations.toolchain
    return NothingToDo(index.principal, chosen, tuple(standing.values()), alone)


def _selected(found: Candidate, text: str) -> list[tuple[str, str, str | None] | None]:
    """Return the (package, dossier, part) that a pattern names; a None among them where the index can't say."""
    pattern = parse_pattern(text)
    packages = found.declarations.packages
    if pattern.extent is Extent.TREE or pattern.package not in packages:
        return [None]
    part = None if pattern.extent in (Extent.PARTS, Extent.PACKAGE) else pattern.part or ROOT
    if pattern.extent not in (Extent.ROOTS, Extent.PACKAGE):
        return [(pattern.package, pattern.name, part)]
    source, folder = packages[pattern.package]
    watched = found.index.sources.get(source)
    if watched is None or fingerprint(f"{found.index.root}/{folder}") != watched.prints:
        return [None]
    return [(pattern.package, name, part) for name in watched.names]
