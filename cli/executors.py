"""The executors of one command: each made when its toolchain is first needed, all closed at the end. Prints nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from gsum.cli.config import Config
from gsum.engine.executors.make import make_executor
from gsum.engine.executors.protocol import Executor
from gsum.rules.config import LocalToolchain, Workspace


@contextlib.contextmanager
def executors(config: Config, workspace: Workspace) -> Iterator[Callable[[str], Executor]]:
    """Give executors by toolchain name, each made once and kept warm until the block ends."""
    made: dict[str, Executor] = {}

    def executor_for(name: str) -> Executor:
        if name not in made:
            toolchain = workspace.toolchains[name]
            numerics = workspace.numerics[toolchain.numerics] if isinstance(toolchain, LocalToolchain) else None
            made[name] = make_executor(
                toolchain,
                numerics,
                cache_dir=config.cache_dir,
                workspace_root=config.root,
                name=name,
                environ=config.environ,
            )
        return made[name]

    try:
        yield executor_for
    finally:
        for executor in made.values():
            executor.close()
