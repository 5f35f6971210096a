"""The embedded model of the repository's own BUILD.toml, for tests marked `model`."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
import pytest

from gsum.engine.executors.client import LineExecutor
from gsum.engine.executors.make import make_executor
from gsum.engine.llm.sources import ModelMissing, locate_model
from gsum.rules.config import LocalToolchain, Workspace
from gsum.rules.loader import load_workspace

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("GSUM_CACHE") or platformdirs.user_cache_path("gsum"))


def workspace() -> Workspace:
    return load_workspace(ROOT)


def toolchain(name: str = "smollm2") -> LocalToolchain:
    declared = workspace().toolchains[name]
    assert isinstance(declared, LocalToolchain)
    return declared


def require_model() -> Path:
    """Return the folder of the embedded model's files; without them CI fails and a developer's run skips."""
    try:
        found = locate_model("smollm2", toolchain(), cache_dir=CACHE, workspace_root=ROOT, environ=os.environ)
    except ModelMissing as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"{error.message}: {error.hint}")
    return found.folder


def executor(*, alone: bool = False) -> LineExecutor:
    """Return an executor of the declared toolchain; with `alone`, one that reads no kept prefix."""
    declared = toolchain()
    made = make_executor(
        declared,
        workspace().numerics[declared.numerics],
        cache_dir=CACHE,
        workspace_root=ROOT,
        name="smollm2",
        environ=os.environ,
        alone=alone,
    )
    assert isinstance(made, LineExecutor)
    return made
