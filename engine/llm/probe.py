"""Whether this machine's matrix products let requests share a pass: looked at once, then known by what decides it.

The answer is a list of shapes, kept in the cache, so a hit says what a look would.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from gsum.engine.llm.kept import Start, circumstances, keep
from gsum.engine.llm.load import LoadedModel
from gsum.engine.llm.ragged import uneven_rows
from gsum.engine.llm.schemes import Scheme
from gsum.engine.llm.wire import Hello

_DECODER = msgspec.json.Decoder(list[str])


def uneven_shapes(hello: Hello, loaded: LoadedModel, scheme: Scheme, seen: dict[str, str], start: Start) -> list[str]:
    """Return what `uneven_rows` says of a model under a scheme; `seen` is what the worker observed of itself."""
    kept = Path(hello.cache_dir) / "probes" / circumstances(hello, scheme, seen, start)
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return _DECODER.decode(kept.read_bytes())
    found = uneven_rows(loaded.model, scheme)
    keep(kept, msgspec.json.encode(found))
    return found
