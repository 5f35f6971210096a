"""Starts a local toolchain's worker only to say what it sees: for `gsum toolchain pin`. Imports no model library."""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import msgspec

from gsum.engine.executors.local import LocalDialect
from gsum.engine.executors.process import ChildProcess
from gsum.engine.llm.pin import Observed
from gsum.engine.llm.sources import ToolchainError, locate_model, sha256_file
from gsum.engine.llm.wire import FROM_WORKER, Hello, Ready, Refused
from gsum.rules.config import Device, LocalToolchain, NumericsSection

_LIBRARIES = ("torch", "transformers", "tokenizers")


def observe_toolchain(
    name: str,
    toolchain: LocalToolchain,
    numerics: NumericsSection,
    *,
    cache_dir: Path,
    workspace_root: Path,
    environ: Mapping[str, str],
) -> Observed:
    """Load the model in a worker and return what it is, compared with nothing.

    Raises:
        ToolchainError: if the model is missing or can't be loaded.
    """
    model = locate_model(name, toolchain, cache_dir=cache_dir, workspace_root=workspace_root, environ=environ)
    files = {file: sha256_file(path) for file, path in model.files.items()}
    seen_files = msgspec.structs.replace(toolchain, files=files)
    hello = Hello(name, seen_files, numerics, str(model.folder), str(cache_dir), observe=True)
    dialect = LocalDialect(
        name, toolchain, numerics, cache_dir=cache_dir, workspace_root=workspace_root, environ=environ
    )
    seen = _ask(dialect, hello)
    template = seen["chat_template"]
    return Observed(
        files=files,
        chat_template=None if template == "none" else template,
        tied_embeddings=seen["tied_embeddings"] == "true",
        instruction_set=seen["instruction_set"] if toolchain.device is not Device.MPS else None,
        libraries={library: _version(library, numerics) for library in (numerics.libraries or _LIBRARIES)},
        grammar_version=metadata.version(toolchain.grammar.backend) if toolchain.grammar.backend else None,
    )


def _version(library: str, numerics: NumericsSection) -> str:
    """Return an installed version, without the build's local part (`+cpu`) unless one is declared."""
    seen = metadata.version(library)
    return seen if "+" in numerics.libraries.get(library, "") else seen.partition("+")[0]


def _ask(dialect: LocalDialect, hello: Hello) -> dict[str, str]:
    argv, env, cwd = dialect.launch()
    child = ChildProcess(argv, env=env, cwd=cwd)
    try:
        child.send(msgspec.json.encode(hello))
        until = time.monotonic() + dialect.start_seconds
        while time.monotonic() < until:
            for line in child.poll(until - time.monotonic()):
                return _observed(line)
            if child.ended:
                break
    finally:
        child.kill()
    raise ToolchainError(
        f"the worker of toolchain `{hello.name}` said nothing",
        facts={"ended": child.how_it_ended(), "stderr": child.stderr_tail()},
    )


def _observed(line: bytes) -> dict[str, str]:
    answer = FROM_WORKER.decode(line)
    if isinstance(answer, Ready):
        return answer.observed
    if isinstance(answer, Refused):
        raise ToolchainError(answer.message, facts=answer.facts, hint=answer.hint)
    raise ToolchainError("the worker answered what it was not asked")
