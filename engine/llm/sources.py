"""Where a toolchain's model files lie on this machine, and that they are the declared ones. Reads only local files.

It knows the package index and the hub only as folders that `fetch.py` has filled; it imports no model library.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import msgspec

from gsum.rules.config import FolderSource, HuggingFaceSource, LocalToolchain, PackageSource
from gsum.store.errors import ExitCode, GsumError

_CHUNK = 1 << 20
_EXECUTABLE_FORMATS = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".py")


class ToolchainError(GsumError):
    """A model, its files or its libraries are not what the toolchain declares."""

    exit_code = ExitCode.TOOLCHAIN


class ModelMissing(ToolchainError):
    """A toolchain's model is not on this machine."""


class ModelFiles(msgspec.Struct, frozen=True):
    """A located model: its folder and the declared files in it, by their names in BUILD.toml."""

    folder: Path
    files: dict[str, Path]


def locate_model(
    name: str,
    toolchain: LocalToolchain,
    *,
    cache_dir: Path,
    workspace_root: Path,
    environ: Mapping[str, str],
) -> ModelFiles:
    """Return where the files of a toolchain lie; their content is not read (see `verify_files`).

    Raises:
        ModelMissing: with the command that fetches it.
        ToolchainError: if the declaration names files of a format that can execute code, or outside the source.
    """
    _refuse_outside(name, toolchain)
    _refuse_executable(name, toolchain)
    folder = source_folder(toolchain, cache_dir=cache_dir, workspace_root=workspace_root, environ=environ)
    files = {file: folder / PurePosixPath(file) for file in toolchain.files}
    absent = [file for file, path in files.items() if not path.is_file()]
    if absent:
        raise ModelMissing(
            f"the model of toolchain `{name}` is not on this machine",
            facts={"source": describe(toolchain), "folder": folder, "missing": ", ".join(absent)},
            hint=_how_to_get(name, toolchain),
        )
    return ModelFiles(folder, files)


def source_folder(
    toolchain: LocalToolchain, *, cache_dir: Path, workspace_root: Path, environ: Mapping[str, str]
) -> Path:
    """Return the folder that holds, or will hold, the declared files."""
    source = toolchain.source
    if isinstance(source, PackageSource):
        return cache_dir / "models" / files_digest(toolchain)
    if isinstance(source, FolderSource):
        return workspace_root / source.path
    return hub_snapshot(source, hub_cache(environ))


def hub_snapshot(source: HuggingFaceSource, cache: Path) -> Path:
    """Return the folder of a commit in a hub cache."""
    return cache / f"models--{source.repo.replace('/', '--')}" / "snapshots" / source.commit


def files_digest(toolchain: LocalToolchain) -> str:
    """Return the sha256 of the declared file table: the name under which fetched files are kept."""
    listed = "".join(f"{digest}  {name}\n" for name, digest in sorted(toolchain.files.items()))
    return hashlib.sha256(listed.encode()).hexdigest()


def hub_cache(environ: Mapping[str, str]) -> Path:
    """Return the Hugging Face cache folder by the hub's own rules."""
    if "HF_HUB_CACHE" in environ:
        return Path(environ["HF_HUB_CACHE"])
    if "HF_HOME" in environ:
        return Path(environ["HF_HOME"]) / "hub"
    base = Path(environ["XDG_CACHE_HOME"]) if "XDG_CACHE_HOME" in environ else Path.home() / ".cache"
    return base / "huggingface" / "hub"


def verify_files(name: str, toolchain: LocalToolchain, folder: Path) -> None:
    """Hash every declared file and compare; neither the hub's cache nor a stamp is trusted in its place.

    Raises:
        ToolchainError: naming the first file that differs and both hashes.
    """
    for file, declared in sorted(toolchain.files.items()):
        found = sha256_file(folder / PurePosixPath(file))
        if found != declared:
            raise ToolchainError(
                f"a file of toolchain `{name}` is not the declared one",
                facts={"file": folder / PurePosixPath(file), "declared": declared, "found": found},
                hint=_how_to_replace(name, toolchain),
            )


def sha256_file(path: Path) -> str:
    """Return the sha256 of a file, read in chunks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def is_gguf(toolchain: LocalToolchain) -> bool:
    """Whether the declared weights are one GGUF file, to be converted once."""
    return any(file.endswith(".gguf") for file in toolchain.files)


def describe(toolchain: LocalToolchain) -> str:
    """Say in words where a toolchain's model comes from."""
    source = toolchain.source
    if isinstance(source, PackageSource):
        return f"package {source.package}=={source.version}, file {source.file}"
    if isinstance(source, HuggingFaceSource):
        return f"{source.repo} at commit {source.commit}"
    return f"folder {source.path}"


def regular_files(folder: Path) -> list[str]:
    """Return the relative names of the regular files below a folder, sorted; links are followed."""
    found = (path for path in folder.rglob("*") if stat.S_ISREG(path.stat().st_mode))
    return sorted(path.relative_to(folder).as_posix() for path in found)


def _refuse_outside(name: str, toolchain: LocalToolchain) -> None:
    bad = [file for file in toolchain.files if PurePosixPath(file).is_absolute() or ".." in PurePosixPath(file).parts]
    if bad:
        raise ToolchainError(
            f"toolchain `{name}` declares a file outside its source",
            facts={"files": ", ".join(bad)},
            hint="name files relative to the source, without `..`",
        )


def _refuse_executable(name: str, toolchain: LocalToolchain) -> None:
    bad = [file for file in toolchain.files if file.endswith(_EXECUTABLE_FORMATS)]
    gguf_elsewhere = is_gguf(toolchain) and not isinstance(toolchain.source, PackageSource)
    if bad or gguf_elsewhere:
        named = bad or [file for file in toolchain.files if file.endswith(".gguf")]
        raise ToolchainError(
            f"toolchain `{name}` declares files that are not safetensors",
            facts={"files": ", ".join(named)},
            hint="declare the model's .safetensors files; formats that can run code are never read",
        )


def _how_to_get(name: str, toolchain: LocalToolchain) -> str:
    if isinstance(toolchain.source, FolderSource):
        return f"put the files there, or change `path` under `[toolchain.{name}]` in BUILD.toml"
    return f"gsum fetch --toolchain {name}"


def _how_to_replace(name: str, toolchain: LocalToolchain) -> str:
    if isinstance(toolchain.source, FolderSource):
        return f"restore the file, or, if the change is meant: gsum toolchain pin {name}"
    return f"gsum fetch --toolchain {name} replaces it"


def source_gguf(toolchain: LocalToolchain) -> str:
    """Return the declared name of the GGUF file.

    Raises:
        ToolchainError: if there is not exactly one.
    """
    names = [file for file in toolchain.files if file.endswith(".gguf")]
    if len(names) != 1:
        raise ToolchainError(
            "a GGUF toolchain declares exactly one .gguf file", facts={"declared": ", ".join(names) or "none"}
        )
    return names[0]
