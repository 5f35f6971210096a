"""Which files this process opens, told by the interpreter's own audit events: no way of opening goes unseen."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

_listening: list[list[str]] = []


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _listening and isinstance(arguments[0], str | bytes):
        name = arguments[0]
        _listening[-1].append(name if isinstance(name, str) else name.decode(errors="replace"))


sys.addaudithook(_hook)  # hooks can't be removed: this one listens only within `opened_files`


@contextlib.contextmanager
def opened_files() -> Iterator[list[str]]:
    """Yield a list that fills with the names of the files opened within the block."""
    names: list[str] = []
    _listening.append(names)
    try:
        yield names
    finally:
        _listening.remove(names)
