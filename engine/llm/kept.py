"""What workers keep in the cache folder for later ones, under a digest of all that decides it.

Whatever is kept could be computed again: a folder that can't be written, or a damaged file, costs that and nothing
else. Imports no model library.
"""

from __future__ import annotations

import contextlib
import os
import platform
import tempfile
from pathlib import Path

import msgspec
from blake3 import blake3

from gsum.engine.llm.fit import code_digest, library_versions
from gsum.engine.llm.schemes import Scheme
from gsum.engine.llm.wire import Hello


def circumstances(hello: Hello, scheme: Scheme, seen: dict[str, str]) -> str:
    """Return the digest of what decides every bit that a model computes here; `seen`: what the worker observed.

    Processor, libraries, our own code, threads, scheme and model: a change of any of them is another digest.
    """
    told = [
        processor(),
        library_versions(),
        code_digest(),
        seen,
        msgspec.to_builtins(scheme),
        msgspec.to_builtins(hello.numerics),
        [hello.toolchain.files, hello.toolchain.dtype.value, hello.toolchain.attention.value],
    ]
    return blake3(msgspec.json.encode(told, order="deterministic")).hexdigest()


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
