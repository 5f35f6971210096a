"""Loads tokenizer and model from safetensors, strictly: no missing or unexpected tensor, ties as declared.

Only declared files are visible to the libraries: they are linked into an empty folder first. Knows no requests. That a
tokenizer is this model's own, and not another's of as many tokens, nothing here can see: the declared digests say it.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec
from jinja2 import Environment, TemplateSyntaxError

from gsum.engine.llm.convert import ensure_converted, intact_folder
from gsum.engine.llm.ragged import require_plain_attention
from gsum.engine.llm.sources import ToolchainError, is_gguf, verify_files
from gsum.engine.llm.weights import build_model
from gsum.rules.config import Attention, Device, LocalToolchain

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

_GENERATION = re.compile(r"\{%-?\s*(?:end)?generation\s*-?%\}")  # a tag of transformers' own, for training


class DeviceMissing(ToolchainError):
    """The declared kind of device is not on this machine."""


class LoadedModel(msgspec.Struct, frozen=True):
    """A model ready to run. `attention` is the kind it was loaded with; `end_ids`: the tokens that end a generation."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    device: str
    attention: Attention
    vocab_size: int
    end_ids: frozenset[int]


def check_files(
    name: str, toolchain: LocalToolchain, source: Path, cache_dir: Path, *, verify: bool = True
) -> Path | None:
    """Verify the declared files; return the intact folder that they were converted to, null if there is none.

    It imports no model library: a thread can do it while they are imported.
    """
    if verify:
        verify_files(name, toolchain, source)
    return intact_folder(toolchain, cache_dir) if is_gguf(toolchain) else None


def load(
    name: str,
    toolchain: LocalToolchain,
    source: Path,
    cache_dir: Path,
    *,
    checked: Callable[[], Path | None] | None = None,
) -> LoadedModel:
    """Verify the declared files, convert them if they are GGUF, and load them.

    `checked` waits for a `check_files` under way, and returns or raises what it does.

    Raises:
        ToolchainError: if a file, a tensor or the tying is not as declared, or the device is absent.
    """
    require_device(name, toolchain.device)
    converted = checked() if checked is not None else check_files(name, toolchain, source, cache_dir)
    if is_gguf(toolchain):
        return _load_folder(name, toolchain, converted or ensure_converted(name, toolchain, source, cache_dir))
    with only_declared(toolchain.files, source) as folder:
        return _load_folder(name, toolchain, folder)


@contextlib.contextmanager
def only_declared(files: Mapping[str, str], source: Path) -> Iterator[Path]:
    """Yield a folder with links to the declared files and nothing else."""
    with tempfile.TemporaryDirectory(prefix="gsum-model-") as temporary:
        folder = Path(temporary)
        for file in files:
            link = folder / PurePosixPath(file)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to((source / PurePosixPath(file)).resolve())
        yield folder


def require_device(name: str, device: Device) -> None:
    """Raise DeviceMissing unless torch sees the declared kind of device."""
    import torch  # noqa: PLC0415

    present = {
        Device.CPU: lambda: True,
        Device.CUDA: torch.cuda.is_available,
        Device.MPS: torch.backends.mps.is_available,
    }[device]()
    if not present:
        wants = "a CUDA build of torch and a driver" if device is Device.CUDA else "macOS on Apple silicon"
        raise DeviceMissing(
            f"toolchain `{name}` declares device `{device.value}`, which this machine does not have",
            facts={"torch": torch.__version__, "needed": wants},
            hint="gsum doctor says what is missing; or build with another toolchain: gsum build --toolchain NAME …",
        )


def _load_folder(name: str, toolchain: LocalToolchain, folder: Path) -> LoadedModel:
    from transformers import AutoTokenizer  # noqa: PLC0415

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
        model = build_model(name, toolchain, folder)
        end_ids = _end_ids(model, tokenizer)
    except (ToolchainError, MemoryError):  # there may be memory for the next worker
        raise
    except Exception as error:  # whatever a broken file makes its reader raise
        reason = str(error).strip().splitlines()
        raise ToolchainError(
            f"the model of toolchain `{name}` can't be loaded",
            facts={"kind": type(error).__name__, "reason": reason[0][:400] if reason else "none given"},
        ) from None
    require_plain_attention(name, model)
    _require_fitting(name, tokenizer, model)
    _require_timeless(name, tokenizer)
    config = model.config.get_text_config()
    return LoadedModel(
        model,
        tokenizer,
        device=toolchain.device.value,
        attention=Attention(str(model.config._attn_implementation)),
        vocab_size=int(config.vocab_size),
        end_ids=end_ids,
    )


def _require_fitting(name: str, tokenizer: PreTrainedTokenizerFast, model: PreTrainedModel) -> None:
    """Refuse a tokenizer that knows ids which the model has no embedding for: it is another model's."""
    has = int(model.get_input_embeddings().weight.shape[0])
    highest = max(tokenizer.get_vocab().values(), default=-1)
    if highest >= has:
        raise ToolchainError(
            f"the tokenizer of toolchain `{name}` is not its model's",
            facts={"highest token id": highest, "embeddings of the model": has},
            hint="declare the tokenizer files that came with the weights",
        )


def _require_timeless(name: str, tokenizer: PreTrainedTokenizerFast) -> None:
    """Refuse a chat template that is absent, does not compile, or writes the day into the prompt."""
    template = tokenizer.chat_template
    why = None
    if not isinstance(template, str):
        why = "it has none, or several"
    elif "strftime_now" in template:
        why = "it writes the current date into prompts, so keys would not tell what a model was asked"
    else:
        try:
            Environment(extensions=["jinja2.ext.loopcontrols"]).parse(_GENERATION.sub("", template))
        except TemplateSyntaxError as error:
            why = f"it does not compile: line {error.lineno}"
    if why:
        raise ToolchainError(
            f"the chat template of toolchain `{name}` can't be used",
            facts={"reason": why},
            hint="correct the template in the tokenizer's files, then: gsum toolchain pin " + name,
        )


def is_tied(model: PreTrainedModel) -> bool:
    """Whether the output layer is the input embedding itself."""
    output = model.get_output_embeddings()
    return output is not None and output.weight is model.get_input_embeddings().weight


def _end_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> frozenset[int]:
    """Return all ids that end a generation: every eos id that is configured, and the pad token, never content."""
    given = [model.config.get_text_config().eos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id]
    if model.generation_config is not None:
        given.append(model.generation_config.eos_token_id)
    ids: set[int] = set()
    for value in given:
        if value is not None:
            ids |= set(value) if isinstance(value, list | tuple) else {int(value)}
    return frozenset(ids)
