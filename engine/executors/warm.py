"""A worker that outlives its client: found by its socket, or started there. Knows no message.

The starter makes the socket and hands it over listening, so a client may connect before the worker has come up, and
whoever comes second finds what the first one has started.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import time
from collections.abc import Mapping, Sequence

from gsum.engine.executors.channel import Lines
from gsum.engine.executors.process import STDERR_LINES, how_it_ended, printable
from gsum.engine.executors.runtime import Runtime

_CHUNK = 1 << 20
_LINGER_SECONDS = 10.0
_TAIL_BYTES = 8192
_CLOSED = "it closed the connection"


class WarmChannel:
    """A connection to a worker. `pid` is the caller's to fill in where the worker was found and has said it."""

    def __init__(self, sock: socket.socket, runtime: Runtime, name: str, *, child: int | None) -> None:
        """`child`: the process id of a worker that this process has just started."""
        self.pid = child
        self.ended = False
        self.found = child is None
        self._child = child
        self._sock = sock
        self._runtime = runtime
        self._name = name
        self._incoming = Lines()
        self._outgoing = bytearray()
        self._selector = selectors.DefaultSelector()
        self._selector.register(sock, selectors.EVENT_READ)

    def fileno(self) -> int:
        """Return what turns readable when `poll` has something to do."""
        return self._selector.fileno()

    def send(self, line: bytes) -> None:
        """Queue one line, without its newline."""
        self._outgoing += line + b"\n"
        self._write()

    def poll(self, timeout: float | None) -> list[bytes]:
        """Move bytes both ways and return the complete lines that arrived, waiting for at least one event."""
        if not self.ended:
            for _, events in self._selector.select(timeout):
                if events & selectors.EVENT_WRITE:
                    self._write()
                if events & selectors.EVENT_READ:
                    self._read()
        return self._incoming.complete()

    def leave(self) -> None:
        """Close the connection: the worker drops what was asked, and lives on for others."""
        self._release()
        if self._child is not None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._child, os.WNOHANG)

    def kill(self) -> None:
        """End the worker for everybody: it hangs, or says what it must not."""
        if not self.ended and self.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)
        self.leave()

    def finish(self, seconds: float) -> None:  # noqa: ARG002 - it stays for the next build
        """Say that no more will be asked."""
        self.leave()

    def end(self) -> str:
        """Clean up after a worker that went away, and say how it ended, which only the one that started it can tell."""
        self._release()
        return _CLOSED if self._child is None else _ended(self._child)

    def stderr_tail(self) -> str:
        """Return the last lines of the worker's log."""
        lines = self._runtime.log_tail(self._name, _TAIL_BYTES).split(b"\n")
        return "\n".join([text for line in lines for text in printable(line)][-STDERR_LINES:])

    def _release(self) -> None:
        self.ended = True
        self._selector.close()
        self._sock.close()

    def _read(self) -> None:
        try:
            data = self._sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._incoming.take(data)
        self.ended = not data

    def _write(self) -> None:
        try:
            while self._outgoing:
                del self._outgoing[: self._sock.send(self._outgoing[:_CHUNK])]
        except BlockingIOError:
            pass
        except OSError:  # it has gone: its end is seen by reading
            self._outgoing.clear()
        with contextlib.suppress(ValueError, KeyError):
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outgoing else 0)
            self._selector.modify(self._sock, events)


def find_or_start(runtime: Runtime, name: str, argv: Sequence[str], env: Mapping[str, str]) -> WarmChannel:
    """Return a connection to the worker of a name, started unless it listens already.

    Raises:
        OSError: if it can't be started, or the lock is not to be had.
    """
    with runtime.lock():
        sock = runtime.connect(name)
        if sock is not None:
            return WarmChannel(sock, runtime, name, child=None)
        listener = runtime.listen(name)
        try:
            runtime.sweep(name)
            child = _spawn(argv, env, listener, runtime.log(name))
            runtime.note_pid(name, child)
            sock = runtime.connect(name)
        except BaseException:
            runtime.remove(name)
            raise
        finally:
            listener.close()
    if sock is None:
        raise ConnectionError("the worker's socket does not listen")
    return WarmChannel(sock, runtime, name, child=child)


def _spawn(argv: Sequence[str], env: Mapping[str, str], listener: socket.socket, log: int) -> int:
    """Start a process in a session of its own, its standard input the listening socket, the rest its log."""
    try:
        wanted = [(listener.fileno(), 0), (log, 1), (log, 2)]
        actions = [(os.POSIX_SPAWN_DUP2, source, target) for source, target in wanted]
        return os.posix_spawn(argv[0], list(argv), dict(env), file_actions=actions, setsid=True)
    finally:
        os.close(log)


def _ended(child: int) -> str:
    until = time.monotonic() + _LINGER_SECONDS
    while time.monotonic() < until:
        try:
            pid, status = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:
            return _CLOSED
        if pid:
            return how_it_ended(os.waitstatus_to_exitcode(status))
        time.sleep(0.01)
    return f"{_CLOSED} and lingered"
