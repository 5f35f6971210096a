"""`gsum fetch`: brings the models of toolchains to this machine. The only command that talks to a network."""

from __future__ import annotations

import click

from gsum.cli.context import current_config, options
from gsum.cli.render import emit, emit_json, on_terminal
from gsum.engine.llm.fetch import fetch_model
from gsum.rules.config import LocalToolchain, ToolchainSection, Workspace
from gsum.rules.loader import load_workspace
from gsum.rules.nearest import suggest


@click.command("fetch")
@click.option("--toolchain", "names", multiple=True, metavar="T", help="Fetch for T, not the default one; repeatable.")
@options()
def command(names: tuple[str, ...]) -> None:
    """Bring the model files that toolchains declare to this machine, checked against their digests."""
    config = current_config()
    root = config.root
    workspace = load_workspace(root)
    chosen = names or ((config.toolchain or workspace.section.default_toolchain),)
    fetched: list[dict[str, object]] = []
    for name in dict.fromkeys(chosen):
        toolchain = declared_toolchain(workspace, name)
        if not isinstance(toolchain, LocalToolchain):
            fetched.append({"toolchain": name, "folder": None, "files": []})
            if not config.json:
                emit(config, f"`{name}`: a program of yours, nothing to fetch")
            continue
        found = fetch_model(
            name,
            toolchain,
            cache_dir=config.cache_dir,
            workspace_root=root,
            environ=config.environ,
            report=lambda line: emit(config, line, err=True) if on_terminal() or not config.json else None,
        )
        fetched.append({"toolchain": name, "folder": str(found.folder), "files": sorted(found.files)})
        if not config.json:
            emit(config, f"`{name}`: {found.folder}")
    if config.json:
        emit_json("fetch", {"fetched": fetched})


def declared_toolchain(workspace: Workspace, name: str) -> ToolchainSection:
    """Return a toolchain by name; raise a usage error with the nearest."""
    if name not in workspace.toolchains:
        hint = suggest(name, workspace.toolchains, "the toolchains declared are")
        raise click.UsageError(f"toolchain `{name}` is not declared\n{hint}")
    return workspace.toolchains[name]
