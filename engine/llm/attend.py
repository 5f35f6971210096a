"""Attention of the parts of a pass, each apart: over its own keys and values, in shapes that are its own.

So what a sequence gets does not depend on what shares its pass. Knows no requests and no tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    import torch

NAME = "gsum-ragged"
"""What transformers calls this attention; it makes no mask for one that it does not know."""
_FOLDED_ROWS = 8


class Slot:
    """Keys and values of one sequence, `length` tokens of them; `shared` is the prefix that they begin with."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self.keys = keys
        self.values = values
        self.length = 0
        self.shared: tuple[int, ...] = ()

    @property
    def capacity(self) -> int:
        """How many tokens fit."""
        return int(self.keys.shape[2])

    def begin_with(self, prefix: Slot, shared: tuple[int, ...]) -> None:
        """Copy a prefix's keys and values to the beginning."""
        self.keys[:, :, : prefix.length] = prefix.keys[:, :, : prefix.length]
        self.values[:, :, : prefix.length] = prefix.values[:, :, : prefix.length]
        self.length, self.shared = prefix.length, shared


class Part(msgspec.Struct, frozen=True):
    """Rows `start` to `end` of a pass: the tokens of one sequence after the `past` ones of its slot."""

    slot: Slot
    start: int
    end: int
    past: int
    mask: Any
    """What is added to the scores of rows × (past + rows); null where every row sees all, or the way needs none."""

    @property
    def rows(self) -> int:
        """How many tokens are fed."""
        return self.end - self.start


class Way(Protocol):
    """One way to attend. Tensors: `query` groups × heads of a group × rows × width, `keys` groups × length × width."""

    def attend(
        self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, part: Part, scaling: float
    ) -> torch.Tensor:
        """Return as many values as `query` has rows, in the order of its axes, whatever their shape."""

    def mask(self, past: int, rows: int, like: torch.Tensor) -> torch.Tensor | None:
        """Return what `attend` wants to find in a part of `rows` after `past`, of the kind of `like`."""

    def forget(self) -> None:
        """Give back what memory is kept between calls: none, if a way does not say otherwise."""
        return


class Fused(Way):
    """torch's fused kernel.

    The heads of a group read the same keys: a short chunk's are laid end to end as rows, which is twice as fast; a
    long chunk's are told apart by a stride of zero, since the mask would grow.
    """

    def mask(self, past: int, rows: int, like: torch.Tensor) -> torch.Tensor | None:
        """Null for one row, and for a beginning: the kernel has a flag for that."""
        return None if rows == 1 or past == 0 else _causal(past, rows, like)

    def attend(
        self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, part: Part, scaling: float
    ) -> torch.Tensor:
        """Attend by one call."""
        from torch.nn.functional import scaled_dot_product_attention  # noqa: PLC0415

        groups, heads, rows, width = query.shape
        if rows <= _FOLDED_ROWS and part.past:
            folded = query.view(1, groups, heads * rows, width)
            mask = None if part.mask is None else part.mask.repeat(heads, 1)
            return scaled_dot_product_attention(folded, keys[None], values[None], attn_mask=mask, scale=scaling)
        shape = (-1, heads, -1, -1)
        return scaled_dot_product_attention(
            query,
            keys[:, None].expand(shape),
            values[:, None].expand(shape),
            attn_mask=part.mask,
            scale=scaling,
            is_causal=part.past == 0 and rows > 1,
        )


class Eager(Way):
    """Plain products, the softmax in float32, as transformers' `eager` does."""

    def mask(self, past: int, rows: int, like: torch.Tensor) -> torch.Tensor | None:
        """Null for one row."""
        return None if rows == 1 else _causal(past, rows, like)

    def attend(
        self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, part: Part, scaling: float
    ) -> torch.Tensor:
        """Attend in two products over all rows."""
        import torch  # noqa: PLC0415

        scores = torch.matmul(query, keys[:, None].transpose(2, 3)) * scaling
        if part.mask is not None:
            scores = scores + part.mask
        return torch.matmul(torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype), values[:, None])


class Blocked(Way):
    """Plain products of a block of rows at a time, over no key that none of them may see.

    The scores of a block stay in the processor's cache, and in the same memory for all blocks of all layers.
    """

    def __init__(self, block: int) -> None:
        self._block = block
        self._later: torch.Tensor | None = None
        self._memory: tuple[torch.Tensor, torch.Tensor] | None = None

    def mask(self, past: int, rows: int, like: torch.Tensor) -> torch.Tensor | None:  # noqa: ARG002
        """None is needed; what all blocks add to their last keys is made here once."""
        if self._later is None:
            self._later = _causal(0, self._block, like)
        return None

    def attend(
        self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, part: Part, scaling: float
    ) -> torch.Tensor:
        """Attend block by block."""
        import torch  # noqa: PLC0415

        groups, heads, rows, width = query.shape
        query = query * scaling
        out = torch.empty_like(query)
        for start in range(0, rows, self._block):
            count = min(self._block, rows - start)
            seen = part.past + start + count
            scores, weights = self._scratch(query, groups, heads * count, seen)
            asked = query[:, :, start : start + count].reshape(groups, heads * count, width)
            torch.bmm(asked, keys[:, :seen].transpose(1, 2), out=scores)
            if count > 1 and self._later is not None:
                scores.view(groups, heads, count, seen)[..., seen - count :] += self._later[:count, :count]
            torch.softmax(scores, dim=-1, out=weights)
            done = torch.bmm(weights, values[:, :seen])
            out[:, :, start : start + count] = done.view(groups, heads, count, width)
        return out

    def forget(self) -> None:
        """Give back what memory is kept between calls."""
        self._memory = None

    def _scratch(self, like: torch.Tensor, *shape: int) -> tuple[torch.Tensor, torch.Tensor]:
        groups, rows, columns = shape
        size = groups * rows * columns
        if self._memory is None or self._memory[0].numel() < size:
            self._memory = like.new_empty(size), like.new_empty(size)
        scores, weights = (one[:size].view(shape) for one in self._memory)
        return scores, weights


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,  # noqa: ARG001 - the interface of transformers
    *,
    scaling: float,
    gsum_parts: Sequence[Part],
    gsum_way: Way,
    **_: object,
) -> tuple[torch.Tensor, None]:
    """Attend for each part apart. `query`: 1 × heads × rows × width; the result: 1 × rows × heads × width.

    Parts of one slot stand in the order of their tokens: each finds the keys of those before it written.
    """
    layer = int(module.layer_idx)
    _, heads, rows, width = query.shape
    groups = key.shape[1]
    out = query.new_zeros((rows, heads, width))
    for part in gsum_parts:
        here, length = slice(part.start, part.end), part.past + part.rows
        part.slot.keys[layer, :, part.past : length] = key[0, :, here]
        part.slot.values[layer, :, part.past : length] = value[0, :, here]
        asked = query[0, :, here].contiguous().view(groups, heads // groups, part.rows, width)
        keys, values = part.slot.keys[layer, :, :length], part.slot.values[layer, :, :length]
        one = gsum_way.attend(asked, keys, values, part, scaling)
        out[here] = one.reshape(heads, part.rows, width).transpose(0, 1)
    return out.unsqueeze(0), None


def _causal(past: int, rows: int, like: torch.Tensor) -> torch.Tensor:
    """Return −∞ where a key of rows × (past + rows) comes after its query."""
    import torch  # noqa: PLC0415

    whole = torch.full((rows, past + rows), float("-inf"), dtype=like.dtype, device=like.device)
    return whole.triu(past + 1)
