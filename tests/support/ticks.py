"""Time as the stat index sees it: ticks that pass, files that age, builds after which all is trusted."""

from __future__ import annotations

import os
import time
from pathlib import Path

from support.engine import run_build

from gsum.engine.index import fingerprints


def age(root: Path) -> None:
    """Let the clock move on, so that what was written before can be trusted; what tests can't wait for."""
    late = 2 * fingerprints.TICK_NS
    for file in [root, *root.rglob("*")]:
        status = file.stat()
        os.utime(file, ns=(status.st_atime_ns - late, status.st_mtime_ns - late))


def wait_a_tick() -> None:
    """Wait until what was written before now can be trusted."""
    time.sleep(3 * fingerprints.TICK_NS / 1e9)


def settle(root, store, index, *patterns) -> None:
    """Build until all that was looked at is older than a tick."""
    for _ in range(2):
        run_build(root, store, *patterns, index=index)
        wait_a_tick()
    run_build(root, store, *patterns, index=index)
