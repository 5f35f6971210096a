"""Makes a model from its configuration, and fills it with all tensors of its safetensors files and no others.

Parameters are not initialised before: that takes long, and imports torch's compiler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gsum.engine.llm.sources import ToolchainError, regular_files
from gsum.rules.config import Dtype, LocalToolchain

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

_LONGEST = 400
_PLAIN = ("float64", "float32", "float16", "bfloat16")


def build_model(name: str, toolchain: LocalToolchain, folder: Path) -> PreTrainedModel:
    """Return the model of a folder on its device, in the declared dtype, with the declared attention.

    Raises:
        ToolchainError: if its tensors are not exactly those of its configuration, or can't be held in one dtype.
        Exception: what the libraries raise on files that they can't read.
    """
    import torch  # noqa: PLC0415
    from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig  # noqa: PLC0415
    from transformers.initialization import no_init_weights  # noqa: PLC0415

    local = {"local_files_only": True, "trust_remote_code": False}
    dtype = getattr(torch, toolchain.dtype.value)
    config = AutoConfig.from_pretrained(str(folder), **local)
    with no_init_weights():
        model = AutoModelForCausalLM.from_config(
            config, dtype=dtype, attn_implementation=toolchain.attention.value, trust_remote_code=False
        )
    _require_one_dtype(name, model, toolchain.dtype)
    fill(name, model, _tensors(name, folder, dtype, toolchain.device.value))
    if (folder / "generation_config.json").is_file():
        model.generation_config = GenerationConfig.from_pretrained(str(folder), local_files_only=True)
    model.eval().requires_grad_(False)
    model.to(toolchain.device.value)
    return model


def fill(name: str, model: PreTrainedModel, tensors: Mapping[str, torch.Tensor]) -> None:
    """Let a model's parameters be these tensors; of those that are tied, the model's first is enough.

    Raises:
        ToolchainError: naming the tensors that are missing, unexpected, of another shape, or not what they are tied to.
    """
    model.tie_weights()
    wanted = {key: tuple(tensor.shape) for key, tensor in model.state_dict().items()}
    tied = _tied(model)
    wrong = {
        "missing": wanted.keys() - tensors.keys() - tied.keys(),
        "unexpected": tensors.keys() - wanted.keys(),
        "of another shape": {key for key in wanted.keys() & tensors.keys() if wanted[key] != tensors[key].shape},
        "not what they are tied to": {key for key, other in tied.items() if _differ(tensors, key, other)},
    }
    if any(wrong.values()):
        facts = {kind: ", ".join(sorted(keys))[:_LONGEST] for kind, keys in wrong.items() if keys}
        raise ToolchainError(f"the weights of toolchain `{name}` do not fit its model exactly", facts=facts)
    model.load_state_dict(dict(tensors), strict=False, assign=True)
    model.tie_weights()


def _tied(model: PreTrainedModel) -> dict[str, str]:
    """Return the names of parameters that are others, with the names of those."""
    named = list(model.named_parameters(remove_duplicate=False))
    first: dict[int, str] = {}
    for key, parameter in named:
        first.setdefault(id(parameter), key)
    return {key: first[id(parameter)] for key, parameter in named if first[id(parameter)] != key}


def _differ(tensors: Mapping[str, torch.Tensor], one: str, other: str) -> bool:
    import torch  # noqa: PLC0415

    return one in tensors and other in tensors and not torch.equal(tensors[one], tensors[other])


def _tensors(name: str, folder: Path, dtype: torch.dtype, device: str) -> dict[str, torch.Tensor]:
    """Read all tensors of a folder into memory of their own: a file that changes later changes none of them."""
    found: dict[str, torch.Tensor] = {}
    for key, tensor in _stored(folder):
        why = None
        if key in found:
            why = "it is in several files"
        elif str(tensor.dtype).removeprefix("torch.") not in _PLAIN:
            why = f"it is of {tensor.dtype}"
        if why:
            raise ToolchainError(f"a tensor of toolchain `{name}` can't be used", facts={"tensor": key, "reason": why})
        found[key] = tensor.to(device=device, dtype=dtype, copy=True)
    return found


def _stored(folder: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of a folder's files, as they are mapped."""
    from safetensors import safe_open  # noqa: PLC0415

    for file in regular_files(folder):
        if file.endswith(".safetensors"):
            with safe_open(str(folder / file), "pt") as stored:
                for key in stored.keys():  # noqa: SIM118 - it is no mapping
                    yield key, stored.get_tensor(key)


def _require_one_dtype(name: str, model: PreTrainedModel, dtype: Dtype) -> None:
    """Refuse what could not be run as its configuration says: quantised weights, and parts that stay in float32."""
    kept = () if dtype is Dtype.FLOAT32 else getattr(model, "_keep_in_fp32_modules_strict", None) or ()
    odd = {
        "quantised": str(getattr(model.config, "quantization_config", None) or ""),
        "kept in float32": ", ".join(sorted(kept)),
    }
    if facts := {kind: text[:_LONGEST] for kind, text in odd.items() if text}:
        raise ToolchainError(
            f"the model of toolchain `{name}` does not hold its weights in one dtype",
            facts=facts,
            hint='use weights that are not quantised, with dtype = "float32"',
        )
