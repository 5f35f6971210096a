"""Reading files of the workspace: bounded bytes, strict UTF-8, regular files only.

No error holds anything of a file's content. Knows no manifest and no rights: callers say what may be read.
"""

from __future__ import annotations

import os
import stat

from gsum.rules.toml import DeclarationError

_CHUNK = 1 << 20


def read_document(root: str, path: str, max_bytes: int) -> tuple[bytes, str]:
    """Read a document: its exact bytes, and its canonical text, which is their UTF-8 decoding and nothing else.

    Raises:
        DeclarationError: if it is missing, no regular file, larger than `max_bytes`, not UTF-8 or without a
            non-empty line.
    """
    data = read_bytes(root, path, max_bytes, "document")
    text = decode_text(data, path, "document")
    if not text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").strip():
        raise DeclarationError(
            f"document `{path}` is empty",
            facts={"file": path},
            hint="write a line into it; else withdraw the document or, without a manifest, remove the file",
        )
    return data, text


def read_bytes(root: str, path: str, max_bytes: int, noun: str) -> bytes:
    """Read a regular file of at most `max_bytes`; `noun` names it in errors.

    Raises:
        DeclarationError: if it is missing, no regular file, too large or can't be read.
    """
    try:
        # What stands there may be replaced at any moment: the open file is looked at, and no FIFO waited for.
        full = os.path.join(root, path)  # noqa: PTH118 - strings, for speed
        descriptor = without_waiting(full, os.O_RDONLY | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise DeclarationError(f"{noun} `{path}` is no regular file", facts={"file": path})
            size = status.st_size
            if size <= max_bytes:
                data = _all_of(descriptor, size, max_bytes)
                size = len(data)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise unreadable(f"{noun} `{path}` can't be read", path, error) from None
    if size > max_bytes:
        raise DeclarationError(
            f"{noun} `{path}` has {size} bytes or more and {max_bytes} are admitted",
            facts={"file": path, "bytes": size, "max_bytes": max_bytes},
            hint="split it, or raise `max_bytes` of its source",
        )
    return data


def _all_of(descriptor: int, expected: int, most: int) -> bytes:
    """Read to the end of a file, but no more than one byte beyond `most`."""
    data = os.read(descriptor, expected + 1)
    if len(data) == expected:
        return data
    parts = [data]
    left = most + 1 - len(data)
    while left > 0 and (data := os.read(descriptor, min(left, _CHUNK))):
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


def without_waiting(path: str, flags: int) -> int:
    """Open a file, for `open(opener=…)`, that may turn out to be a FIFO with nobody at its other end."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def decode_text(data: bytes, path: str, noun: str) -> str:
    """Decode UTF-8 strictly; the error names the byte and never the content."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = error.start
    # Raised out here: chained to the decoder's error it would carry the whole content with it.
    facts: dict[str, object] = {"file": path, "byte": byte}
    raise DeclarationError(f"{noun} `{path}` is not UTF-8 at byte {byte}", facts=facts, hint="save it as UTF-8")


def unreadable(message: str, path: str, error: OSError) -> DeclarationError:
    """Return the error for a file or folder that the system won't read."""
    return DeclarationError(
        message, facts={"path": path, "why": error.strerror}, hint="check that it exists and is readable"
    )
