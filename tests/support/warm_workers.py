"""Warm workers of tests: a folder of sockets of their own, and none left when a test has ended.

No test may use the user's folder of sockets: give `make_executor` a `Warm` of a temporary folder, or a command the
variable GSUM_RUNTIME_DIR, and end what was started by `ended`. Workers without `Warm` end with their executor.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from gsum.engine.executors.workers import Seen, look, stop


@contextlib.contextmanager
def ended(folder: Path) -> Iterator[Path]:
    """Give a folder for sockets; end every worker that was started there, and see that it has gone."""
    try:
        yield folder
    finally:
        found = look(folder)
        stop(folder, found, now=True, seconds=10)
        for worker in found:
            assert worker.status is None or gone(worker.status.pid), f"worker {worker} is left"
        assert look(folder) == []


def only(folder: Path) -> Seen:
    """Return the one worker of a folder."""
    [worker] = look(folder)
    assert worker.status is not None
    return worker


def gone(pid: int, seconds: float = 10.0) -> bool:
    """Whether a process ends within some seconds; one that nobody has reaped counts as gone."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False
