"""One child process that talks in lines: its pipes, its stderr, its death. Knows nothing of requests.

It runs in a session of its own, so Ctrl-C at the terminal does not reach it, and is killed with its whole
process group. Never through a shell. Driven by one thread; no call blocks longer than it is told.
"""

from __future__ import annotations

import contextlib
import enum
import fcntl
import os
import selectors
import signal
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from gsum.engine.executors.channel import Lines

STDERR_LINES = 20
_STDERR_WIDTH = 400
_CHUNK = 1 << 20
_PIPE_BYTES = 1 << 19
_LINGER_SECONDS = 10.0
_LAST_READS = 256  # what a dead program left in its pipe is less; a descendant that goes on writing is cut off


class _End(enum.Enum):
    """Why a read gave nothing."""

    EMPTY = "empty"
    CLOSED = "closed"


class ChildProcess:
    """A started program with non-blocking pipes. `ended` turns true once its output is over or it has died."""

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str] | None, cwd: Path) -> None:
        """Start the program; `env` None inherits ours. Raises OSError when it can't be started."""
        self._popen = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if env is None else dict(env),
            cwd=cwd,
            start_new_session=True,
            bufsize=0,
        )
        self._stdin, self._stdout, self._stderr = _pipes(self._popen)
        self._outgoing = bytearray()
        self._writing = False
        self._incoming = Lines()
        self._stderr_rest = b""
        self._stderr_tail: deque[str] = deque(maxlen=STDERR_LINES)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._selector.register(self._stderr, selectors.EVENT_READ)
        # A descendant may hold the pipes open after the program has died: its pidfd tells. Where there is none
        # (not Linux), the end of its output does.
        self._pidfd = os.pidfd_open(self._popen.pid) if hasattr(os, "pidfd_open") else None
        if self._pidfd is not None:
            self._selector.register(self._pidfd, selectors.EVENT_READ)
        self.ended = False
        self._released = False

    @property
    def pid(self) -> int:
        """The program's process id, which is also its group's."""
        return self._popen.pid

    def send(self, line: bytes) -> None:
        """Queue one line (without its newline) for the program's standard input."""
        self._outgoing += line
        self._outgoing += b"\n"
        self._write()

    def poll(self, timeout: float | None) -> list[bytes]:
        """Move bytes both ways and return the complete lines that arrived, waiting for at least one event.

        Raises:
            OversizedLine: if a line is longer than `MAX_LINE_BYTES`.
        """
        if not self.ended:
            for key, _ in self._selector.select(timeout):
                self._serve(key.fileobj)
        return self._incoming.complete()

    def kill(self) -> None:
        """Kill the program with all of its process group, and reap it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
        self._release()

    def leave(self) -> None:
        """Want nothing more of the program, now: nobody else does."""
        self.kill()

    def fileno(self) -> int:
        """Return what turns readable when `poll` has something to do."""
        return self._selector.fileno()

    def finish(self, seconds: float) -> None:
        """Close its input, give it `seconds` to end by itself, then kill what is left of its group."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        if not self._released:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(seconds)
        self.kill()

    def how_it_ended(self) -> str:
        """Say how the program ended, for an error's facts. Call after `kill` or `finish`."""
        code = self._popen.returncode
        return "running" if code is None else how_it_ended(code)

    def end(self) -> str:
        """Reap a program that ended by itself, kill what is left of its group, and say how it ended."""
        # The pipes close before the process is gone; what we report is its own end, not our kill.
        try:
            self._popen.wait(_LINGER_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return "it closed its output and lingered"
        self.kill()
        return self.how_it_ended()

    def stderr_tail(self) -> str:
        """Return the last lines the program wrote to its standard error."""
        return "\n".join([*self._stderr_tail, *printable(self._stderr_rest)][-STDERR_LINES:])

    def _serve(self, source: object) -> None:
        if source is self._stdin:
            self._write()
        elif source is self._stderr:
            self._read_stderr()
        elif source is self._stdout:
            self.ended = self._read_stdout() is _End.CLOSED
        else:  # the pidfd: take what is still in the pipes, then it is over
            self._read_stderr()
            for _ in range(_LAST_READS):
                if self._read_stdout() is not None:
                    break
            self.ended = True

    def _read_stdout(self) -> _End | None:
        """Read once; None when there may be more."""
        try:
            data = os.read(self._stdout.fileno(), _CHUNK)
        except BlockingIOError:
            return _End.EMPTY
        except OSError:
            return _End.CLOSED
        self._incoming.take(data)
        return None if data else _End.CLOSED

    def _read_stderr(self) -> None:
        try:
            data = os.read(self._stderr.fileno(), _CHUNK)
        except (OSError, ValueError):
            return
        if not data:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(self._stderr)
        else:
            *whole, rest = (self._stderr_rest + data).split(b"\n")
            self._stderr_rest = rest[-_STDERR_WIDTH:]
            for line in whole[-STDERR_LINES:]:
                self._stderr_tail.extend(printable(line))

    def _write(self) -> None:
        try:
            while self._outgoing:
                del self._outgoing[: os.write(self._stdin.fileno(), self._outgoing[:_CHUNK])]
        except BlockingIOError:
            pass
        except (OSError, ValueError):  # it closed its input: its end is reported by its output
            self._outgoing.clear()
        if self._outgoing and not self._writing:
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
        elif not self._outgoing and self._writing:
            self._selector.unregister(self._stdin)
        self._writing = bool(self._outgoing)

    def _release(self) -> None:
        if self._released:
            return
        self._released = True
        self.ended = True
        self._read_stderr()
        self._selector.close()
        for pipe in (self._stdin, self._stdout, self._stderr):
            with contextlib.suppress(OSError):
                pipe.close()
        if self._pidfd is not None:
            os.close(self._pidfd)


def _pipes(popen: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    if popen.stdin is None or popen.stdout is None or popen.stderr is None:
        raise ValueError("a child process needs three pipes")
    for pipe in (popen.stdin, popen.stdout, popen.stderr):
        os.set_blocking(pipe.fileno(), False)
    if hasattr(fcntl, "F_SETPIPE_SZ"):  # Linux: so that a quick program works on while its answers wait
        for pipe in (popen.stdin, popen.stdout):
            with contextlib.suppress(OSError):  # the system's bound for all pipes of a user is reached
                fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return popen.stdin, popen.stdout, popen.stderr


def how_it_ended(code: int) -> str:
    """Say how a program ended: `code` is its exit code, or the negative of the signal that ended it."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"


def printable(line: bytes) -> list[str]:
    """Return a line fit for an error's facts, as a list of one, or of none if it is empty."""
    text = line.decode("utf-8", "replace").rstrip()[:_STDERR_WIDTH]
    return ["".join(c if c.isprintable() else "?" for c in text)] if text else []
