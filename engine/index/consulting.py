"""Asking the index before a build what need not be looked into, and telling it afterwards what is served.

A dossier stands when its files are as they were, the package's declarations too, and the store has lost nothing since.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from gsum.engine.index.fingerprints import fingerprint, trusted
from gsum.engine.index.looking import NO_DIGEST, IndexedDigests, changed_dossiers, clock_ns
from gsum.engine.index.records import Index, Served, Standing, Watched, WatchedSource, decode_index, encode_index
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

ROOT = "root"


class Consultation:
    """One build's dealings with the index. `standing` need not be analysed; `patterns` must be, with `digests`."""

    def __init__(
        self,
        workspace: Workspace,
        patterns: Sequence[str],
        *,
        principal: str,
        toolchain: str | None,
        folder: Path,
        store: Store,
    ) -> None:
        self._workspace, self._principal, self._toolchain, self._store = workspace, principal, toolchain, store
        name = hashlib.sha256(principal.encode(errors="surrogatepass")).hexdigest()[:16]
        self._file = folder / f"{name}.index"
        folder.mkdir(parents=True, exist_ok=True)
        self._looked_ns = clock_ns(folder)
        self._epoch = store.epoch()
        self._index = self._read()
        self._listed: dict[str, WatchedSource] = {}
        self._heads: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.standing: list[StandingDossier] = []
        self.patterns: list[str] = []
        self._changed: dict[str, set[str]] = {}
        selections = resolve_patterns(workspace, patterns, self._names)
        check_toolchain(workspace, {one.package for one in selections}, toolchain)
        self._declared = {one: self._digest_declarations(one) for one in {each.package for each in selections}}
        self._selections = selections
        self._sort(selections)
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
        empty = Index(self._epoch, "", self._workspace.root)
        try:
            index = decode_index(self._file.read_bytes())
        except OSError:
            return empty
        if index is None or (index.epoch, index.root) != (self._epoch, self._workspace.root):
            return empty
        return index if self._store.has_invocation(index.invocation) else empty

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

    def _sort(self, selections: Iterable[Selection]) -> None:
        """Sort what is asked for into what stands and what must be analysed."""
        selections = tuple(selections)
        wanted: dict[str, dict[str, None]] = {}
        for one in selections:
            wanted.setdefault(self._workspace.packages[one.package].sources, {})[one.dossier] = None
        for source, names in wanted.items():
            known = self._index.sources.get(source)
            watched = {} if known is None else known.dossiers
            self._changed[source] = changed_dossiers(self._workspace.root, watched, names)
        stood: set[tuple[str, str]] = set()
        for one in selections:
            found = self._stands(one)
            if found is None:
                self._head(one)
                end = "/..." if one.part is None else f"/{one.part}"
                self.patterns.append(f"//{one.package}:{one.dossier}{end}")
            elif (one.package, one.dossier) not in stood:
                stood.add((one.package, one.dossier))
                self.standing.append(found)

    def _stands(self, one: Selection) -> StandingDossier | None:
        source = self._workspace.packages[one.package].sources
        served = self._index.served.get(self._slot(one.package))
        if served is None or one.dossier in self._changed[source] or self._is_audit(one.package):
            return None
        standing = served.dossiers.get(one.dossier)
        if standing is None or served.declared != self._declared[one.package]:
            return None
        if one.part != ROOT and not (one.part is None and standing.every_part):
            return None
        return StandingDossier(one.package, one.dossier, served.shapes[standing.shape])

    def _is_audit(self, package: str) -> bool:
        """Whether gold is among what a package's targets depend on: labels files are not watched."""
        return isinstance(self._workspace.packages[package], AuditPackage)

    def _head(self, one: Selection) -> None:
        """Look at a dossier's manifest, or its folder where it has none, before it is read."""
        source = self._workspace.packages[one.package].sources
        if (source, one.dossier) not in self._heads:
            folder = f"{self._workspace.sources[source].path}/{one.dossier}"
            manifest = f"{folder}/{MANIFEST}"
            path = manifest if os.path.lexists(f"{self._workspace.root}/{manifest}") else folder
            self._heads[source, one.dossier] = (path, fingerprint(f"{self._workspace.root}/{path}"))

    def _slot(self, package: str) -> str:
        return package if self._toolchain is None else f"{package} {self._toolchain}"

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

        Nothing is written when nothing was analysed. Failing to write costs a look at the next build, and no error.
        """
        if not self.patterns or self._store.epoch() != self._epoch:
            return
        index = Index(
            self._epoch, invocation, self._workspace.root, self._new_sources(), self._new_served(graph, served)
        )
        temporary = self._file.with_name(f".{self._file.name}-{os.getpid()}")
        try:
            temporary.write_bytes(encode_index(index))
            temporary.replace(self._file)
        except OSError:
            temporary.unlink(missing_ok=True)

    def _new_sources(self) -> dict[str, WatchedSource]:
        documents: dict[tuple[str, str], list[str]] = {}
        for path in self.digests.looked:
            for source in self._listed.keys() | {source for source, _ in self._heads}:
                folder = self._workspace.sources[source].path + "/"
                if path.startswith(folder):
                    documents.setdefault((source, path[len(folder) :].partition("/")[0]), []).append(path)
        sources = dict(self._index.sources)
        for source in dict.fromkeys([*self._listed, *(source for source, _ in self._heads)]):
            known = self._listed.get(source) or sources.get(source)
            if known is None:
                self._names(self._workspace, source)
                known = self._listed[source]
            dossiers = {name: one for name, one in known.dossiers.items() if name not in self._changed.get(source, ())}
            for (of, name), (head, prints) in self._heads.items():
                if of == source:
                    dossiers[name] = self._watched(head, prints, documents.get((source, name), []))
            sources[source] = WatchedSource(trusted(known.prints, self._looked_ns), known.names, dossiers)
        return sources

    def _watched(self, head: str, prints: bytes, documents: list[str]) -> Watched:
        looked = self.digests.looked
        return Watched(
            (head, *documents),
            trusted(prints + b"".join(looked[path][0] for path in documents), self._looked_ns),
            NO_DIGEST + b"".join(looked[path][1] for path in documents),
        )

    def _new_served(self, graph: ActionGraph, served: set[str]) -> dict[str, Served]:
        """Return what is served: of what was analysed as it came out, of the rest as it was, if it did not change."""
        parts: dict[tuple[str, str], list[str]] = {}
        for label, action in graph.actions.items():
            parts.setdefault((action.package, action.dossier), []).append(label)
        slots: dict[str, Served] = {}
        for slot, known in self._index.served.items():
            package = slot.partition(" ")[0]
            if package in self._workspace.packages:
                changed = self._changed.get(self._workspace.packages[package].sources, set())
                kept = {name: one for name, one in known.dossiers.items() if name not in changed}
                slots[slot] = msgspec.structs.replace(known, dossiers=kept)
        requested = set(graph.requested)
        for (package, dossier), labels in parts.items():
            if package not in self._declared or self._is_audit(package):
                continue
            slot = self._slot(package)
            before = slots.get(slot)
            if before is None or before.declared != self._declared[package]:
                before = Served(self._declared[package], (), {})
            slots[slot] = _with_dossier(before, package, dossier, labels, served & requested)
        return slots


def _with_dossier(before: Served, package: str, dossier: str, labels: list[str], served: set[str]) -> Served:
    dossiers, shapes = dict(before.dossiers), before.shapes
    dossiers.pop(dossier, None)
    if f"//{package}:{dossier}/{ROOT}" in served:
        shape = tuple(label.rpartition("/")[2] for label in labels)
        if shape not in shapes:
            shapes = (*shapes, shape)
        dossiers[dossier] = Standing(served.issuperset(labels), shapes.index(shape))
    return Served(before.declared, shapes, dossiers)


def consult(
    workspace: Workspace,
    patterns: Sequence[str],
    *,
    principal: str | None,
    toolchain: str | None,
    folder: Path,
    store: Store,
) -> tuple[Consultation, Universe]:
    """Consult the index in `folder`, and analyse what does not stand: the universe holds only that."""
    who = principal or workspace.section.principal
    consultation = Consultation(workspace, patterns, principal=who, toolchain=toolchain, folder=folder, store=store)
    graph = ActionGraph({}, ())
    if consultation.patterns:
        digests = consultation.digests
        graph = analyse(workspace, consultation.patterns, principal=who, toolchain=toolchain, digests=digests)
    return consultation, Universe(workspace, graph, compute_keys(workspace, graph), who)
