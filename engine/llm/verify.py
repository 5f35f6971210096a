"""Compares what a worker observes with what its toolchain declares. Pure but for asking the libraries.

Both sides are flat tables of strings with the same names; what is declared as null is not compared.
"""

from __future__ import annotations

import hashlib

import msgspec

from gsum.engine.llm.fit import installed_version
from gsum.engine.llm.isa import observed_instruction_set
from gsum.engine.llm.load import LoadedModel, is_tied
from gsum.engine.llm.schemes import SCHEMES
from gsum.rules.config import LocalToolchain, NumericsSection


class Mismatch(msgspec.Struct, frozen=True):
    """One declared value that is not what was observed."""

    name: str
    declared: str
    observed: str


def observe_libraries(numerics: NumericsSection, toolchain: LocalToolchain) -> dict[str, str]:
    """Return what can be seen before a model is loaded."""
    names = {*numerics.libraries, *({"llguidance"} if toolchain.grammar.backend else set())}
    seen = {f"library {name}": installed_version(name) for name in sorted(names)}
    known = numerics.batching in SCHEMES
    return {**seen, "batching": numerics.batching if known else f"none but {', '.join(sorted(SCHEMES))}"}


def observe_model(loaded: LoadedModel, numerics: NumericsSection | None = None) -> dict[str, str]:
    """Return what a loaded model shows of itself and of the process it runs in."""
    import torch  # noqa: PLC0415

    dtypes = sorted({str(p.dtype).removeprefix("torch.") for p in loaded.model.parameters()})
    devices = sorted({p.device.type for p in loaded.model.parameters()})
    template = loaded.tokenizer.chat_template
    return {
        "dtype": ", ".join(dtypes),
        "device": ", ".join(devices),
        "attention": loaded.attention.value,
        "tied_embeddings": str(is_tied(loaded.model)).lower(),
        "chat_template": hashlib.sha256(template.encode()).hexdigest() if isinstance(template, str) else "none",
        "threads": str(torch.get_num_threads()),
        "instruction_set": observed_instruction_set(numerics.instruction_set if numerics else None, loaded.device),
    }


def declared(toolchain: LocalToolchain, numerics: NumericsSection) -> dict[str, str]:
    """Return the declared side of the comparison."""
    table = {f"library {name}": version for name, version in sorted(numerics.libraries.items())}
    if toolchain.grammar.backend and toolchain.grammar.version:
        table["library llguidance"] = toolchain.grammar.version
    table |= {
        "batching": numerics.batching,
        "dtype": toolchain.dtype.value,
        "device": toolchain.device.value,
        "attention": toolchain.attention.value,
        "tied_embeddings": str(toolchain.tied_embeddings).lower(),
    }
    if toolchain.chat_template is not None:
        table["chat_template"] = toolchain.chat_template
    if numerics.threads is not None:
        table["threads"] = str(numerics.threads)
    if numerics.instruction_set is not None:
        table["instruction_set"] = numerics.instruction_set
    return table


def mismatches(wanted: dict[str, str], seen: dict[str, str]) -> list[Mismatch]:
    """Return where two tables differ, over the names that both have."""
    return [
        Mismatch(name, value, seen[name])
        for name, value in wanted.items()
        if name in seen and not _agrees(name, value, seen[name])
    ]


def _agrees(name: str, wanted: str, seen: str) -> bool:
    """Versions agree when equal; a declared one without a local part (`+cpu`) admits any."""
    if name.startswith("library ") and "+" not in wanted:
        return seen.partition("+")[0] == wanted
    return seen == wanted


def settings(max_new_tokens: int, end_ids: frozenset[int], backend: str | None) -> dict[str, str | int | bool | None]:
    """Return the effective decoding settings, every sampling setting an explicit null."""
    return {
        "method": "greedy",
        "do_sample": False,
        "num_beams": 1,
        "temperature": None,
        "top_p": None,
        "top_k": None,
        "min_p": None,
        "repetition_penalty": None,
        "max_new_tokens": max_new_tokens,
        "end_ids": ",".join(map(str, sorted(end_ids))),
        "grammar_backend": backend,
    }
