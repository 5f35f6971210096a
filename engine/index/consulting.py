"""Asking the index before a build what need not be looked into, and telling it afterwards what is served.

A dossier stands when its files are as they were, the package's declarations too, and the store has lost nothing since.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from gsum.engine.index.digests import NO_DIGEST, IndexedDigests
from gsum.engine.index.fingerprints import TICK_NS, fingerprint, fingerprints, trusted
from gsum.engine.index.looking import changed_dossiers, clock_ns, code_print, index_file, read_index
from gsum.engine.index.records import (
    Declarations,
    Index,
    Watched,
    WatchedSource,
    decode_index,
    encode_index,
    slot_of,
    standing_parts,
)
from gsum.engine.index.telling import kept_slots, told_slots
from gsum.engine.keys import compute_keys, toolchain_record
from gsum.engine.standing import StandingDossier
from gsum.engine.universe import Universe
from gsum.rules.analysis import Selection, analyse, check_toolchain, resolve_patterns
from gsum.rules.config import AuditPackage, SummaryTreePackage, Workspace
from gsum.rules.graph import ActionGraph
from gsum.rules.ingest import list_dossiers
from gsum.rules.kinds import RULES
from gsum.rules.manifest import MANIFEST
from gsum.store.api import Store
from gsum.store.canonical import canonical_json
from gsum.store.digests import KEY_SCHEMA


class Consultation:
    """One build's dealings with the index. `standing` need not be analysed; `patterns` must be, with `digests`.

    `since_ns` is this machine's clock before the workspace was loaded. `principal` null: the workspace's own.
    """

    def __init__(
        self,
        workspace: Workspace,
        patterns: Sequence[str],
        *,
        principal: str | None,
        toolchain: str | None,
        folder: Path,
        store: Store,
        since_ns: int,
    ) -> None:
        self._workspace, self._toolchain, self._store = workspace, toolchain, store
        self._principal = principal or workspace.section.principal
        self._file = index_file(folder, principal)
        folder.mkdir(parents=True, exist_ok=True)
        self._looked_ns = clock_ns(folder)
        self._loading_ns = self._looked_ns - max(0, time.time_ns() - since_ns) - TICK_NS
        self._epoch = store.epoch()
        self._index = self._read()
        self._listed: dict[str, WatchedSource] = {}
        self._heads: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._changed: dict[str, set[str]] = {}
        self.standing: list[StandingDossier] = []
        self.patterns: list[str] = []
        self._selections = resolve_patterns(workspace, patterns, self._names)
        check_toolchain(workspace, {one.package for one in self._selections}, toolchain)
        self._slots = {
            package: slot_of(package, toolchain)
            for package in dict.fromkeys(one.package for one in self._selections)
            if not isinstance(workspace.packages[package], AuditPackage)
        }
        """The packages asked for that are indexed: labels, which audits depend on, are not watched."""
        self._declared = {slot: self._digest_declarations(package) for package, slot in self._slots.items()}
        self._sort()
        known = [one for source in self._index.sources.values() for one in source.dossiers.values()]
        self.digests = IndexedDigests(workspace.root, known if self.patterns else ())

    @property
    def alone(self) -> tuple[str, ...]:
        """The one target that was asked for, if it is one."""
        if len(self._selections) != 1 or self._selections[0].part is None:
            return ()
        one = self._selections[0]
        return (f"//{one.package}:{one.dossier}/{one.part}",)

    def _read(self) -> Index:
        expected = (self._epoch, self._workspace.root, self._principal)
        data = read_index(self._file)
        index = None if data is None else decode_index(data)
        known = index is not None and (index.epoch, index.root, index.principal) == expected
        if index is not None and known and self._store.has_invocation(index.invocation):
            return index
        return Index(self._epoch, "", self._workspace.root, self._principal)

    def _names(self, workspace: Workspace, source: str) -> Sequence[str]:
        """List a source: from the index while its folder is as it was."""
        if source not in self._listed:
            folder = f"{workspace.root}/{workspace.sources[source].path}"
            now, known = fingerprint(folder), self._index.sources.get(source)
            if known is None or known.prints != now:
                dossiers = known.dossiers if known is not None else {}
                known = WatchedSource(now, list_dossiers(workspace, source), dossiers)
            self._listed[source] = known
        return self._listed[source].names

    def _sort(self) -> None:
        """Sort what is asked for into what stands and what must be analysed."""
        wanted: dict[str, dict[str, None]] = {}
        for one in self._selections:
            wanted.setdefault(self._workspace.packages[one.package].sources, {})[one.dossier] = None
        for source, names in wanted.items():
            known = self._index.sources.get(source)
            watched = {} if known is None else known.dossiers
            self._changed[source] = changed_dossiers(self._workspace.root, watched, names)
        stood: set[tuple[str, str]] = set()
        for one in self._selections:
            parts = self._stands(one)
            if parts is None:
                self._head(one)
                end = "/..." if one.part is None else f"/{one.part}"
                self.patterns.append(f"//{one.package}:{one.dossier}{end}")
            elif (one.package, one.dossier) not in stood:
                stood.add((one.package, one.dossier))
                self.standing.append(StandingDossier(one.package, one.dossier, parts))

    def _stands(self, one: Selection) -> tuple[str, ...] | None:
        slot = self._slots.get(one.package)
        if slot is None or one.dossier in self._changed[self._workspace.packages[one.package].sources]:
            return None
        return standing_parts(self._index, slot, self._declared[slot], one.dossier, one.part)

    def _head(self, one: Selection) -> None:
        """Look at a dossier's manifest, or its folder where it has none, before it is read."""
        source = self._workspace.packages[one.package].sources
        if (source, one.dossier) not in self._heads:
            folder = f"{self._workspace.sources[source].path}/{one.dossier}"
            manifest = f"{folder}/{MANIFEST}"
            path = manifest if os.path.lexists(f"{self._workspace.root}/{manifest}") else folder
            self._heads[source, one.dossier] = (path, fingerprint(f"{self._workspace.root}/{path}"))

    def _digest_declarations(self, package: str) -> bytes:
        """Digest all that the keys of a package's targets depend on, besides its dossiers."""
        workspace, section = self._workspace, self._workspace.packages[package]
        toolchain, prompts = None, None
        if isinstance(section, SummaryTreePackage):
            name = self._toolchain or section.toolchain or workspace.section.default_toolchain
            toolchain = name, toolchain_record(workspace.toolchains[name], workspace.numerics)
            prompts = [workspace.prompts[prompt] for prompt in (section.map_prompt, section.reduce_prompt)]
        record = {
            "key_schema": KEY_SCHEMA,
            "principal": self._principal,
            "salt": workspace.section.salt,
            "package": section,
            "rule": RULES[str(section.__struct_config__.tag)].version,
            "source": workspace.sources[section.sources],
            "schema": workspace.schemas[section.schema],
            "toolchain": toolchain,
            "prompts": prompts,
        }
        return hashlib.sha256(canonical_json(record)).digest()

    # -- afterwards -------------------------------------------------------------------------------------------------

    def tell(self, graph: ActionGraph, served: set[str], invocation: str) -> None:
        """Write what is known after a build. `served` holds the labels whose results the store serves, none INVALID.

        Nothing is written when nothing is new. Failing to write costs a look at the next build, and no error.
        """
        declarations = self._declarations()
        if not self.patterns and declarations == self._index.declarations:
            return
        if self._store.epoch() != self._epoch:
            return
        packages = {name: self._changed.get(one.sources, set()) for name, one in self._workspace.packages.items()}
        slots = kept_slots(self._index.served, packages)
        slots = told_slots(slots, self._slots, self._declared, graph, served.intersection(graph.requested))
        root, who = self._workspace.root, self._principal
        index = Index(self._epoch, invocation, root, who, declarations, self._new_sources(), slots)
        temporary = self._file.with_name(f".{self._file.name}-{os.getpid()}")
        try:
            temporary.write_bytes(encode_index(index))
            temporary.replace(self._file)
        except (OSError, UnicodeEncodeError):  # a folder above the workspace may have a name that is no text
            temporary.unlink(missing_ok=True)

    def _declarations(self) -> Declarations:
        workspace, before = self._workspace, self._index.declarations
        prints = trusted(fingerprints(f"{workspace.root}/{path}" for path in workspace.files), self._loading_ns)
        same = before is not None and (before.paths, before.prints) == (workspace.files, prints)
        indexed = {
            name: (section.sources, workspace.sources[section.sources].path)
            for name, section in workspace.packages.items()
            if not isinstance(section, AuditPackage)
        }
        return Declarations(
            paths=workspace.files,
            prints=prints,
            code=code_print(),
            toolchain=workspace.section.default_toolchain,
            packages=indexed,
            declared=(before.declared if before is not None and same else {}) | self._declared,
        )

    def _new_sources(self) -> dict[str, WatchedSource]:
        sources = dict(self._index.sources)
        documents = self._documents()
        for source in dict.fromkeys([*self._listed, *(source for source, _ in self._heads)]):
            self._names(self._workspace, source)
            known, changed = self._listed[source], self._changed.get(source, set())
            dossiers = {name: one for name, one in known.dossiers.items() if name not in changed}
            for (of, name), (head, prints) in self._heads.items():
                if of == source:
                    dossiers[name] = self._watched(head, prints, documents.get((source, name), []))
            sources[source] = WatchedSource(trusted(known.prints, self._looked_ns), tuple(known.names), dossiers)
        return sources

    def _documents(self) -> dict[tuple[str, str], list[str]]:
        """Return the documents that were looked at, by source and dossier."""
        documents: dict[tuple[str, str], list[str]] = {}
        folders = {source: self._workspace.sources[source].path + "/" for source, _ in self._heads}
        for path in self.digests.looked:
            for source, folder in folders.items():
                if path.startswith(folder):
                    documents.setdefault((source, path[len(folder) :].partition("/")[0]), []).append(path)
        return documents

    def _watched(self, head: str, prints: bytes, documents: list[str]) -> Watched:
        looked = self.digests.looked
        return Watched(
            (head, *documents),
            trusted(prints + b"".join(looked[path][0] for path in documents), self._looked_ns),
            NO_DIGEST + b"".join(looked[path][1] for path in documents),
        )


def consult(
    workspace: Workspace,
    patterns: Sequence[str],
    *,
    principal: str | None,
    toolchain: str | None,
    folder: Path,
    store: Store,
    since_ns: int,
) -> tuple[Consultation, Universe]:
    """Consult the index in `folder`, and analyse what does not stand: the universe holds only that."""
    consultation = Consultation(
        workspace,
        patterns,
        principal=principal,
        toolchain=toolchain,
        folder=folder,
        store=store,
        since_ns=since_ns,
    )
    who = principal or workspace.section.principal
    graph = ActionGraph({}, ())
    if consultation.patterns:
        digests = consultation.digests
        graph = analyse(workspace, consultation.patterns, principal=who, toolchain=toolchain, digests=digests)
    return consultation, Universe(workspace, graph, compute_keys(workspace, graph), who)
