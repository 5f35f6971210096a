"""How many workers a machine has room for: its devices, or its processors and its memory. Imports no model library."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from gsum.rules.config import Device, LocalToolchain, NumericsSection

_BESIDE = 1 << 30
"""What a worker takes beside its weights: the libraries, keys and values."""
_GGUF_GROWS = 8
"""How much larger weights of four bits are in float32."""
_CGROUP = Path("/sys/fs/cgroup")


class Slot(msgspec.Struct, frozen=True):
    """A place for one worker; `environ` shows it its device."""

    number: int
    environ: dict[str, str] = {}


def slots(
    toolchain: LocalToolchain,
    numerics: NumericsSection,
    *,
    environ: Mapping[str, str],
    weights: int,
    jobs: int | None = None,
    held: Callable[[], int] = lambda: 0,
) -> list[Slot]:
    """Return the places for a toolchain's workers, at least one.

    `weights`: the bytes of its files. `jobs`: the most requests that shall be in flight. `held`: asked, where memory is
    scarce, for the bytes that workers which are there already hold: they will have the first places.
    """
    most = jobs if jobs is not None else 2**31
    match toolchain.device:
        case Device.CUDA:
            found = [Slot(n, {"CUDA_VISIBLE_DEVICES": one}) for n, one in enumerate(cuda_devices(environ))]
            return found[:most] or [Slot(0)]
        case Device.MPS:
            return [Slot(0)]
        case Device.CPU:
            threads = numerics.threads or processors()
            gguf = any(file.endswith(".gguf") for file in toolchain.files)
            needed = weights * (_GGUF_GROWS if gguf else 1) + _BESIDE
            if toolchain.memory_mb is not None:
                needed = toolchain.memory_mb << 20
            wanted, free = max(1, min(processors() // threads, most)), free_memory()
            if free < wanted * needed:
                free += held()
            return [Slot(n) for n in range(max(1, min(wanted, free // needed)))]


def cuda_devices(environ: Mapping[str, str]) -> list[str]:
    """Return the CUDA devices to use, by the names that CUDA_VISIBLE_DEVICES has or takes."""
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [one.strip() for one in visible.split(",") if one.strip()]
    try:
        present = len(list(Path("/proc/driver/nvidia/gpus").iterdir()))
    except OSError:
        return []
    return [str(number) for number in range(present)]


def processors() -> int:
    """Return how many processors this process may use, by its affinity and its control group's quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = _read(_CGROUP / "cpu.max").partition(" ")
    if quota.isdigit() and period.strip().isdigit():
        count = min(count, int(quota) // int(period))
    return max(1, count)


def free_memory() -> int:
    """Return the bytes that may be taken, by the system and the control group; very many where neither tells."""
    free = 2**62
    for line in _read(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    limit, used = _read(_CGROUP / "memory.max").strip(), _read(_CGROUP / "memory.current").strip()
    if limit.isdigit() and used.isdigit():
        cached = [line.split()[1] for line in _read(_CGROUP / "memory.stat").splitlines() if line.startswith("file ")]
        free = min(free, int(limit) - int(used) + sum(map(int, cached)))
    return max(0, free)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
