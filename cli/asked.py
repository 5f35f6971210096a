"""What `gsum build` was asked, and what both of its ways need: the clock, the place of the index."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from gsum.cli.config import Config
from gsum.cli.light import INDEX_FOLDER, utc_now
from gsum.engine.clock import Clock


class Asked(msgspec.Struct, frozen=True):
    """The arguments of one build."""

    patterns: tuple[str, ...]
    keep_going: bool
    full: bool
    events: Path | None = None
    profile: Path | None = None
    draft: bool = False
    fail_fast: bool = False
    jobs: int | None = None

    @property
    def watched(self) -> bool:
        """Whether somebody wants every event of it."""
        return self.events is not None or self.profile is not None


def index_folder(config: Config, root: Path) -> Path:
    """Return the folder of the stat index: in the store."""
    return config.store_folder(root) / INDEX_FOLDER


def system_clock() -> Clock:
    """Return the clock of this machine."""
    return Clock(utc_now, time.monotonic)
