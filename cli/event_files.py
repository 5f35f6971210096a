"""What a build says, as files: its events as JSON lines, and its course as a Chrome trace.

The lines are those of `gsum.engine.events`, each with `at`, the seconds since the build began; the first one,
BuildStarted, carries the schema's version. The trace opens in Perfetto and chrome://tracing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from gsum.engine.clock import Clock
from gsum.engine.events import ActionFailed, ActionFinished, ActionStarted, BuildFinished, Event, kept_event
from gsum.store.errors import ExitCode, GsumError

_MICROSECONDS = 1_000_000


class EventFileError(GsumError):
    """A file asked for by `--events` or `--profile` can't be written."""

    exit_code = ExitCode.USAGE


class EventLines:
    """Writes each event as one line of JSON, as it comes."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock, self._began = clock, clock.monotonic()
        self._path = path
        try:
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise _unwritable(path, error) from None

    def event(self, event: Event) -> None:
        """Write an event."""
        line = msgspec.to_builtins(kept_event(event)) | {"at": round(self._clock.monotonic() - self._began, 6)}
        try:
            self._file.write(msgspec.json.encode(line) + b"\n")
        except OSError as error:
            raise _unwritable(self._path, error) from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Trace:
    """Keeps when each request was sent and came back, and writes the trace at the end.

    A generation is drawn from the moment its request was sent: what it waited behind others shows.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock, self._began = path, clock, clock.monotonic()
        self._sent: dict[str, float] = {}
        self._rows: list[dict[str, Any]] = []
        self._lanes: list[float] = []

    def event(self, event: Event) -> None:
        """Take note of an event."""
        now = self._clock.monotonic() - self._began
        match event:
            case ActionStarted():
                self._sent[event.label] = now
            case ActionFinished():
                facts = {"how": event.how, "status": event.status, "new_tokens": event.new_tokens, "key": event.key}
                self._row(event.label, now, facts)
            case ActionFailed():
                self._row(event.label, now, {"failed": event.reason, "key": event.key})
            case BuildFinished():
                self._rows.append(_complete(f"build {event.invocation}", 0.0, now, 0, {"status": event.status}))
            case _:
                pass

    def close(self) -> None:
        """Write the trace."""
        try:
            self._path.write_bytes(msgspec.json.encode({"displayTimeUnit": "ms", "traceEvents": self._rows}))
        except OSError as error:
            raise _unwritable(self._path, error) from None

    def _row(self, label: str, now: float, facts: dict[str, Any]) -> None:
        start = self._sent.pop(label, now)
        lane = next((place for place, free in enumerate(self._lanes) if free <= start), len(self._lanes))
        self._lanes[lane : lane + 1] = [now]
        self._rows.append(_complete(label, start, now, lane + 1, facts))


def _complete(name: str, start: float, end: float, lane: int, facts: dict[str, Any]) -> dict[str, Any]:
    """Return a complete event of the trace event format: times in microseconds."""
    return {
        "name": name,
        "ph": "X",
        "ts": round(start * _MICROSECONDS),
        "dur": round((end - start) * _MICROSECONDS),
        "pid": 1,
        "tid": lane,
        "args": facts,
    }


def _unwritable(path: Path, error: OSError) -> EventFileError:
    return EventFileError(f"`{path}` can't be written", facts={"why": error.strerror})
