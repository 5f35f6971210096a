"""One forward pass over the new tokens of several sequences, laid end to end without padding between them.

Linear layers see all rows at once; attention runs for each sequence apart, over its own keys and values. So all shapes
that a sequence meets in attention are its own, and what it shares with others are rows of a product.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from gsum.engine.llm.sources import ToolchainError
from gsum.rules.config import Attention

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

_NAME = "gsum-ragged"
_ROUND = 256
_FREE = 16
"""How many unused slots keep their memory."""
_MOVING_ROPES = ("dynamic", "longrope")  # their frequencies depend on the longest sequence of a pass
_FOLDED_ROWS = 8
_PROBED_ROWS = (5, 12, 16, 61)


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
    """What is added to the scores of rows × (past + rows); null where every row sees all, or there is no past."""

    @property
    def rows(self) -> int:
        """How many tokens are fed."""
        return self.end - self.start


class RaggedModel:
    """A model, and the slots its sequences live in. Used by one thread, in inference mode."""

    def __init__(self, model: PreTrainedModel, attention: Attention, device: str, quantum: int) -> None:
        from transformers import AttentionInterface  # noqa: PLC0415

        AttentionInterface.register(_NAME, _attend)
        self._model = model
        self._eager = attention is Attention.EAGER
        self._device = device
        self._quantum = quantum
        config = model.config.get_text_config()
        heads = config.num_key_value_heads or config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self._shape = (int(config.num_hidden_layers), int(heads), int(width))
        self._free: list[Slot] = []

    @property
    def bytes_per_token(self) -> int:
        """What one token's keys and values take."""
        layers, heads, width = self._shape
        return 2 * layers * heads * width * int(self._model.dtype.itemsize)

    def slot(self, capacity: int, shared: tuple[int, ...]) -> Slot:
        """Return a slot for at least `capacity` tokens, if there is one already beginning with `shared`."""
        import torch  # noqa: PLC0415

        fitting = [slot for slot in self._free if slot.capacity >= capacity]
        if fitting:
            found = max(fitting, key=lambda slot: (slot.shared == shared, -slot.capacity))
            self._free.remove(found)
            found.length = len(shared) if found.shared == shared else 0
            found.shared = shared if found.length else ()
            return found
        layers, heads, width = self._shape
        shape = (layers, heads, -(-capacity // _ROUND) * _ROUND, width)
        return Slot(*(torch.empty(shape, dtype=self._model.dtype, device=self._device) for _ in range(2)))

    def release(self, slot: Slot) -> None:
        """Keep a slot's memory for the next sequence, the largest ones first."""
        self._free.append(slot)
        self._free.sort(key=lambda one: -one.capacity)
        del self._free[_FREE:]

    def forget(self) -> None:
        """Give back the memory of all free slots."""
        self._free.clear()

    def forward(self, fed: Sequence[tuple[Slot, Sequence[int]]]) -> torch.Tensor:
        """Append tokens to their slots; return the logits after each one's last, float32 on the CPU, a row each."""
        import torch  # noqa: PLC0415

        ids: list[int] = []
        places: list[int] = []
        parts: list[Part] = []
        for slot, tokens in fed:
            start, past = len(ids), slot.length
            ids += tokens
            places += range(past, past + len(tokens))
            parts.append(Part(slot, start, len(ids), past, self._mask(past, len(tokens))))
        filling = -len(ids) % self._quantum
        lasts = [part.end - 1 for part in parts]
        lasts += lasts[-1:] * (-len(lasts) % self._quantum)
        with self._own_attention():
            out = self._model(
                input_ids=self._row(ids + [0] * filling),
                position_ids=self._row(places + [0] * filling),
                use_cache=False,
                logits_to_keep=self._row(lasts)[0],
                gsum_parts=parts,
                gsum_eager=self._eager,
            )
        for part in parts:
            part.slot.length = part.past + part.rows
        logits: torch.Tensor = out.logits[0, : len(parts)].to(dtype=torch.float32, device="cpu")
        return logits

    def _row(self, values: list[int]) -> torch.Tensor:
        import torch  # noqa: PLC0415

        return torch.tensor([values], dtype=torch.long, device=self._device)

    def _mask(self, past: int, rows: int) -> torch.Tensor | None:
        import torch  # noqa: PLC0415

        if rows == 1 or (past == 0 and not self._eager):
            return None
        whole = torch.full((rows, past + rows), float("-inf"), dtype=self._model.dtype, device=self._device)
        return whole.triu(past + 1)

    @contextlib.contextmanager
    def _own_attention(self) -> Iterator[None]:
        """Let the model's layers call `_attend`; transformers makes no mask for an attention it does not know."""
        config = self._model.config
        before = config._attn_implementation
        config._attn_implementation = _NAME
        try:
            yield
        finally:
            config._attn_implementation = before


def _attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,  # noqa: ARG001 - the interface of transformers
    *,
    scaling: float,
    gsum_parts: Sequence[Part],
    gsum_eager: bool,
    **_: object,
) -> tuple[torch.Tensor, None]:
    """Attend for each part apart. `query`: 1 × heads × rows × width; the result: 1 × rows × heads × width."""
    layer = int(module.layer_idx)
    attend = _eager if gsum_eager else _fused
    _, heads, rows, width = query.shape
    groups = key.shape[1]
    out = query.new_zeros((rows, heads, width))
    for part in gsum_parts:
        here, length = slice(part.start, part.end), part.past + part.rows
        part.slot.keys[layer, :, part.past : length] = key[0, :, here]
        part.slot.values[layer, :, part.past : length] = value[0, :, here]
        asked = query[0, :, here].contiguous().view(groups, heads // groups, part.rows, width)
        one = attend(asked, part.slot.keys[layer, :, :length], part.slot.values[layer, :, :length], part, scaling)
        out[here] = one.reshape(heads, part.rows, width).transpose(0, 1)
    return out.unsqueeze(0), None


def _fused(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, part: Part, scaling: float) -> torch.Tensor:
    """Attend with torch's fused kernel.

    `query`: groups × heads of a group × rows × width; `keys` and `values`: groups × length × width. The heads of a
    group read the same keys: a short chunk's are laid end to end as rows, which is twice as fast; a long chunk's are
    told apart by a stride of zero, since the mask would grow.
    """
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


def _eager(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, part: Part, scaling: float) -> torch.Tensor:
    """Attend in plain products, the softmax in float32, as transformers' `eager` does."""
    import torch  # noqa: PLC0415

    scores = torch.matmul(query, keys[:, None].transpose(2, 3)) * scaling
    if part.mask is not None:
        scores = scores + part.mask
    return torch.matmul(torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype), values[:, None])


def require_plain_attention(name: str, model: PreTrainedModel) -> None:
    """Refuse a model whose attention is more than causal attention over fixed positions.

    Raises:
        ToolchainError: naming what it has.
    """
    config = model.config.get_text_config()
    kinds = sorted(set(getattr(config, "layer_types", None) or ()) - {"full_attention"})
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    odd = {"attention": ", ".join(kinds), "positions": rope if rope in _MOVING_ROPES else ""}
    for key in ("attn_logit_softcapping", "sliding_window"):
        if getattr(config, key, None) is not None and (key != "sliding_window" or kinds):
            odd[key] = str(getattr(config, key))
    if any(odd.values()):
        raise ToolchainError(
            f"the model of toolchain `{name}` has an attention that gsum does not run",
            facts={key: value for key, value in odd.items() if value},
            hint="use a model with full causal attention, such as those of the Llama and Qwen2 families",
        )


def uneven_rows(model: PreTrainedModel, quantum: int) -> list[str]:
    """Return the shapes of linear layers whose rows differ in any bit by how many are computed together.

    The promise that batching keeps bits stands on this property of the machine's matrix products, so each start
    looks for itself, at every shape the model has.
    """
    import torch  # noqa: PLC0415

    kinds: dict[tuple[int, ...], torch.nn.Linear] = {}
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            kinds.setdefault(tuple(module.weight.shape), module)
    uneven = []
    draw = torch.Generator().manual_seed(0)
    for shape, linear in kinds.items():
        most = -(-max(_PROBED_ROWS) // quantum) * quantum
        rows = torch.randn((most, shape[1]), generator=draw).to(dtype=linear.weight.dtype, device=linear.weight.device)
        with torch.inference_mode():
            whole = linear(rows)
            for count in {quantum, *(-(-rows_ // quantum) * quantum for rows_ in _PROBED_ROWS)}:
                for start in {0, most - count}:
                    if not torch.equal(linear(rows[start : start + count].clone()), whole[start : start + count]):
                        uneven.append("×".join(map(str, shape)))
    return sorted(set(uneven))
