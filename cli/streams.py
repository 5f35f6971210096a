"""Standard streams at the start and at the end of this process. Imports nothing that a null build does not need."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import NoReturn

from gsum.store.errors import ExitCode

PIPE_CLOSED = 141


def prepare_streams() -> None:
    """Open the streams that are closed; what a stream's encoding lacks is written as escapes."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def leave(code: int) -> NoReturn:
    """Exit with a code, or with that of a failure to write what was printed."""
    try:
        sys.stdout.flush()
    except OSError as error:
        code = PIPE_CLOSED if isinstance(error, BrokenPipeError) else code or int(ExitCode.ACTION_FAILED)
        silence()
    sys.exit(code)


def silence() -> None:
    """Keep the interpreter's last flush from complaining about the closed pipe."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_closed_streams() -> None:
    """Put the null device where a standard stream is closed: a file opened later, the store's say, would stand there
    and get what the programs that gsum starts write to their standard error.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
