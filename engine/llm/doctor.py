"""`gsum doctor`: what a local toolchain needs on this machine, and what to type where it is missing.

Looks and changes nothing. Imports torch only to ask it for devices.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import msgspec

from gsum.engine.llm.convert import converted_folder, damaged_files
from gsum.engine.llm.isa import has_instruction_set, observed_instruction_set
from gsum.engine.llm.sources import ModelMissing, ToolchainError, describe, is_gguf, locate_model, verify_files
from gsum.rules.config import Device, LocalToolchain, NumericsSection

_NEEDED = ("torch", "transformers", "tokenizers", "safetensors", "huggingface-hub")
_INSTALL = "pip install 'gsum[local]' -c constraints.txt"


class Finding(msgspec.Struct, frozen=True):
    """One thing a toolchain needs. `hint` says what to type where it is not `ok`."""

    name: str
    ok: bool
    value: str
    hint: str | None = None


def examine(
    name: str,
    toolchain: LocalToolchain,
    numerics: NumericsSection,
    *,
    cache_dir: Path,
    workspace_root: Path,
    environ: Mapping[str, str],
) -> list[Finding]:
    """Return what a toolchain needs, in the order in which to repair it."""
    libraries = _libraries(name, toolchain, numerics)
    found = [Finding("python", True, sys.version.split()[0]), *libraries]
    if all(finding.value != "absent" for finding in libraries):
        found.append(_device(name, toolchain, numerics))
    try:
        model = locate_model(name, toolchain, cache_dir=cache_dir, workspace_root=workspace_root, environ=environ)
        verify_files(name, toolchain, model.folder)
    except ModelMissing as error:
        return [*found, Finding("model", False, f"absent: {describe(toolchain)}", error.hint)]
    except ToolchainError as error:
        return [*found, Finding("model", False, f"{error.message} ({error.facts.get('file', '')})", error.hint)]
    found.append(Finding("model", True, f"{describe(toolchain)}, sha256 checked"))
    if is_gguf(toolchain) and all(finding.value != "absent" for finding in libraries):
        found.append(_conversion(toolchain, cache_dir))
    return found


def _libraries(name: str, toolchain: LocalToolchain, numerics: NumericsSection) -> list[Finding]:
    wanted = dict.fromkeys((*_NEEDED, *(("gguf",) if is_gguf(toolchain) else ())), "") | numerics.libraries
    if toolchain.grammar.backend and toolchain.grammar.version:
        wanted[toolchain.grammar.backend] = toolchain.grammar.version
    return [_library(name, library, version) for library, version in wanted.items()]


def _library(name: str, library: str, wanted: str) -> Finding:
    try:
        seen = metadata.version(library)
    except metadata.PackageNotFoundError:
        return Finding(library, False, "absent", _INSTALL)
    if wanted and seen != wanted and ("+" in wanted or seen.partition("+")[0] != wanted):
        hint = f"pip install '{library}=={wanted}', or declare what is installed: gsum toolchain pin {name}"
        return Finding(library, False, f"{seen}, declared {wanted}", hint)
    return Finding(library, True, seen)


def _device(name: str, toolchain: LocalToolchain, numerics: NumericsSection) -> Finding:
    import torch  # noqa: PLC0415

    match toolchain.device:
        case Device.CPU:
            wanted = numerics.instruction_set
            if wanted is not None and not has_instruction_set(wanted):
                hint = f"`{name}` needs a processor with {wanted}; use another toolchain: gsum build --toolchain NAME …"
                return Finding("device", False, f"cpu, without {wanted}", hint)
            return Finding("device", True, f"cpu, up to {torch.backends.cpu.get_cpu_capability()}")
        case Device.CUDA:
            if torch.cuda.is_available():
                return _cuda(name, numerics)
            built = f"torch {torch.__version__} is " + ("built for CUDA" if torch.version.cuda else "a CPU build")
            hint = "install a driver and the CUDA build of torch (README, GPU), or use a toolchain for the CPU"
            return Finding("device", False, f"cuda is not available: {built}", hint)
        case Device.MPS:
            ok = torch.backends.mps.is_available()
            hint = f"`{name}` needs macOS on Apple silicon; use a toolchain for the CPU"
            return Finding("device", ok, "mps" if ok else "mps is not available", None if ok else hint)


def _cuda(name: str, numerics: NumericsSection) -> Finding:
    import torch  # noqa: PLC0415

    wanted, seen = numerics.instruction_set, observed_instruction_set(None, "cuda")
    shown = f"cuda, {torch.cuda.get_device_name()}, {seen}"
    if wanted is None or wanted == seen:
        return Finding("device", True, shown)
    hint = f"use another toolchain, or declare what is found (new keys): gsum toolchain pin {name}"
    return Finding("device", False, f"{shown}, declared {wanted}", hint)


def _conversion(toolchain: LocalToolchain, cache_dir: Path) -> Finding:
    folder = converted_folder(toolchain, cache_dir)
    if not folder.is_dir():
        return Finding("converted model", True, "not yet; the first build makes it, in about 20 s")
    if damaged := damaged_files(folder):
        return Finding("converted model", True, f"damaged ({', '.join(damaged)}); the next build makes it again")
    return Finding("converted model", True, "intact")
