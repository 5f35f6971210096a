"""Whether this machine's matrix products let requests share a pass: looked at once, then known by what decides it.

The answer is kept in the cache under a digest of processor, libraries, our own code, threads, scheme and model; a
change of any of them looks again. It is a list of shapes, so a hit says what a look would.
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
from gsum.engine.llm.load import LoadedModel
from gsum.engine.llm.ragged import uneven_rows
from gsum.engine.llm.schemes import Scheme
from gsum.engine.llm.wire import Hello

_DECODER = msgspec.json.Decoder(list[str])


def uneven_shapes(hello: Hello, loaded: LoadedModel, scheme: Scheme, seen: dict[str, str]) -> list[str]:
    """Return what `uneven_rows` says of a model under a scheme; `seen` is what the worker observed of itself."""
    told = [
        processor(),
        library_versions(),
        code_digest(),
        seen,
        msgspec.to_builtins(scheme),
        msgspec.to_builtins(hello.numerics),
        hello.toolchain.files,
    ]
    kept = Path(hello.cache_dir) / "probes" / blake3(msgspec.json.encode(told, order="deterministic")).hexdigest()
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return _DECODER.decode(kept.read_bytes())
    found = uneven_rows(loaded.model, scheme.quantum, scheme.rows)
    with contextlib.suppress(OSError):  # a cache that can't be written costs another look
        _keep(kept, msgspec.json.encode(found))
    return found


def processor() -> str:
    """Return what the system says of the processor: on Linux its model, stepping, microcode and flags."""
    try:
        first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    lines = [line for line in first.splitlines() if not line.startswith(("cpu MHz", "bogomips", "processor", "apicid"))]
    return "\n".join(line for line in lines if not line.startswith(("core id", "initial apicid", "physical id")))


def _keep(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
