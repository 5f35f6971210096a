"""One edit of a manifest on disk: under a lock, all or nothing, undone if the workspace can't be analysed after it.

It knows what became stale by it. Prints nothing; the edits themselves are pure and live in `gsum.rules`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from gsum.cli.files import locked, replace_file
from gsum.engine.states import State, TargetState, target_states
from gsum.engine.universe import load_universe
from gsum.rules import paths
from gsum.rules.config import AuditPackage, Workspace
from gsum.rules.ingest import has_dossier, list_dossiers, load_dossier
from gsum.rules.labels import Label, nearest, parse_label, unknown
from gsum.rules.manifest import MANIFEST
from gsum.rules.manifest_edit import Edit
from gsum.rules.nearest import suggest
from gsum.rules.toml import DeclarationError
from gsum.store.api import Store


class Place(msgspec.Struct, frozen=True):
    """The manifest of one dossier: `path` is its real file, `file` how messages call it."""

    source: str
    dossier: str
    path: Path
    file: str


class Changed(msgspec.Struct, frozen=True):
    """What an edit did: whether it changed the file, what became stale and what is current again by it, what was and is
    current, but as another build made it, and all roots over the dossier that are stale now, as labels.

    `compared` is false where the dossier could not be read before: then none but the last is known.
    """

    changed: bool
    stale: tuple[str, ...] = ()
    current_again: tuple[str, ...] = ()
    switched: tuple[str, ...] = ()
    compared: bool = True
    stale_roots: tuple[str, ...] = ()


def find_place(workspace: Workspace, text: str) -> Place:
    """Return the manifest of the dossier that a package's or a source's label names.

    Raises:
        LabelError: if it names no dossier, with the nearest.
        DeclarationError: if the dossier is a plain folder, or its manifest is wrong or leads out of the workspace.
    """
    label = parse_label(text)
    if label.package in workspace.packages:
        source = workspace.packages[label.package].sources
    elif label.package in workspace.sources:
        source = label.package
    else:
        hint = suggest(label.package, [*workspace.packages, *workspace.sources], "packages and sources are")
        raise unknown(text, f"there is no package or source `{label.package}`", None, hint)
    if not has_dossier(workspace, source, label.name):
        near = nearest(label.name, list_dossiers(workspace, source))
        close = str(Label(label.package, near)) if near else None
        raise unknown(
            text, f"source `{source}` has no dossier `{label.name}`", close, f"gsum query //{label.package}:all"
        )
    loaded = load_dossier(workspace, source, label.name)
    file = paths.join(paths.join(workspace.sources[source].path, label.name), MANIFEST)
    if loaded.manifest is None:
        raise DeclarationError(
            f"dossier `{label.name}` has no manifest: its files are its documents",
            facts={"file": file},
            hint=f"write a `{MANIFEST}` to declare versions and rights",
        )
    return Place(source, label.name, paths.resolve(workspace.root, file), file)


def edit_manifest(
    workspace: Workspace,
    place: Place,
    store: Store,
    edit: Callable[[str], Edit],
    *,
    principal: str | None,
    toolchain: str | None,
) -> Changed:
    """Edit a manifest and say what became stale for a principal.

    Raises:
        ManifestEditError: if the edit names what is not there.
        DeclarationError: if the workspace could be analysed before and can't after; the manifest is then as before.
    """

    def states() -> dict[str, TargetState]:
        patterns = [
            f"//{name}:{place.dossier}/..."
            for name, package in workspace.packages.items()
            if package.sources == place.source and not isinstance(package, AuditPackage)
        ]
        if not patterns:
            return {}
        universe = load_universe(Path(workspace.root), patterns, principal=principal, toolchain=toolchain)
        return target_states(universe, store, universe.graph.requested)

    with locked(place.path.parent):
        old = place.path.read_bytes()
        edited = edit(old.decode())
        if not edited.changed:
            return Changed(False)
        before: dict[str, TargetState] | None = None
        with contextlib.suppress(DeclarationError):
            before = states()
        replace_file(place.path, edited.text.encode())
        try:
            after = states()
        except BaseException:
            if before is not None:
                replace_file(place.path, old)
            raise
    known = before or {}
    stale = [label for label, now in after.items() if label in known and _turned(known[label], now)]
    again = [label for label, now in after.items() if label in known and _turned(now, known[label])]
    switched = [label for label, now in after.items() if label in known and _switched(known[label], now)]
    roots = [label for label, now in after.items() if now.state is State.STALE and parse_label(label).part == "root"]
    return Changed(
        True,
        stale=tuple(stale),
        current_again=tuple(again),
        switched=tuple(switched),
        compared=before is not None,
        stale_roots=tuple(roots),
    )


def _turned(old: TargetState, new: TargetState) -> bool:
    return old.state.current and not new.state.current


def _switched(old: TargetState, new: TargetState) -> bool:
    return old.state.current and new.state.current and old.key != new.key
