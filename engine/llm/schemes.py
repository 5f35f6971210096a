"""The batching schemes that a numerics profile can name: what shares a forward pass, and in what shapes. Pure.

The meaning of a name never changes; how many requests share a pass is no part of it, since no token may depend on it.
"""

from __future__ import annotations

import msgspec

_PASS_ROWS = 1024
"""A pass takes no further sequence past this many rows; which pass a chunk is in changes none of its bits."""


class Scheme(msgspec.Struct, frozen=True):
    """A batching scheme.

    `width`: how many requests at most share a pass. `quantum`: the rows of a pass are filled up to a multiple of it,
    so that no linear layer sees so few rows, nor an element-wise one so odd a tail, that it takes another path.
    `rows`: if not 0, every pass has exactly so many, and longer chunks are cut into pieces of so many. `block`: if
    not 0, a chunk attends in plain products of so many of its rows at a time.
    """

    name: str
    width: int
    quantum: int
    rows: int = 0
    block: int = 0

    @property
    def drafts(self) -> bool:
        """Whether chunks may be computed ahead: a row's bits must not depend on the rows of its pass."""
        return self.quantum > 1 and not self.rows

    @property
    def most(self) -> int:
        """How many rows a pass of several sequences has at most."""
        return self.rows or _PASS_ROWS

    def filling(self, rows: int) -> int:
        """How many rows are added to a pass of `rows`."""
        return self.rows - rows if self.rows else -rows % self.quantum

    def logits(self, parts: int) -> int:
        """How many rows the output layer is given for a pass of `parts`."""
        return self.width if self.rows else parts + -parts % self.quantum


_ALL = (
    # One request at a time: the shared prefix by itself, then the rest of the prompt, then each chosen token with the
    # forced ones behind it.
    Scheme("single-2", width=1, quantum=1),
    # The same chunks of several requests laid end to end: one product per linear layer, attention for each apart.
    Scheme("ragged-1", width=8, quantum=4),
    # As ragged-1, attention in plain products of blocks of rows: in bfloat16 twice as fast as torch's fused kernel.
    Scheme("ragged-2", width=16, quantum=16, block=128),
    # For devices whose products change with their shape: all passes have one.
    Scheme("fixed-1", width=32, quantum=256, rows=256),
)
SCHEMES = {scheme.name: scheme for scheme in _ALL}
SINGLE = SCHEMES["single-2"]
