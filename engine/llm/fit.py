"""What makes a worker unfit for a client: the digest that is its socket's name. Imports no model library.

Two greetings with the same digest may share a worker; where anything differs that could decide a token, or what is
observed of it, the digests differ.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import msgspec
from blake3 import blake3

from gsum.engine.llm.wire import WIRE_VERSION, Hello
from gsum.rules.config import DecodingSection, GrammarSection, LocalToolchain, Strength
from gsum.store.version import VERSION

LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "llguidance")
"""The libraries that a numerics profile is pinned with, and that every observation records."""
CODE = (
    "engine/executors/channel.py",
    "engine/executors/runtime.py",
    "engine/llm/*.py",
    "rules/config.py",
    "rules/requests.py",
    "store/canonical.py",
    "store/digests.py",
    "store/errors.py",
    "store/label_runs.py",
    "store/records.py",
    "store/version.py",
)
"""Every module of ours that a worker imports."""
TOLD = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_HOME")
"""What of the environment makes a worker another one."""
_PACKAGES = Path(__file__).resolve().parents[2]
_HEX = 24


def library_versions() -> dict[str, str]:
    """Return the installed versions of `LIBRARIES`; an absent one is `absent`."""
    return {name: installed_version(name) for name in LIBRARIES}


def installed_version(name: str) -> str:
    """Return the installed version of a package, or `absent`."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def code_digest() -> str:
    """Return the digest of the source, as it is now, of all modules that a worker imports."""
    digest = blake3()
    for path in sorted(path for pattern in CODE for path in _PACKAGES.glob(pattern)):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(_PACKAGES).as_posix()} {len(source)}\n".encode())
        digest.update(source)
    return digest.hexdigest()


def substance(hello: Hello) -> Hello:
    """Return a greeting without what a worker need not know: names, time limits, and what each request says anew."""
    grammar = hello.toolchain.grammar
    toolchain: LocalToolchain = msgspec.structs.replace(
        hello.toolchain,
        timeout_seconds=1,
        decoding=DecodingSection(),
        grammar=GrammarSection(Strength.NONE, grammar.backend, grammar.version),
    )
    return msgspec.structs.replace(hello, name="", toolchain=toolchain, idle_seconds=0)


def worker_name(hello: Hello, environment: dict[str, str], slot: int) -> str:
    """Return the name of the worker of a device or processor slot that a greeting wants."""
    told = {
        "wire": WIRE_VERSION,
        "gsum": VERSION,
        "interpreter": [sys.executable, sys.version],
        "libraries": library_versions(),
        "environment": environment,
        "slot": slot,
        "hello": msgspec.to_builtins(substance(hello)),
    }
    return blake3(msgspec.json.encode(told, order="deterministic")).hexdigest()[:_HEX]


def fingerprint(paths: list[Path]) -> tuple[tuple[int, ...], ...]:
    """Return what tells whether files are still what they were: size, times and inode of each."""
    found: list[tuple[int, ...]] = []
    for path in paths:
        try:
            at = path.stat()
        except OSError:
            found.append(())
        else:
            found.append((at.st_size, at.st_mtime_ns, at.st_ctime_ns, at.st_ino))
    return tuple(found)
