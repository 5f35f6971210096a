"""`gsum doctor`: what is missing on this machine, and what to type. Changes nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
import msgspec

from gsum.cli.context import Config, current_config, options, reading_store
from gsum.cli.empty_store import EmptyStore
from gsum.cli.fetch import declared_toolchain
from gsum.cli.render import emit, emit_json, safe
from gsum.engine.llm.doctor import Finding, examine
from gsum.rules.config import CommandToolchain, ToolchainSection, Workspace
from gsum.rules.loader import load_workspace
from gsum.store.errors import ExitCode, StoreError


@click.command("doctor")
@options(toolchain=True)
def command() -> int:
    """Say what each toolchain and the store need on this machine, and what to type where it is missing.

    Exits 10 if the store is damaged, else 6 if the default toolchain (or that of --toolchain) can't run, else 5 if the
    store can't be read.
    """
    config = current_config()
    root = config.root
    workspace = load_workspace(root)
    default = config.toolchain or workspace.section.default_toolchain
    declared_toolchain(workspace, default)
    found = {name: _examine(config, root, workspace, name) for name in workspace.toolchains}
    store, code = _store(config, root)
    if code is not ExitCode.DAMAGE and not all(finding.ok for finding in found[default]):
        code = ExitCode.TOOLCHAIN
    if config.json:
        toolchains = [
            {
                "name": name,
                "default": name == default,
                "findings": [msgspec.to_builtins(finding) for finding in findings],
            }
            for name, findings in found.items()
        ]
        emit_json("doctor", {"toolchains": toolchains, "store": msgspec.to_builtins(store), "exit_code": int(code)})
        return code
    for name, findings in found.items():
        emit(config, f"toolchain `{name}`{' (default)' if name == default else ''}")
        _print(config, findings)
    emit(config, "store")
    _print(config, [store])
    return code


def _examine(config: Config, root: Path, workspace: Workspace, name: str) -> list[Finding]:
    toolchain: ToolchainSection = workspace.toolchains[name]
    if isinstance(toolchain, CommandToolchain):
        return [_program(toolchain, root, config.environ.get("PATH"))]
    return examine(
        name,
        toolchain,
        workspace.numerics[toolchain.numerics],
        cache_dir=config.cache_dir,
        workspace_root=root,
        environ=config.environ,
    )


def _program(toolchain: CommandToolchain, root: Path, path: str | None) -> Finding:
    """Look for a declared program as the executor will: from the workspace root, without a shell."""
    program = toolchain.command[0]
    found = shutil.which(str(root / program) if "/" in program else program, path=path)
    if found is None:
        return Finding("program", False, f"{program} is not there or may not be run", "check `command` in BUILD.toml")
    return Finding("program", True, found)


def _store(config: Config, root: Path) -> tuple[Finding, ExitCode]:
    folder = str(config.store_folder(root))
    try:
        with reading_store(config, root) as store:
            if isinstance(store, EmptyStore):
                return Finding("folder", True, f"{folder}: not yet, the first build makes it"), ExitCode.OK
            store.invocations(1)
    except StoreError as error:
        return Finding("folder", False, f"{folder}: {error.message}", error.hint), error.exit_code
    return Finding("folder", True, folder), ExitCode.OK


def _print(config: Config, findings: list[Finding]) -> None:
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark = click.style("ok ", fg="green") if finding.ok else click.style("NO ", fg="red")
        emit(config, f"  {mark}  {finding.name:<{width}}  {safe(finding.value)}")
        if finding.hint and not finding.ok:
            emit(config, f"       {'':<{width}}  type: {safe(finding.hint)}")
