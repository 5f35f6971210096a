"""`gsum toolchain pin`: writes the digests and versions that this machine shows into BUILD.toml."""

from __future__ import annotations

import difflib
from pathlib import Path

import click
import msgspec

from gsum.cli.context import Config, current_config, options
from gsum.cli.fetch import declared_toolchain
from gsum.cli.files import locked, replace_file
from gsum.cli.render import emit, emit_json, on_terminal, safe
from gsum.engine.executors.observe import observe_toolchain
from gsum.engine.llm.pin import Change, pin_text
from gsum.engine.llm.sources import ToolchainError
from gsum.rules.config import LocalToolchain, Workspace
from gsum.rules.loader import load_workspace
from gsum.rules.root import BUILD_FILE

_DIFF_COLORS = {"+": "green", "-": "red", "@": "cyan"}


@click.group("toolchain")
def command() -> None:
    """Pin the toolchains of BUILD.toml to what this machine shows."""


@command.command("pin")
@click.argument("name", metavar="TOOLCHAIN")
@click.option("--dry-run", is_flag=True, help="Say what would be written; write nothing.")
@options()
def pin(name: str, dry_run: bool) -> None:
    """Load the model of TOOLCHAIN, and write the digests and versions seen into BUILD.toml."""
    config = current_config()
    root = config.root
    workspace = load_workspace(root)
    toolchain = _local(workspace, name)
    if on_terminal():
        emit(config, f"loading the model of `{name}` to look at it", err=True)
    observed = observe_toolchain(
        name,
        toolchain,
        workspace.numerics[toolchain.numerics],
        cache_dir=config.cache_dir,
        workspace_root=root,
        environ=config.environ,
    )
    file = (root / BUILD_FILE).resolve()
    with locked(file.parent):
        old = file.read_bytes().decode()
        new, changes = pin_text(old, name, observed)
        if changes and not dry_run:
            _write(root, file, old, new)
    if config.json:
        document = {"toolchain": name, "file": BUILD_FILE, "written": bool(changes) and not dry_run}
        emit_json("toolchain", {**document, "changes": [msgspec.to_builtins(change) for change in changes]})
    else:
        _print(config, name, changes, (old, new), written=not dry_run)


def _local(workspace: Workspace, name: str) -> LocalToolchain:
    toolchain = declared_toolchain(workspace, name)
    if not isinstance(toolchain, LocalToolchain):
        raise ToolchainError(
            f"toolchain `{name}` is a program of yours: there is nothing to observe",
            hint="raise its `identity` in BUILD.toml when the program changes",
        )
    return toolchain


def _write(root: Path, file: Path, old: str, new: str) -> None:
    """Write BUILD.toml, and put it back if the workspace can't be loaded from it."""
    replace_file(file, new.encode())
    try:
        load_workspace(root)
    except BaseException:
        replace_file(file, old.encode())
        raise


def _print(config: Config, name: str, changes: list[Change], texts: tuple[str, str], *, written: bool) -> None:
    if not changes:
        emit(config, f"no change: `{name}` is pinned to what this machine shows")
        return
    old, new = (text.splitlines() for text in texts)
    for line in difflib.unified_diff(old, new, BUILD_FILE, BUILD_FILE, n=1, lineterm=""):
        emit(config, click.style(safe(line), fg=_DIFF_COLORS.get(line[:1])))
    if written:
        emit(config, f"pinned `{name}`; what it made under other values is stale now")
        emit(config, f"next: {safe(config.typed('status', '//...'))}")
    else:
        emit(config, f"dry run: {BUILD_FILE} is unchanged")
