"""One forward pass over the new tokens of several sequences, laid end to end without padding between them.

Linear layers see all rows at once; attention runs for each sequence apart, over its own keys and values. So all shapes
that a sequence meets in attention are its own, and what it shares with others are rows of a product.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gsum.engine.llm.attend import NAME, Blocked, Eager, Fused, Part, Slot, Way, attend
from gsum.engine.llm.schemes import Scheme
from gsum.engine.llm.sources import ToolchainError
from gsum.rules.config import Attention

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

_ROUND = 256
_FREE = 16
"""How many unused slots keep their memory."""
_MOVING_ROPES = ("dynamic", "longrope")  # their frequencies depend on the longest sequence of a pass
_PROBED_ROWS = (1, 5, 12, 16, 61)
_PROBED_VALUES = 1 << 18
"""How many values of a product are compared, in 64 rows or more: in bfloat16 another path shows in one of thousands."""
_PROBED_SHIFTS = (1, 7, 100)


class RaggedModel:
    """A model, and the slots its sequences live in. Used by one thread, in inference mode."""

    def __init__(self, model: PreTrainedModel, attention: Attention, device: str, scheme: Scheme) -> None:
        from transformers import AttentionInterface  # noqa: PLC0415

        AttentionInterface.register(NAME, attend)
        self._model = model
        self._device = device
        self._scheme = scheme
        self._way = _way(attention, scheme)
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
        """Return a slot for at least `capacity` tokens, if there is one already beginning with `shared`.

        Where all passes have one shape, so have all slots of a request: its capacity is that of the request alone.
        """
        import torch  # noqa: PLC0415

        capacity = -(-capacity // _ROUND) * _ROUND
        most = capacity if self._scheme.rows else max((slot.capacity for slot in self._free), default=0)
        fitting = [slot for slot in self._free if capacity <= slot.capacity <= most]
        if fitting:
            found = max(fitting, key=lambda slot: (slot.shared == shared, -slot.capacity))
            self._free.remove(found)
            found.length = len(shared) if found.shared == shared else 0
            found.shared = shared if found.length else ()
            return found
        layers, heads, width = self._shape
        shape = (layers, heads, capacity, width)
        return Slot(*(torch.empty(shape, dtype=self._model.dtype, device=self._device) for _ in range(2)))

    def release(self, slot: Slot) -> None:
        """Keep a slot's memory for the next sequence, the largest ones first."""
        self._free.append(slot)
        self._free.sort(key=lambda one: -one.capacity)
        del self._free[_FREE:]

    def forget(self) -> None:
        """Give back the memory of all free slots, and what attention keeps for itself."""
        self._free.clear()
        self._way.forget()

    def forward(self, fed: Sequence[tuple[Slot, Sequence[int]]]) -> torch.Tensor:
        """Append tokens to their slots; return the logits after each one's last, float32 on the CPU, a row each.

        A slot may come several times, one chunk after the other: each attends as if the next were not there.
        """
        import torch  # noqa: PLC0415

        ids: list[int] = []
        places: list[int] = []
        parts: list[Part] = []
        lengths: dict[Slot, int] = {}
        for slot, tokens in fed:
            start, past = len(ids), lengths.get(slot, slot.length)
            ids += tokens
            places += range(past, past + len(tokens))
            mask = self._way.mask(past, len(tokens), slot.keys)
            parts.append(Part(slot, start, len(ids), past, mask))
            lengths[slot] = past + len(tokens)
        filling = self._scheme.filling(len(ids))
        lasts = [part.end - 1 for part in parts]
        lasts += lasts[-1:] * (self._scheme.logits(len(parts)) - len(parts))
        with self._own_attention():
            out = self._model(
                input_ids=self._row(ids + [0] * filling),
                position_ids=self._row(places + [0] * filling),
                use_cache=False,
                logits_to_keep=self._row(lasts)[0],
                gsum_parts=parts,
                gsum_way=self._way,
            )
        for slot, length in lengths.items():
            slot.length = length
        logits: torch.Tensor = out.logits[0, : len(parts)].to(dtype=torch.float32, device="cpu")
        return logits

    def _row(self, values: list[int]) -> torch.Tensor:
        import torch  # noqa: PLC0415

        return torch.tensor([values], dtype=torch.long, device=self._device)

    @contextlib.contextmanager
    def _own_attention(self) -> Iterator[None]:
        """Let the model's layers call `attend`."""
        config = self._model.config
        before = config._attn_implementation
        config._attn_implementation = NAME
        try:
            yield
        finally:
            config._attn_implementation = before


def _way(attention: Attention, scheme: Scheme) -> Way:
    if scheme.block:
        return Blocked(scheme.block)
    return Eager() if attention is Attention.EAGER else Fused()


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


def uneven_rows(model: PreTrainedModel, scheme: Scheme) -> list[str]:
    """Return the shapes of linear layers whose rows differ in any bit by how many are computed together.

    From the fewest to all that a scheme's passes may have; where all have as many: by their place among them. The
    promise that batching keeps bits stands on this property of the machine's matrix products, so it is looked at (see
    `probe`), at every shape the model has.
    """
    import torch  # noqa: PLC0415

    kinds: dict[tuple[tuple[int, ...], int], torch.nn.Linear] = {}
    head = model.get_output_embeddings()
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):  # each chunk of a pass may be one row, with a row of logits
            most = scheme.logits(scheme.most) if module is head else scheme.most
            kinds.setdefault((tuple(module.weight.shape), most), module)
    uneven = []
    draw = torch.Generator().manual_seed(0)
    for (shape, most), linear in kinds.items():
        rows = torch.randn((most, shape[1]), generator=draw).to(dtype=linear.weight.dtype, device=linear.weight.device)
        with torch.inference_mode():
            if not (_moves(linear, rows) if scheme.rows else _splits(linear, rows, scheme.quantum)):
                uneven.append("×".join(map(str, shape)))
    return sorted(set(uneven))


def _splits(linear: torch.nn.Linear, rows: torch.Tensor, quantum: int) -> bool:
    """Whether the first rows, in several numbers, and the last ones give what they give among all."""
    import torch  # noqa: PLC0415

    whole, wanted = linear(rows), max(64, _PROBED_VALUES // linear.weight.shape[0])
    looked = min(rows.shape[0], -(-wanted // quantum) * quantum)
    for count in {looked, *(-(-count // quantum) * quantum for count in _PROBED_ROWS)}:
        apart = [linear(rows[start : start + count].clone()) for start in range(0, looked - count + 1, count)]
        if not torch.equal(torch.cat(apart), whole[: len(apart) * count]):
            return False
    return bool(torch.equal(linear(rows[-looked:].clone()), whole[-looked:]))


def _moves(linear: torch.nn.Linear, rows: torch.Tensor) -> bool:
    """Whether rows give the same in other places, beside other rows."""
    import torch  # noqa: PLC0415

    whole = linear(rows)
    return all(torch.equal(linear(rows.roll(shift, 0)), whole.roll(shift, 0)) for shift in _PROBED_SHIFTS)


__all__ = ["RaggedModel", "Slot", "require_plain_attention", "uneven_rows"]
