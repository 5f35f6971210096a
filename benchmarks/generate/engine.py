"""The engine's own ways: workers as a build starts them, one or several, any number of requests at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from generate.ways import Turn, cpu_of

from gsum.engine.executors.client import LineExecutor
from gsum.engine.executors.local import LocalDialect
from gsum.engine.executors.pool import Member, PoolExecutor
from gsum.engine.executors.protocol import ExecRequest, Executor, Failed, Generated
from gsum.rules.config import LocalToolchain, NumericsSection
from gsum.rules.requests import Request
from gsum.store.digests import Key


class Unavailable(Exception):
    """The toolchain does not run on this machine; the message says why."""


class Place(msgspec.Struct, frozen=True):
    """Where a toolchain's workers find what they need."""

    toolchain_name: str
    toolchain: LocalToolchain
    numerics: NumericsSection
    cache_dir: Path
    root: Path

    def dialect(self, threads: int) -> LocalDialect:
        """Return the dialect of a worker with so many threads."""
        return LocalDialect(
            self.toolchain_name,
            self.toolchain,
            msgspec.structs.replace(self.numerics, threads=threads),
            cache_dir=self.cache_dir,
            workspace_root=self.root,
            environ=os.environ,
        )


class Engine:
    """One or several warm workers, and the requests they answer in each turn."""

    def __init__(
        self,
        place: Place,
        requests: Sequence[Request],
        *,
        width: int,
        threads: int = 1,
        workers: int = 1,
        said: str = "",
    ) -> None:
        shared = f"{workers} workers, " if workers > 1 else ""
        self.name = (
            f"gsum {place.toolchain_name}, {width} at a time{said}, {shared}{threads} thread{'s' * (threads > 1)}"
        )
        self._requests = list(requests)
        self._lines = [
            LineExecutor(place.dialect(threads), reproducible=True, network=False, capacity=2 * width, width=width)
            for _ in range(workers)
        ]
        members = [Member(line, lambda: True) for line in self._lines]
        self._executor: Executor = self._lines[0] if workers == 1 else PoolExecutor(members)
        self._turns = 0
        began = time.monotonic()
        for line in self._lines:
            self._answer(line, self._requests[:1])
        self.start = time.monotonic() - began

    def turn(self) -> Turn:
        """Answer all requests once; prefixes are warm, as they are in a build after its first request."""
        pids = [line.pid for line in self._lines if line.pid is not None]
        before, began = cpu_of(pids), time.monotonic()
        done = self._answer(self._executor, self._requests)
        wall, cpu = time.monotonic() - began, cpu_of(pids) - before
        return Turn(
            requests=len(done),
            prompt_tokens=sum(one.prompt_tokens for one in done),
            new_tokens=sum(one.forced + one.sampled for one in done),
            wall=wall,
            cpu=cpu,
            outputs=tuple(one.generation.token_ids for one in done),
            forced=sum(one.forced for one in done),
        )

    def close(self) -> None:
        """End the workers."""
        for line in self._lines:
            line.close()

    def _answer(self, executor: Executor, requests: Sequence[Request]) -> list[Generated]:
        self._turns += 1
        keys = [Key(f"turn {self._turns}, request {number}") for number in range(len(requests))]
        executor.submit([ExecRequest(key, one, 1800) for key, one in zip(keys, requests, strict=True)])
        done: dict[Key, Generated] = {}
        while len(done) < len(requests):
            for outcome in executor.wait(None):
                if isinstance(outcome, Failed):
                    self.close()
                    raise Unavailable(f"{outcome.message} ({'; '.join(outcome.facts.values())})")
                done[outcome.key] = outcome
        return [done[key] for key in keys]
