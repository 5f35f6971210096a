"""The batching schemes that a numerics profile can name: what shares a forward pass, and in what shapes. Pure.

The meaning of a name never changes; how many requests share a pass is no part of it, since no token may depend on it.
"""

from __future__ import annotations

import msgspec


class Scheme(msgspec.Struct, frozen=True):
    """A batching scheme.

    `width`: how many requests at most share a pass. `quantum`: the rows of a pass are filled up to a multiple of it,
    so that no linear layer sees so few rows, nor an element-wise one so odd a tail, that it takes another path.
    """

    name: str
    width: int
    quantum: int


_ALL = (
    # One request at a time: the shared prefix by itself, then the rest of the prompt, then each chosen token with the
    # forced ones behind it.
    Scheme("single-2", width=1, quantum=1),
    # The same chunks of several requests laid end to end: one product per linear layer, attention for each apart.
    Scheme("ragged-1", width=8, quantum=4),
)
SCHEMES = {scheme.name: scheme for scheme in _ALL}
SINGLE = SCHEMES["single-2"]
