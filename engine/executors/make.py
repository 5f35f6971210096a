"""Makes the executor that a toolchain declares. Starts nothing, imports no model library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gsum.engine.executors.command import command_executor
from gsum.engine.executors.local import local_executor
from gsum.engine.executors.protocol import Executor
from gsum.rules.config import CommandToolchain, NumericsSection, ToolchainSection


def make_executor(
    toolchain: ToolchainSection,
    numerics: NumericsSection | None,
    *,
    cache_dir: Path,
    workspace_root: Path,
    name: str = "NAME",
    environ: Mapping[str, str] | None = None,
) -> Executor:
    """Return the executor of a toolchain; `name` is what hints call it.

    `numerics` is the profile a local toolchain names. `environ` is where the local worker's few variables are
    taken from (`HOME`, `HF_HOME`, `CUDA_VISIBLE_DEVICES`, …); a command inherits the process environment.
    """
    if isinstance(toolchain, CommandToolchain):
        return command_executor(toolchain, workspace_root)
    if numerics is None:
        raise ValueError("a local toolchain needs its numerics profile")
    return local_executor(
        name, toolchain, numerics, cache_dir=cache_dir, workspace_root=workspace_root, environ=environ or {}
    )
