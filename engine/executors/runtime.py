"""The folder in which warm workers are found: their sockets, their logs, and the lock under which they come and go.

It is the user's own, closed to others, or it is refused. Knows no message. A socket is connected to, made and taken
away under the lock only: so no client meets a worker that is leaving, and two clients never start the same one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from gsum.store.errors import ExitCode, GsumError

SOCKET = ".sock"
LOG = ".log"
PID = ".pid"
LOG_BYTES = 64 * 1024
"""A worker's log is emptied when it is longer than this."""
_LOCK = "lock"
_LOCK_SECONDS = 30.0
_PATH_BYTES = 107
"""What fits into a socket's address, by Linux's `unix(7)`."""
_BACKLOG = 64
_LEFT_SECONDS = 3600.0
"""For so long the log of a dead worker stays, to be read."""
_PRIVATE = 0o077


class RuntimeRefused(GsumError):
    """The folder of the sockets is not fit for them."""

    exit_code = ExitCode.TOOLCHAIN


class Runtime:
    """The folder, held open until it is closed or nobody knows it any more."""

    _fd = -1

    def __init__(self, folder: Path) -> None:
        """Make the folder if it is not there, and verify whose it is.

        Raises:
            RuntimeRefused: if it can't be made, or others may write or look into it.
        """
        self.folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise _refused(folder, error.strerror or type(error).__name__) from None
        found = os.fstat(self._fd)
        why = None
        if found.st_uid != os.getuid():
            why = f"it belongs to user {found.st_uid}"
        elif stat.S_IMODE(found.st_mode) & _PRIVATE:
            why = f"others may use it: its mode is {stat.S_IMODE(found.st_mode):03o}"
        if why is not None:
            self.close()
            raise _refused(folder, why)

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock of the folder; it goes with its holder's process.

        Raises:
            TimeoutError: if another process holds it for longer than anything done under it takes.
        """
        fd = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=self._fd)
        try:
            until = time.monotonic() + _LOCK_SECONDS
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise TimeoutError("another process holds the lock of the workers' folder") from None
                    time.sleep(0.002)
            yield
        finally:
            os.close(fd)

    def names(self) -> list[str]:
        """Return the names of all workers that have a socket, sorted; some may be dead."""
        return sorted(name.removesuffix(SOCKET) for name in os.listdir(self._fd) if name.endswith(SOCKET))  # noqa: PTH208

    def connect(self, name: str) -> socket.socket | None:
        """Return a connection to a worker, non-blocking, or None where none listens. Under the lock."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(self._address(name + SOCKET))
            require_own(sock)
        except (FileNotFoundError, ConnectionRefusedError):
            sock.close()
            return None
        except BaseException:
            sock.close()
            raise
        sock.setblocking(False)
        return sock

    def listen(self, name: str) -> socket.socket:
        """Return a listening socket under a name, in place of what a dead worker has left there. Under the lock."""
        self.remove(name)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.bind(self._address(name + SOCKET))
            os.chmod(name + SOCKET, 0o600, dir_fd=self._fd)
            sock.listen(_BACKLOG)
        except BaseException:
            sock.close()
            raise
        return sock

    def remove(self, name: str, *kinds: str) -> None:
        """Take a worker's socket away with its process id, if they are there. Under the lock."""
        for kind in (SOCKET, PID, *kinds):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name + kind, dir_fd=self._fd)

    def sweep(self, name: str) -> None:
        """Take away what dead workers of other names left there long ago. Under the lock."""
        files = os.listdir(self._fd)  # noqa: PTH208
        for other in {file.removesuffix(kind) for file in files for kind in (SOCKET, LOG) if file.endswith(kind)}:
            with contextlib.suppress(OSError):
                left = [os.stat(other + kind, dir_fd=self._fd) for kind in (SOCKET, LOG) if other + kind in files]
                if other == name or max(one.st_mtime for one in left) > time.time() - _LEFT_SECONDS:
                    continue
                sock = self.connect(other)
                if sock is None:
                    self.remove(other, LOG)
                else:
                    sock.close()

    def note_pid(self, name: str, pid: int) -> None:
        """Keep the process id of a worker that was started, for when it does not answer. Under the lock."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(name + PID, flags, 0o600, dir_fd=self._fd)
        try:
            os.write(fd, str(pid).encode())
        finally:
            os.close(fd)

    def pid(self, name: str) -> int | None:
        """Return the process id of a worker that listens, if it was kept."""
        try:
            fd = os.open(name + PID, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=self._fd)
        except OSError:
            return None
        try:
            told = os.read(fd, 32)
        finally:
            os.close(fd)
        return int(told) if told.isdigit() else None

    def inode(self, name: str) -> int | None:
        """Return what tells a worker's socket from a later one of the same name."""
        try:
            return os.stat(name + SOCKET, dir_fd=self._fd, follow_symlinks=False).st_ino
        except FileNotFoundError:
            return None

    def log(self, name: str) -> int:
        """Open a worker's log, emptied, for a new worker to append to."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(name + LOG, flags, 0o600, dir_fd=self._fd)

    def log_tail(self, name: str, size: int) -> bytes:
        """Return the last bytes of a worker's log, nothing where there is none."""
        try:
            fd = os.open(name + LOG, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=self._fd)
        except OSError:
            return b""
        try:
            return os.pread(fd, size, max(0, os.fstat(fd).st_size - size))
        finally:
            os.close(fd)

    def _address(self, file: str) -> str:
        """Return a socket's address; a long path is written by way of the open folder, where the system has that."""
        path = str(self.folder / file)
        if len(os.fsencode(path)) <= _PATH_BYTES:
            return path
        short = f"/proc/self/fd/{self._fd}"
        if not Path(short).exists():
            raise _refused(self.folder, f"its path is longer than the {_PATH_BYTES} bytes of a socket's address")
        return f"{short}/{file}"


def require_own(sock: socket.socket) -> None:
    """Raise PermissionError if the process at the other end is another user's, where the system tells."""
    if not hasattr(socket, "SO_PEERCRED"):
        return
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    if uid != os.getuid():
        raise PermissionError(f"the other end of the socket is a process of user {uid}")


def _refused(folder: Path, why: str) -> RuntimeRefused:
    return RuntimeRefused(
        "the folder of the workers' sockets can't be used",
        facts={"folder": folder, "why": why},
        hint="chmod 700 it if it is yours, or name another one: GSUM_RUNTIME_DIR=DIR gsum …",
    )
