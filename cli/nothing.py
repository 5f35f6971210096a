"""The null build: found by the index alone, recorded as every build is."""

from __future__ import annotations

from gsum.cli.asked import Asked, index_folder
from gsum.cli.config import Config
from gsum.engine.clock import Clock
from gsum.engine.index.quick import NothingToDo, candidate, nearest_root, nothing_to_do
from gsum.engine.null import record_null_build
from gsum.engine.report import BuildOptions, BuildReport
from gsum.store.errors import StoreError
from gsum.store.local import open_store


def null_build(config: Config, asked: Asked, clock: Clock) -> tuple[BuildReport, tuple[str, ...]] | None:
    """Record a build that has nothing to do, and return its report and the one label asked for; None: look properly.

    A store that can't be opened or written is the proper look's to report.
    """
    started = clock.monotonic()
    root = nearest_root(config.cwd if config.workspace is None else config.cwd / config.workspace)
    found = None if root is None else candidate(root, index_folder(config, root), config.principal)
    if root is None or found is None:
        return None
    try:
        with open_store(config.store_folder(root), create=False) as store:
            done = nothing_to_do(found, asked.patterns, config.toolchain, store)
            if done is None:
                return None
            return record_null_build(store, done.standing, _options(asked, done), clock, started), done.alone
    except StoreError:
        return None


def _options(asked: Asked, done: NothingToDo) -> BuildOptions:
    return BuildOptions(asked.patterns, done.principal, done.toolchain, asked.keep_going, asked.full)
