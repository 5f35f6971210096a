"""Ctrl-C and SIGTERM while a build runs: the first stops it cleanly, the second at once. Knows no build.

The handler runs between two steps of the main thread; the second time it raises there, so transactions roll back.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopNow(KeyboardInterrupt):
    """A second signal came: unwind, close what is open, wait for nothing."""


class Interrupts:
    """A block in which signals ask to stop. `say` is called once, at the first one."""

    def __init__(self, say: Callable[[], None]) -> None:
        self._say = say
        self._before: dict[signal.Signals, object] = {}
        self._asked = False

    def asked(self) -> bool:
        """Whether a signal came."""
        return self._asked

    def __enter__(self) -> Interrupts:
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of handlers
        if self._asked:
            raise StopNow
        self._asked = True
        self._say()
