"""Asking the index before a build what need not be looked into, and telling it afterwards what is served.

A dossier stands when its files are as they were, the package's declarations too, and the store has lost nothing since.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import KeysView, Sequence
from pathlib import Path

from gsum.engine.index.digests import NO_DIGEST, IndexedDigests
from gsum.engine.index.encoding import decode_index, encode_index
from gsum.engine.index.fingerprints import NEVER, TICK_NS, fingerprint, fingerprint_as, trusted
from gsum.engine.index.looking import clock_ns, code_print, index_file, linked, look_at, read_index, write_index
from gsum.engine.index.quick import Looked
from gsum.engine.index.records import Declarations, Index, Source, Watched, empty_source, parts_of, slot_of
from gsum.engine.index.telling import kept_slots, told_slots
from gsum.engine.keys import compute_keys, toolchain_record
from gsum.engine.standing import StandingDossier
from gsum.engine.universe import Universe
from gsum.rules import paths
from gsum.rules.analysis import Selection, analyse, check_toolchain, resolve_patterns
from gsum.rules.config import AuditPackage, SummaryTreePackage, Workspace
from gsum.rules.graph import ActionGraph
from gsum.rules.ingest import Digests, list_dossiers
from gsum.rules.kinds import RULES
from gsum.rules.manifest import MANIFEST
from gsum.rules.toml import DeclarationError
from gsum.store.api import Store
from gsum.store.canonical import canonical_json
from gsum.store.digests import KEY_SCHEMA


class Consultation:
    """One build's dealings with the index. `standing` need not be analysed; `patterns` must be, with `digests`, which
    read through `files` what the index does not know.

    `since_ns` is this machine's clock before the workspace was loaded. `principal` null: the workspace's own. `looked`
    is what a quick look has seen just before, for the same patterns.
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
        files: Digests,
        looked: Looked | None = None,
    ) -> None:
        self._workspace, self._toolchain, self._store = workspace, toolchain, store
        self._principal = principal or workspace.section.principal
        self._folder, self._file = folder, index_file(folder, principal)
        folder.mkdir(parents=True, exist_ok=True)
        self._looked_ns = clock_ns(folder)
        self._loading_ns = self._looked_ns - max(0, time.time_ns() - since_ns) - TICK_NS
        self._epoch, self._code = store.epoch(), code_print()
        self._looks = {} if looked is None or looked.file != self._file else dict(looked.looks)
        self._index = self._read(looked.index if looked is not None and self._looks else None)
        self._listed: dict[str, Source] = {}
        self._heads: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._changed: dict[str, set[str]] = {}
        self._news = any(look.touched for look in self._looks.values())
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
        known = (
            self._index.sources[source].watched(name) for source, name in self._heads if source in self._index.sources
        )
        self.digests = IndexedDigests(workspace.root, filter(None, known), files)

    @property
    def alone(self) -> tuple[str, ...]:
        """The one target that was asked for, if it is one."""
        if len(self._selections) != 1 or self._selections[0].part is None:
            return ()
        one = self._selections[0]
        return (f"//{one.package}:{one.dossier}/{one.part}",)

    def _read(self, seen: Index | None) -> Index:
        expected = (self._epoch, self._workspace.root, self._principal)
        data = read_index(self._file) if seen is None else None
        index = seen if data is None else decode_index(data)
        if index is not None and (index.epoch, index.root, index.principal) == expected:
            same_code = index.declarations is not None and index.declarations.code == self._code
            if same_code and self._store.has_invocation(index.invocation):
                return index
        self._looks = {}
        return Index(self._epoch, "", self._workspace.root, self._principal)

    def _names(self, workspace: Workspace, source: str) -> Sequence[str]:
        """List a source: from the index while its folder is as it was."""
        if source not in self._listed:
            folder = f"{workspace.root}/{workspace.sources[source].path}"
            now = fingerprint(folder)
            known = self._index.sources.get(source)
            if known is None or known.folder != now:
                names = list_dossiers(workspace, source)
                known = (known or empty_source()).told(NEVER if linked(folder) else now, names, {})
                self._news = True
            self._listed[source] = known
        return self._listed[source].names

    def _sort(self) -> None:
        """Sort what is asked for into what stands and what must be analysed: no target is in both."""
        wanted: dict[str, dict[str, None]] = {}
        for one in self._selections:
            wanted.setdefault(self._workspace.packages[one.package].sources, {})[one.dossier] = None
        for source, names in wanted.items():
            self._changed[source] = set(self._look(source, names.keys()))
        found = [(one, self._stands(one)) for one in self._selections]
        analysed = {pair for one, parts in found if parts is None for pair in self._reached(one)}
        standing: dict[tuple[str, str], StandingDossier] = {}
        for one, parts in found:
            if parts is None or (one.package, one.dossier) in analysed:
                self._head(one)
                end = "/..." if one.part is None else f"/{one.part}"
                self.patterns.append(f"//{one.package}:{one.dossier}{end}")
            else:
                standing[one.package, one.dossier] = StandingDossier(one.package, one.dossier, parts)
        self.standing = list(standing.values())

    def _reached(self, one: Selection) -> list[tuple[str, str]]:
        """Return the dossiers of packages whose targets the analysis of a selection takes into its graph."""
        section = self._workspace.packages[one.package]
        audited = [section.targets] if isinstance(section, AuditPackage) else []
        return [(package, one.dossier) for package in (one.package, *audited)]

    def _look(self, source: str, names: KeysView[str]) -> set[str]:
        """Return the dossiers of a source, of `names`, that are not as they were; what was touched is noted."""
        known = self._index.sources.get(source)
        if known is None:
            return set(names)
        look = self._looks.get(source)
        if look is None or names - set(look.seen):
            look = look_at(self._workspace.root, known, list(names), self._folder)
            self._index = self._index.with_sources({**self._index.sources, source: look.source})
            self._news = self._news or look.touched
        if source in self._listed:
            listed = self._listed[source]
            self._listed[source] = (
                look.source.told(listed.folder, listed.names, {}) if listed is not known else look.source
            )
        return look.changed

    def _stands(self, one: Selection) -> tuple[str, ...] | None:
        slot, source = self._slots.get(one.package), self._workspace.packages[one.package].sources
        known, served = self._index.sources.get(source), self._index.served.get(slot or "")
        if slot is None or known is None or served is None or one.dossier in self._changed[source]:
            return None
        place = known.place(one.dossier)
        if place is None or served.declared != self._declared[slot]:
            return None
        return parts_of(served, served.marks[place], one.part)

    def _head(self, one: Selection) -> None:
        """Look at a dossier's manifest, or its folder where it has none, before it is read."""
        source = self._workspace.packages[one.package].sources
        if (source, one.dossier) not in self._heads:
            folder = self._folder_of(source, one.dossier)
            manifest = f"{folder}/{MANIFEST}"
            path = manifest if os.path.lexists(f"{self._workspace.root}/{manifest}") else folder
            self._heads[source, one.dossier] = (path, fingerprint(f"{self._workspace.root}/{path}"))

    def _folder_of(self, source: str, dossier: str) -> str:
        return paths.join(self._workspace.sources[source].path, dossier)

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
        if not self.patterns and not self._news and declarations == self._index.declarations:
            return
        if self._store.epoch() != self._epoch or code_print() != self._code:
            return
        sources, workspace = self._new_sources(), self._workspace
        packages = {name: one.sources for name, one in workspace.packages.items()}
        slots = kept_slots(self._index, packages, sources, self._changed)
        of_package = {name: sources[source] for name, source in packages.items() if source in sources}
        asked = served.intersection(graph.requested)
        slots = told_slots(slots, self._slots, self._declared, of_package, graph, asked)
        index = Index(self._epoch, invocation, workspace.root, self._principal, declarations, sources, slots)
        write_index(self._file, encode_index(index))

    def _declarations(self) -> Declarations:
        workspace, before = self._workspace, self._index.declarations
        prints = trusted(self._declared_prints(), self._loading_ns)
        same = before is not None and (before.paths, before.prints) == (workspace.files, prints)
        indexed = {
            name: (section.sources, workspace.sources[section.sources].path)
            for name, section in workspace.packages.items()
            if not isinstance(section, AuditPackage)
        }
        return Declarations(
            paths=workspace.files,
            prints=prints,
            code=self._code,
            toolchain=workspace.section.default_toolchain,
            packages=indexed,
            declared={**(before.declared if before is not None and same else {}), **self._declared},
        )

    def _declared_prints(self) -> bytes:
        """Return the fingerprints of the declarations as they were read; `NEVER` for a file that is not so now."""
        read = [fingerprint_as(*stamp) for stamp in self._workspace.stamps]
        now = [fingerprint(f"{self._workspace.root}/{path}") for path in self._workspace.files]
        return b"".join(one if one == other else NEVER for one, other in zip(read, now, strict=True))

    def _new_sources(self) -> dict[str, Source]:
        sources = dict(self._index.sources)
        documents = self._documents()
        for source in dict.fromkeys([*self._listed, *(source for source, _ in self._heads)]):
            try:
                self._names(self._workspace, source)
            except DeclarationError:  # a folder beside what was asked for: whoever asks for all will hear of it
                sources.pop(source, None)
                continue
            rows: dict[str, Watched | None] = dict.fromkeys(self._changed.get(source, ()))
            for (of, name), (head, prints) in self._heads.items():
                if of == source:
                    rows[name] = self._watched(self._folder_of(of, name), head, prints, documents.get((of, name), []))
            known = self._listed[source]
            for name, row in rows.items():
                if row is None or row != known.watched(name):
                    self._changed[source].add(name)  # perhaps only since it was looked at
            sources[source] = known.told(trusted(known.folder, self._looked_ns), known.names, rows)
        return sources

    def _documents(self) -> dict[tuple[str, str], list[str]]:
        """Return the documents that were looked at, by source and dossier."""
        documents: dict[tuple[str, str], list[str]] = {}
        folders = {source: self._folder_of(source, "_")[:-1] for source, _ in self._heads}
        for path in self.digests.looked:
            for source, folder in folders.items():
                if path.startswith(folder):
                    documents.setdefault((source, path[len(folder) :].partition("/")[0]), []).append(path)
        return documents

    def _watched(self, folder: str, head: str, prints: bytes, documents: list[str]) -> Watched:
        looked = self.digests.looked
        if head == folder and linked(
            f"{self._workspace.root}/{folder}", {path.rpartition("/")[2] for path in documents}
        ):
            prints = NEVER
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
    files: Digests,
    looked: Looked | None = None,
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
        files=files,
        looked=looked,
    )
    who = principal or workspace.section.principal
    graph = ActionGraph({}, ())
    if consultation.patterns:
        digests = consultation.digests
        graph = analyse(workspace, consultation.patterns, principal=who, toolchain=toolchain, digests=digests)
    return consultation, Universe(workspace, graph, compute_keys(workspace, graph), who)
