"""Where the engine's times come from, so that tests can set them. Pure."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Clock(msgspec.Struct, frozen=True):
    """Where times come from: `now` in ISO 8601 UTC, `monotonic` in seconds."""

    now: Callable[[], str]
    monotonic: Callable[[], float]
