"""Keys and values of shared prefixes, kept in the cache folder so that a cold worker need not compute them.

A file is found by what decides its bits and its tokens, and holds the digest of its content: what is damaged, torn
or of another shape is computed again. Tensors come back bit for bit, so no token depends on whether one was there.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec
from blake3 import blake3

from gsum.engine.llm.kept import keep

if TYPE_CHECKING:
    from gsum.engine.llm.attend import Slot

FOLDER, CLAIMS = "prefixes", "prefixes.claims"
_MOST = 8
"""How many files stay, the latest used ones."""
_DIGEST = 32
_PLACE = 15
"""So many hex digits of a file's name are its place in the file of claims."""
_AGAIN_SECONDS = 0.02
_OPEN = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
"""What is no plain file of ours is neither followed nor waited for."""


class PrefixFiles:
    """The kept prefixes of one model under given circumstances (`kept.circumstances`)."""

    def __init__(self, cache_dir: Path, circumstances: str) -> None:
        self._folder = cache_dir / FOLDER
        self._circumstances = circumstances

    def read(self, tokens: Sequence[int], slot: Slot) -> bool:
        """Fill an empty slot's beginning with the keys and values of `tokens`; False if they are not kept."""
        import torch  # noqa: PLC0415

        path = self._path(tokens)
        try:
            content = bytearray(path.read_bytes())
        except OSError:
            return False
        views = [tensor[:, :, : len(tokens)] for tensor in (slot.keys, slot.values)]
        half = views[0].numel() * views[0].element_size()
        if len(content) != _DIGEST + 2 * half or blake3(memoryview(content)[_DIGEST:]).digest() != content[:_DIGEST]:
            return False
        for position, view in enumerate(views):
            flat = torch.frombuffer(content, dtype=view.dtype, count=view.numel(), offset=_DIGEST + position * half)
            view.copy_(flat.view(view.shape))
        with contextlib.suppress(OSError):
            os.utime(path)
        return True

    @contextlib.contextmanager
    def claim(self, tokens: Sequence[int], patience: float) -> Iterator[bool]:
        """Be the one process that computes a prefix, for the time of the block; False if another one is at it.

        `patience`: for how many seconds that one is waited for. Who ends, however it ends, holds nothing any more.
        """
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            file = os.fdopen(os.open(self._folder.with_name(CLAIMS), _OPEN, 0o600), "wb")
        except OSError:  # nothing can be kept here either
            yield True
            return
        with file:
            yield _locked(file, int(self._path(tokens).name[:_PLACE], 16), patience)

    def write(self, tokens: Sequence[int], slot: Slot) -> None:
        """Keep the keys and values that a slot begins with; the least lately used ones beyond a few go."""
        import torch  # noqa: PLC0415

        parts = []
        for tensor in (slot.keys, slot.values):
            flat = tensor[:, :, : len(tokens)].to("cpu").contiguous().flatten()
            parts.append(flat.view(torch.uint8).numpy().tobytes())
        data = b"".join(parts)
        keep(self._path(tokens), blake3(data).digest() + data)
        self._forget_old()

    def _path(self, tokens: Sequence[int]) -> Path:
        told = msgspec.json.encode([self._circumstances, list(tokens)])
        return self._folder / blake3(told).hexdigest()

    def _forget_old(self) -> None:
        with contextlib.suppress(OSError):
            files = sorted(self._folder.iterdir(), key=lambda path: -path.stat().st_mtime_ns)
            for path in files[_MOST:]:
                path.unlink(missing_ok=True)


def _locked(file: BinaryIO, place: int, patience: float) -> bool:
    """Lock one byte of a file, which need not be there; where no lock can be had, nobody is in the way."""
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                return True
        else:
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(_AGAIN_SECONDS)
