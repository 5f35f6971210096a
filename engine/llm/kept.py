"""What workers keep in the cache folder for later ones, under a digest of all that decides it.

Whatever is kept could be computed again: a folder that can't be written, or a damaged file, costs that and nothing
else. Asks torch how it was built; imports it only then.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
from blake3 import blake3

from gsum.engine.llm.fit import TOLD, library_versions
from gsum.engine.llm.schemes import Scheme
from gsum.engine.llm.wire import Hello


class Start(msgspec.Struct, frozen=True):
    """What a worker was when it started: the digest of the code it loaded, and what of its environment counts."""

    code: str
    environment: dict[str, str] = {}


def started(code: str, environ: Mapping[str, str]) -> Start:
    """Return how a worker started; what of its environment decides which libraries and devices it finds."""
    return Start(code, {name: environ[name] for name in TOLD if name in environ})


def circumstances(hello: Hello, scheme: Scheme, seen: dict[str, str], start: Start) -> str:
    """Return the digest of what decides every bit that a model computes here; `seen`: what the worker observed.

    Processor, interpreter, libraries and how they were built, our own code, threads, scheme and model: a change of any
    of them is another digest.
    """
    told = [
        processor(),
        interpreter(),
        library_versions(),
        torch_build(),
        msgspec.to_builtins(start),
        seen,
        msgspec.to_builtins(scheme),
        msgspec.to_builtins(hello.numerics),
        [hello.toolchain.files, hello.toolchain.dtype.value, hello.toolchain.attention.value],
    ]
    return blake3(msgspec.json.encode(told, order="deterministic")).hexdigest()


def interpreter() -> list[str]:
    """Return which Python runs."""
    return [sys.executable, sys.version]


def torch_build() -> str:
    """Return what torch says of its compiler, its libraries and its flags."""
    import torch  # noqa: PLC0415

    return str(torch.__config__.show())


def processor() -> str:
    """Return what the system says of the processor: on Linux its model, stepping, microcode and flags."""
    try:
        first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    lines = [line for line in first.splitlines() if not line.startswith(("cpu MHz", "bogomips", "processor", "apicid"))]
    return "\n".join(line for line in lines if not line.startswith(("core id", "initial apicid", "physical id")))


def keep(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all, readable by its owner alone; nothing happens where that can't be."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fd, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
