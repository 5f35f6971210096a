"""What an executor needs of a program that talks in lines, be it a child or a process found running. Pure.

`process.py` and `warm.py` are the two kinds. Driven by one thread; no call blocks longer than it is told.
"""

from __future__ import annotations

from typing import Protocol

MAX_LINE_BYTES = 64 * 1024 * 1024


class OversizedLine(Exception):
    """A line is longer than `MAX_LINE_BYTES`."""


class Channel(Protocol):
    """A running program. `ended` turns true once its output is over or it has died."""

    ended: bool

    @property
    def pid(self) -> int | None:
        """Its process id, once it is known."""

    def fileno(self) -> int:
        """Return what turns readable when `poll` has something to do."""

    def send(self, line: bytes) -> None:
        """Queue one line, without its newline."""

    def poll(self, timeout: float | None) -> list[bytes]:
        """Move bytes both ways and return the complete lines that arrived, waiting for at least one event.

        Raises:
            OversizedLine: if a line is longer than `MAX_LINE_BYTES`.
        """

    def leave(self) -> None:
        """Want nothing more of it, now; it lives on if others may want it."""

    def kill(self) -> None:
        """End it, whoever else uses it: it hangs, or says what it must not."""

    def finish(self, seconds: float) -> None:
        """Say that no more will be asked; one that nobody else may want has `seconds` to end."""

    def end(self) -> str:
        """Clean up after a program that ended by itself, and say how it ended."""

    def stderr_tail(self) -> str:
        """Return the last lines it wrote to its standard error."""


class Lines:
    """Bytes as they arrive, cut into lines."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._scanned = 0

    def take(self, data: bytes) -> None:
        """Add what arrived."""
        self._bytes += data

    def complete(self) -> list[bytes]:
        """Return the lines that are complete, without their newlines, and forget them.

        Raises:
            OversizedLine: if one is longer than `MAX_LINE_BYTES`, or the rest is.
        """
        cut = self._bytes.rfind(b"\n", self._scanned)
        self._scanned = len(self._bytes)
        lines: list[bytes] = []
        if cut >= 0:
            lines = bytes(self._bytes[:cut]).split(b"\n")
            del self._bytes[: cut + 1]
            self._scanned = len(self._bytes)
        if len(self._bytes) > MAX_LINE_BYTES or any(len(line) > MAX_LINE_BYTES for line in lines):
            raise OversizedLine
        return lines
