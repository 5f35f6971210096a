"""A Qwen2 model of random weights, made in place on the device, with a tokenizer of bytes: nothing is fetched."""

from __future__ import annotations

from typing import Any

import msgspec
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen2Config

from gsum.engine.llm.load import LoadedModel
from gsum.rules.config import Attention
from gsum.rules.requests import Message, Request, Role

CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


class Shape(msgspec.Struct, frozen=True):
    """The sizes of a model."""

    vocabulary: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    key_heads: int


SHAPES = {
    "qwen2.5-1.5b": Shape(151_936, 1536, 8960, 28, 12, 2),
    "tiny": Shape(512, 64, 128, 2, 4, 2),
}


def random_model(shape: Shape, device: str, dtype: torch.dtype) -> LoadedModel:
    """Return a model whose logits are close together: any difference of numerics soon changes a choice."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        max_position_embeddings=32_768,
        tie_word_embeddings=True,
        eos_token_id=2,
        pad_token_id=0,
    )
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="eager")
    model.eval().requires_grad_(False)
    return LoadedModel(model, _bytes(), device, Attention.EAGER, shape.vocabulary, frozenset({0, 2}))


def requests(count: int, new_tokens: int) -> list[Request]:
    """Return requests of one prompt whose inputs are of a hundred to a thousand tokens."""
    asked = []
    for number in range(count):
        lines = [f"[{i}] Product P-{number}-{i} site: Hall {i * number}." for i in range(3 + (number * 7) % 27)]
        messages = (
            Message(Role.SYSTEM, "You copy facts out of numbered lines. You answer with JSON only."),
            Message(Role.USER, "\n".join(lines)),
        )
        asked.append(Request(messages, 1, None, new_tokens, 4096, "0" * 64, "0" * 64))
    return asked


def _bytes() -> Any:  # noqa: ANN401 - transformers has no types
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [*CONTROL, *alphabet]
    raw = Tokenizer(models.BPE(vocab={name: place for place, name in enumerate(names)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens([AddedToken(name, special=True) for name in CONTROL])
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=CHATML
    )
