"""From a greeting to a model that may serve: libraries, files, device and weights checked against the declaration.

A refusal is a value; it lists every declared value that differs, with what was found.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import msgspec

from gsum.engine.llm.convert import converted_folder
from gsum.engine.llm.fit import fingerprint, library_versions
from gsum.engine.llm.imports import import_model_code
from gsum.engine.llm.kept import Start, circumstances
from gsum.engine.llm.load import LoadedModel, check_files, load
from gsum.engine.llm.prefixes import PrefixFiles
from gsum.engine.llm.probe import uneven_shapes
from gsum.engine.llm.schemes import SCHEMES, SINGLE, Scheme
from gsum.engine.llm.sources import ToolchainError, is_gguf
from gsum.engine.llm.verify import (
    Mismatch,
    declared,
    mismatches,
    observe_libraries,
    observe_model,
)
from gsum.engine.llm.wire import WIRE_VERSION, Hello, Refused


class Served(msgspec.Struct, frozen=True):
    """A loaded model that is what it was declared to be, and what every observation says of it."""

    loaded: LoadedModel
    observed: dict[str, str]
    device: str
    dtype: str
    versions: dict[str, str]
    backend: str | None
    scheme: Scheme
    files: dict[Path, tuple[int, ...]] = {}
    """What the model was read from, and what tells later whether it still is that (`fit.fingerprint`)."""
    prefixes: PrefixFiles | None = None
    """Where a processor's passes over shared prefixes are kept; on other devices they are computed sooner than read."""


def open_model(hello: Hello, start: Start) -> Served | Refused:
    """Load and check what a greeting declares; with `observe`, load it and check nothing but the files' format.

    `start`: what this process was when it began, for what is kept for later ones.
    """
    if hello.version != WIRE_VERSION:
        return Refused("mismatch", "the worker is of another version than its client", hint="reinstall gsum")
    files = _fingerprints([Path(hello.model) / file for file in sorted(hello.toolchain.files)])
    opened = _load_checked(hello)
    if isinstance(opened, Refused):
        return opened
    loaded, seen = opened
    scheme = SCHEMES.get(hello.numerics.batching, SINGLE)
    if not hello.observe and scheme.width > 1 and (uneven := uneven_shapes(hello, loaded, scheme, seen, start)):
        return _uneven(hello, uneven)
    if is_gguf(hello.toolchain):  # what they were converted to is made or mended by loading
        files |= _fingerprints(sorted(converted_folder(hello.toolchain, Path(hello.cache_dir)).glob("*")))
    prefixes = None
    if loaded.device == "cpu" and hello.keep_prefixes and not hello.observe:
        prefixes = PrefixFiles(Path(hello.cache_dir), circumstances(hello, scheme, seen, start))
    return _served(hello, loaded, seen, files, prefixes)


def _load_checked(hello: Hello) -> tuple[LoadedModel, dict[str, str]] | Refused:
    """Load what a greeting declares, and return it with what was observed."""
    wanted = declared(hello.toolchain, hello.numerics)
    seen = observe_libraries(hello.numerics, hello.toolchain)
    if missing := [name for name in ("torch", "transformers") if find_spec(name) is None]:
        return _not_installed(missing[0])
    if not hello.observe and (wrong := mismatches(wanted, seen)):
        return _refused(hello, wrong)
    where = (hello.name, hello.toolchain, Path(hello.model), Path(hello.cache_dir))
    with ThreadPoolExecutor(1) as beside:  # files are hashed while libraries are imported
        checking = beside.submit(check_files, *where, verify=not hello.observe)
        try:
            import torch  # noqa: PLC0415

            torch.set_num_threads(hello.numerics.threads or torch.get_num_threads())
            import_model_code(_config(hello))
            loaded = load(*where, checked=checking.result)
        except ImportError as error:
            return _not_installed(error.name or "torch")
        except ToolchainError as error:
            facts = {name: str(value) for name, value in error.facts.items()}
            return Refused("mismatch", error.message, facts, error.hint)
        except OSError as error:
            facts = {"file": str(error.filename), "reason": error.strerror or str(error)}
            return Refused("error", "the model's files could not be read or kept", facts)
    seen |= observe_model(loaded, hello.numerics)
    if not hello.observe and (wrong := mismatches(wanted, seen)):
        return _refused(hello, wrong)
    return loaded, seen


def _not_installed(library: str) -> Refused:
    facts = {"missing": library}
    return Refused("model_missing", "the model libraries are not installed", facts, "pip install 'gsum[local]'")


def _config(hello: Hello) -> Path:
    """Return where the model's configuration will lie when it is loaded."""
    gguf = is_gguf(hello.toolchain)
    folder = converted_folder(hello.toolchain, Path(hello.cache_dir)) if gguf else Path(hello.model)
    return folder / "config.json"


def _fingerprints(files: list[Path]) -> dict[Path, tuple[int, ...]]:
    return dict(zip(files, fingerprint(files), strict=True))


def _served(
    hello: Hello,
    loaded: LoadedModel,
    seen: dict[str, str],
    files: dict[Path, tuple[int, ...]],
    prefixes: PrefixFiles | None,
) -> Served:
    import torch  # noqa: PLC0415

    device = loaded.device
    if device == "cuda":
        device = f"cuda: {torch.cuda.get_device_name()}"
    elif device == "cpu":
        device = f"cpu: {seen['instruction_set']}, {seen['threads']} threads"
    backend = hello.toolchain.grammar.backend
    versions = {**library_versions(), "torch": str(torch.__version__)}
    scheme = SCHEMES.get(hello.numerics.batching, SINGLE)
    return Served(loaded, seen, device, seen["dtype"], versions, backend, scheme, files, prefixes)


def _uneven(hello: Hello, shapes: list[str]) -> Refused:
    return Refused(
        "mismatch",
        f"on this machine, tokens of toolchain `{hello.name}` would depend on what is generated with them",
        {"batching": hello.numerics.batching, "products whose rows differ": ", ".join(shapes)},
        f'declare batching = "{SINGLE.name}" in a numerics profile of its own',
    )


def _refused(hello: Hello, wrong: list[Mismatch]) -> Refused:
    hint = f"install what is declared, or declare what is found (new keys): gsum toolchain pin {hello.name}"
    if any(one.name == "instruction_set" for one in wrong):
        hint = "build with a toolchain that gsum doctor says this machine can run: gsum build --toolchain NAME …"
    return Refused(
        "mismatch",
        f"toolchain `{hello.name}` is not what this machine has",
        {one.name: f"declared {one.declared}, found {one.observed}" for one in wrong},
        hint,
    )
