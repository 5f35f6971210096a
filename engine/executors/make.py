"""Makes the executor that a toolchain declares. Starts nothing, imports no model library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gsum.engine.executors.client import LineExecutor
from gsum.engine.executors.command import command_executor
from gsum.engine.executors.local import LocalDialect
from gsum.engine.executors.pool import Member, PoolExecutor
from gsum.engine.executors.protocol import Executor
from gsum.engine.executors.slots import Slot, slots
from gsum.engine.executors.staying import Warm, WarmDialect
from gsum.engine.llm.schemes import SCHEMES, SINGLE
from gsum.engine.llm.sources import ToolchainError, locate_model
from gsum.rules.config import CommandToolchain, LocalToolchain, NumericsSection, ToolchainSection


def make_executor(
    toolchain: ToolchainSection,
    numerics: NumericsSection | None,
    *,
    cache_dir: Path,
    workspace_root: Path,
    name: str = "NAME",
    environ: Mapping[str, str] | None = None,
    warm: Warm | None = None,
    places: Sequence[Slot] = (Slot(0),),
    jobs: int | None = None,
    alone: bool = False,
) -> Executor:
    """Return the executor of a toolchain; `name` is what hints call it. Nothing is started before a request.

    `numerics` is the profile a local toolchain names. `environ` is where the local worker's few variables are
    taken from (`HOME`, `HF_HOME`, `CUDA_VISIBLE_DEVICES`, …); a command inherits the process environment.
    A local toolchain has a worker for each of `places`, as far as there is enough to do; without `warm` they end with
    the executor. `jobs` bounds the requests in flight. With `alone` its workers are its own, and use
    nothing that earlier ones computed.
    """
    if isinstance(toolchain, CommandToolchain):
        return command_executor(toolchain, workspace_root)
    if numerics is None:
        raise ValueError("a local toolchain needs its numerics profile")
    width = SCHEMES.get(numerics.batching, SINGLE).width
    members = []
    for place in places:
        told = {**(environ or {}), **place.environ}
        where = (cache_dir, workspace_root)
        dialect = _dialect(name, toolchain, numerics, told, place, None if alone else warm, where, alone)
        executor = LineExecutor(dialect, reproducible=True, network=False, capacity=2 * width, width=width)
        members.append(Member(executor, dialect.is_there))
    if len(members) == 1 and jobs is None:
        return members[0].executor
    return PoolExecutor(members, jobs=jobs)


def places_for(
    name: str,
    toolchain: LocalToolchain,
    numerics: NumericsSection,
    *,
    cache_dir: Path,
    workspace_root: Path,
    environ: Mapping[str, str],
    jobs: int | None = None,
    held: Callable[[], int] = lambda: 0,
) -> list[Slot]:
    """Return the places that this machine has for a toolchain's workers, one if its model is not there.

    `held` returns the bytes of memory that its warm workers have already; it is asked only where memory is scarce.
    """
    try:
        found = locate_model(name, toolchain, cache_dir=cache_dir, workspace_root=workspace_root, environ=environ)
        weights = sum(path.stat().st_size for path in found.files.values())
    except (ToolchainError, OSError):
        return [Slot(0)]
    return slots(toolchain, numerics, environ=environ, weights=weights, jobs=jobs, held=held)


def _dialect(
    name: str,
    toolchain: LocalToolchain,
    numerics: NumericsSection,
    environ: Mapping[str, str],
    place: Slot,
    warm: Warm | None,
    where: tuple[Path, Path],
    alone: bool,
) -> LocalDialect:
    cache, root = where
    if warm is None or warm.idle_seconds == 0:
        return LocalDialect(
            name,
            toolchain,
            numerics,
            cache_dir=cache,
            workspace_root=root,
            environ=environ,
            keep_prefixes=not alone,
        )
    return WarmDialect(
        name,
        toolchain,
        numerics,
        cache_dir=cache,
        workspace_root=root,
        environ=environ,
        warm=warm,
        slot=place,
    )
