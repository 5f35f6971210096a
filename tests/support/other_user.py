"""Runs a function as a user without rights, since root may write anywhere."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable

NOBODY = 65534


def as_nobody(function: Callable[[], str]) -> str:
    """Call in a forked child, as `nobody` when this process is root; return its text or its traceback."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
            text = function()
        except BaseException:
            text = traceback.format_exc()
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode()
    os.waitpid(child, 0)
    return text
