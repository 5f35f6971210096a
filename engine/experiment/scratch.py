"""The scratch copy of a workspace that a run edits: only what the run needs, made whole or not at all.

Documents, manifests, labels and declarations are copied byte for byte. Links are refused: what a link leads to would,
once copied, be out of sight of the visibility rule. It builds nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from gsum.engine.experiment.edits import Declare, Step, edit_build_file, edit_manifest
from gsum.engine.experiment.records import write_whole
from gsum.rules.config import AuditPackage, BuildFile, PromptFile, SubBuildFile, Visibility, Workspace
from gsum.rules.gold_files import gold_path
from gsum.rules.manifest import MANIFEST
from gsum.rules.paths import join, real_path
from gsum.rules.root import BUILD_FILE
from gsum.rules.toml import DeclarationError, TomlText, decode
from gsum.store.canonical import canonical_json
from gsum.store.digests import blob_digest


def needed_files(workspace: Workspace, audits: Sequence[AuditPackage], dossiers: Sequence[str]) -> tuple[str, ...]:
    """Return the files that a run over `dossiers` reads, relative to the root, sorted.

    Raises:
        DeclarationError: if a dossier has no manifest.
    """
    root = Path(workspace.root)
    files = set(_declarations(workspace))
    for package in audits:
        folder = workspace.sources[package.sources].path
        for dossier in dossiers:
            place = root / folder / dossier
            if not (place / MANIFEST).is_file():
                raise DeclarationError(
                    f"dossier `{dossier}` has no manifest, so no step can edit it",
                    facts={"folder": f"{folder}/{dossier}"},
                )
            files |= {str(file.relative_to(root)) for file in place.rglob("*") if file.is_file()}
            files.add(gold_path(workspace, package, dossier))
    return tuple(sorted(file for file in files if (root / file).is_file()))


def digest_files(root: Path, files: Iterable[str]) -> str:
    """Return one digest of files: their names and contents."""
    return blob_digest(canonical_json({file: blob_digest((root / file).read_bytes()) for file in files}))


def copy_workspace(workspace: Workspace, files: Sequence[str], target: Path) -> None:
    """Copy files of a workspace to `target`, with an empty folder for every source that none of them is in.

    Raises:
        DeclarationError: if a file is a link, or stands below one.
    """
    partial = target.with_name(f".{target.name}-partial")
    shutil.rmtree(partial, ignore_errors=True)
    top = Path(real_path(workspace.root, ""))
    for file in files:
        if real_path(workspace.root, file) != str(top / file):
            raise DeclarationError(
                f"`{file}` is a link or stands below one", facts={"file": file}, hint="a run takes real files alone"
            )
        (partial / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(workspace.root, file), partial / file)
    for source in workspace.sources.values():
        if source.visibility is Visibility.INFERENCE:
            (partial / source.path).mkdir(parents=True, exist_ok=True)
    partial.rename(target)


def apply_step(scratch: Path, folder: str, step: Step, dossiers: Sequence[str]) -> None:
    """Put a step in force, for each dossier of the source in `folder`. Doing it again changes nothing.

    Raises:
        DeclarationError, ManifestEditError: if a file can't be edited so.
    """
    if isinstance(step, Declare):
        build = scratch / BUILD_FILE
        edited = edit_build_file(step, build.read_bytes().decode(), BUILD_FILE)
        if edited.changed:
            write_whole(build, edited.text.encode())
        return
    for dossier in dossiers:
        name = join(folder, f"{dossier}/{MANIFEST}")
        manifest = scratch / name
        edited = edit_manifest(step, dossier, manifest.read_bytes().decode(), name)
        if edited.changed:
            write_whole(manifest, edited.text.encode())


def _declarations(workspace: Workspace) -> Iterable[str]:
    """Yield the BUILD.toml files of a workspace and the files of its prompts."""
    root = Path(workspace.root)
    for folder in ("", *workspace.section.subpackages):
        name = join(folder, BUILD_FILE)
        yield name
        text = TomlText(name, (root / name).read_bytes().decode())
        declared = decode(text, SubBuildFile) if folder else decode(text, BuildFile)
        for prompt in declared.prompt.values():
            for part in (prompt.system, prompt.instruction):
                if isinstance(part, PromptFile):
                    yield join(folder, part.file)
