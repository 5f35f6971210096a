"""The executors of one command: each made when its toolchain is first needed, all closed at the end. Prints nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from gsum.cli.config import Config
from gsum.engine.events import Event, WorkerReady, WorkerStarted
from gsum.engine.executors.make import make_executor, places_for
from gsum.engine.executors.protocol import Executor, WorkerNotice
from gsum.engine.executors.staying import Warm
from gsum.engine.executors.workers import held_memory
from gsum.rules.config import LocalToolchain, Workspace


@contextlib.contextmanager
def executors(
    config: Config,
    workspace: Workspace,
    *,
    jobs: int | None = None,
    workers: int | None = None,
    alone: bool = False,
    emit: Callable[[Event], None] = lambda _: None,
) -> Iterator[Callable[[str], Executor]]:
    """Give executors by toolchain name, each made once and kept until the block ends; workers may outlive it.

    `jobs` bounds the requests in flight, `workers` the processes of a local toolchain: with one, what is asked together
    may share a pass. `alone`: they are this command's own, and use nothing that others computed.
    `emit` is told of workers that start, or are found warm.
    """
    made: dict[str, Executor] = {}
    warm = Warm(config.runtime_dir, workspace.section.worker_idle_seconds, lambda notice: emit(_event(notice)))

    def executor_for(name: str) -> Executor:
        if name not in made:
            made[name] = _executor(config, workspace, name, warm, (jobs, workers), alone)
        return made[name]

    try:
        yield executor_for
    finally:
        for executor in made.values():
            executor.close()


def _executor(
    config: Config, workspace: Workspace, name: str, warm: Warm, bounds: tuple[int | None, int | None], alone: bool
) -> Executor:
    jobs, workers = bounds
    toolchain, cache, root, environ = workspace.toolchains[name], config.cache_dir, config.root, config.environ
    if not isinstance(toolchain, LocalToolchain):
        return make_executor(toolchain, None, cache_dir=cache, workspace_root=root, name=name, environ=environ)
    numerics = workspace.numerics[toolchain.numerics]
    places = places_for(
        name,
        toolchain,
        numerics,
        cache_dir=cache,
        workspace_root=root,
        environ=environ,
        jobs=jobs,
        held=lambda: 0 if alone or not warm.idle_seconds else held_memory(warm.folder, name),
    )
    return make_executor(
        toolchain,
        numerics,
        cache_dir=cache,
        workspace_root=root,
        name=name,
        environ=environ,
        warm=warm,
        places=places[:workers],
        jobs=jobs,
        alone=alone,
    )


def _event(notice: WorkerNotice) -> Event:
    if notice.seconds is None:
        return WorkerStarted(notice.toolchain, notice.worker, notice.warm)
    return WorkerReady(notice.toolchain, notice.worker, notice.warm, round(notice.seconds, 3))
