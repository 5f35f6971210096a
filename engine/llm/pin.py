"""`gsum toolchain pin`: what was observed, written into BUILD.toml's text with its comments and layout kept. Pure."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, cast

import msgspec
import tomlkit
from tomlkit.exceptions import TOMLKitError

from gsum.engine.llm.sources import ToolchainError
from gsum.rules.config import Device


class Observed(msgspec.Struct, frozen=True):
    """What a toolchain is on this machine. `instruction_set` is null on MPS, the grammar version without one."""

    files: dict[str, str]
    chat_template: str | None
    tied_embeddings: bool
    instruction_set: str | None
    libraries: dict[str, str]
    grammar_version: str | None


class Change(msgspec.Struct, frozen=True):
    """One declared value that was replaced; `before` is null where nothing was declared."""

    place: str
    before: str | None
    after: str


def pin_text(text: str, name: str, observed: Observed) -> tuple[str, list[Change]]:
    """Return BUILD.toml's text with `[toolchain.NAME]` and its numerics as observed, and what changed.

    Only values that are declared or always stand in the tables are touched: a numerics profile of the CPU without an
    instruction set gets none. One of CUDA gets it, since no two kinds of device promise the same bits.

    Raises:
        ToolchainError: if the text declares no such local toolchain.
    """
    try:
        document = tomlkit.parse(text)
        toolchain = cast("Table", document["toolchain"])[name]
        numerics = cast("Table", document["numerics"])[toolchain["numerics"]]
    except (TOMLKitError, KeyError):
        raise ToolchainError(
            f"`BUILD.toml` declares no local toolchain `{name}` with its numerics",
            hint="gsum doctor lists what is declared",
        ) from None
    changes: list[Change] = []
    place = f"toolchain.{name}"
    for file, digest in observed.files.items():
        _set(toolchain["files"], file, digest, f"{place}.files", changes)
    if observed.chat_template is not None:
        _set(toolchain, "chat_template", observed.chat_template, place, changes)
    _set(toolchain, "tied_embeddings", observed.tied_embeddings, place, changes)
    if observed.grammar_version is not None:
        _set(toolchain["grammar"], "version", observed.grammar_version, f"{place}.grammar", changes)
    profile = f"numerics.{toolchain['numerics']}"
    cuda = toolchain.get("device") == Device.CUDA.value
    if observed.instruction_set is not None and (cuda or "instruction_set" in numerics):
        _set(numerics, "instruction_set", observed.instruction_set, profile, changes)
    if "libraries" not in numerics:
        numerics["libraries"] = tomlkit.inline_table()
    for library, version in observed.libraries.items():
        _set(numerics["libraries"], library, version, f"{profile}.libraries", changes)
    return tomlkit.dumps(document), changes


Table = MutableMapping[str, Any]


def _set(table: Table, key: str, value: str | bool, place: str, changes: list[Change]) -> None:
    before = table.get(key)
    if before == value:
        return
    table[key] = value
    was = None if before is None else _text(before)
    changes.append(Change(f"{place}.{key}", was, _text(value)))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
