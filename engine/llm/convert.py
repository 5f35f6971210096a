"""Converts a GGUF file once to a safetensors folder, byte for byte reproducibly, and finds it again.

The folder's name is the digest of what it was made from: source digest, dtype, converter and library versions. A
table of its files' digests lies beside them and is checked at each use.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import shutil
import tempfile
from importlib import metadata
from pathlib import Path, PurePosixPath

from blake3 import blake3

from gsum.engine.llm.sources import ToolchainError, source_gguf
from gsum.engine.llm.weights import fill
from gsum.rules.config import LocalToolchain

CONVERTER_VERSION = 1
_LIBRARIES = ("gguf", "safetensors", "tokenizers", "torch", "transformers")
_TABLE = "files.json"


def converted_folder(toolchain: LocalToolchain, cache_dir: Path) -> Path:
    """Return where the converted model of a GGUF toolchain lies, or will lie."""
    origin = {
        "converter": CONVERTER_VERSION,
        "dtype": toolchain.dtype.value,
        "files": toolchain.files,
        "libraries": {name: metadata.version(name) for name in _LIBRARIES},
    }
    name = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()
    return cache_dir / "converted" / name


def intact_folder(toolchain: LocalToolchain, cache_dir: Path) -> Path | None:
    """Return the converted folder, null if it is not there or damaged. Imports no model library."""
    folder = converted_folder(toolchain, cache_dir)
    return folder if folder.is_dir() and damaged_files(folder) == [] else None


def ensure_converted(name: str, toolchain: LocalToolchain, source: Path, cache_dir: Path) -> Path:
    """Return the intact converted folder, making it from the verified `source` folder if it is not there."""
    if intact := intact_folder(toolchain, cache_dir):
        return intact
    folder = converted_folder(toolchain, cache_dir)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".convert-", dir=folder.parent) as temporary:
        made = Path(temporary) / "model"
        convert(name, toolchain, source, made)
        gc.collect()  # modules refer to each other: what was read would stay where garbage is not looked for
        _put_in_place(made, folder)
    return folder


def damaged_files(folder: Path) -> list[str]:
    """Return the files of a converted folder that are absent, changed or not in its table."""
    try:
        table = json.loads((folder / _TABLE).read_bytes())
    except (OSError, ValueError):
        return [_TABLE]
    present = {path.name for path in folder.iterdir()} - {_TABLE}
    wrong = present ^ set(table)
    wrong |= {name for name in present & set(table) if _blake3_file(folder / name) != table[name]}
    return sorted(wrong)


def convert(name: str, toolchain: LocalToolchain, source: Path, target: Path) -> None:
    """Read the GGUF file below `source` and write config, tokenizer and weights to `target`."""
    import torch  # noqa: PLC0415
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint  # noqa: PLC0415

    path = source / PurePosixPath(source_gguf(toolchain))
    where = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name, "local_files_only": True}
    dtype = getattr(torch, toolchain.dtype.value)
    try:
        tokenizer = AutoTokenizer.from_pretrained(**where)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(**where), dtype=dtype)
        read = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model, torch_dtype=dtype)
    except Exception as error:  # whatever a broken file makes its reader raise
        reason = str(error).strip().splitlines()
        raise ToolchainError(
            f"the GGUF file of toolchain `{name}` can't be converted",
            facts={"file": path.name, "kind": type(error).__name__, "reason": reason[0][:400] if reason else "unknown"},
            hint="use a model of an architecture that transformers reads from GGUF, or its safetensors files",
        ) from None
    fill(name, model, read["tensors"])
    target.mkdir()
    model.save_pretrained(str(target))
    tokenizer.save_pretrained(str(target))
    table = {path.name: _blake3_file(path) for path in sorted(target.iterdir())}
    (target / _TABLE).write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
    for path in target.iterdir():
        path.chmod(0o444)
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _put_in_place(made: Path, folder: Path) -> None:
    with contextlib.suppress(OSError):
        made.rename(folder)
        return
    if damaged_files(folder) == []:  # another process was faster
        return
    damaged = made.with_name("damaged")
    folder.rename(damaged)
    made.rename(folder)
    shutil.rmtree(damaged, ignore_errors=True)


def _blake3_file(path: Path) -> str:
    return blake3(max_threads=1).update_mmap(path).hexdigest()
