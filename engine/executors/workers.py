"""Asks warm workers how they are, and ends them. Starts none."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import time
from pathlib import Path

import msgspec

from gsum.engine.executors.channel import Lines, OversizedLine
from gsum.engine.executors.runtime import Runtime, RuntimeRefused
from gsum.engine.llm.wire import FROM_WORKER, Probe, Status, Stop

ANSWER_SECONDS = 2.0
_CHUNK = 1 << 16


class Seen(msgspec.Struct, frozen=True):
    """A worker that listens; `status` is null where it does not answer in time, `pid` where nobody has noted it."""

    name: str
    status: Status | None
    pid: int | None


class Ended(msgspec.Struct, frozen=True):
    """A worker that was told to end, and whether it did in time."""

    worker: Seen
    ended: bool


def look(folder: Path) -> list[Seen]:
    """Return the workers of a folder, by name; nothing is made or started.

    Raises:
        RuntimeRefused: if the folder is not the user's own.
    """
    if not folder.is_dir():
        return []
    found = []
    with Runtime(folder) as runtime:
        for name in runtime.names():
            sock = _connect(runtime, name)
            if sock is not None:
                with sock:
                    status = _ask(sock, Probe(), ANSWER_SECONDS)
                    found.append(Seen(name, status, runtime.pid(name) if status is None else status.pid))
    return found


def held_memory(folder: Path, toolchain: str) -> int:
    """Return the bytes that the warm workers of a toolchain, by its name, have resident, as far as they tell."""
    try:
        found = look(folder)
    except RuntimeRefused:
        return 0
    statuses = (one.status for one in found if one.status is not None and one.status.toolchain == toolchain)
    return sum(status.memory or 0 for status in statuses)


def stop(folder: Path, workers: list[Seen], *, now: bool, seconds: float) -> list[Ended]:
    """Tell workers to take no new client, and wait until each has ended, `seconds` in all.

    With `now` they end at once, and what is in flight fails.
    """
    until = time.monotonic() + seconds
    told: list[tuple[Seen, socket.socket | None]] = []
    with Runtime(folder) as runtime, contextlib.ExitStack() as stack:
        for worker in workers:
            sock = _connect(runtime, worker.name)
            if sock is not None:
                stack.enter_context(sock)
                _send(sock, Stop(now))
            told.append((worker, sock))
        ended = [Ended(worker, sock is None or _closed(sock, until)) for worker, sock in told]
    if now:
        ended = [Ended(one.worker, one.ended or _killed(one.worker)) for one in ended]
    return ended


def _connect(runtime: Runtime, name: str) -> socket.socket | None:
    try:
        with runtime.lock():
            return runtime.connect(name)
    except OSError:
        return None


def _ask(sock: socket.socket, message: Probe, seconds: float) -> Status | None:
    _send(sock, message)
    incoming, until = Lines(), time.monotonic() + seconds
    while (data := _received(sock, until)) is not None:
        incoming.take(data)
        try:
            for line in incoming.complete():
                answer = FROM_WORKER.decode(line)
                return answer if isinstance(answer, Status) else None
        except (OversizedLine, msgspec.DecodeError):
            return None
        if not data:
            return None
    return None


def _closed(sock: socket.socket, until: float) -> bool:
    """Whether the worker has gone before a point in time; what it says until then is of no interest."""
    while (data := _received(sock, until)) is not None:
        if not data:
            return True
    return False


def _received(sock: socket.socket, until: float) -> bytes | None:
    """Return what arrives, nothing at the end; null when time is over."""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        if not selector.select(max(0.0, until - time.monotonic())):
            return None
    try:
        return sock.recv(_CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _send(sock: socket.socket, message: Probe | Stop) -> None:
    with contextlib.suppress(OSError):
        sock.send(msgspec.json.encode(message) + b"\n")


def _killed(worker: Seen) -> bool:
    """End a worker that does not end by itself, by its process id, if that is known and still its own."""
    if worker.pid is None or not _is(worker.pid, worker.name):
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(worker.pid, signal.SIGKILL)
        return True
    return False


def _is(pid: int, name: str) -> bool:
    """Whether a process was started as the worker of a name, as far as the system tells."""
    try:
        return name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return not Path("/proc/self/cmdline").exists()
