"""`gsum worker status|stop`: the workers that stay between builds. Starts none."""

from __future__ import annotations

import time

import click
import msgspec

from gsum.cli.config import current_config, options
from gsum.cli.render import counted, duration, emit, emit_json, safe, table
from gsum.engine.executors.workers import Ended, Seen, look, stop
from gsum.store.errors import ExitCode, GsumError

_HEAD = ("pid", "toolchain", "device", "state", "age", "idle", "memory", "requests")
_WAIT_SECONDS = 60.0


class NoSuchWorker(GsumError):
    """A worker was named that does not run."""

    exit_code = ExitCode.USAGE


@click.group("worker")
def command() -> None:
    """Look at the workers that stay between builds, and end them."""


@command.command("status")
@options()
def status(**_: object) -> None:
    """Say which workers run, for how long, and what they hold; start none."""
    config = current_config()
    found = look(config.runtime_dir)
    if config.json:
        emit_json("worker status", {"folder": str(config.runtime_dir), "workers": [_document(one) for one in found]})
    elif not found:
        emit(config, "no worker runs; the first build that needs a model starts one")
    else:
        for line in table([_HEAD, *(_row(one) for one in found)]):
            emit(config, safe(line))


@command.command("stop")
@click.argument("workers", nargs=-1, metavar="[PID|TOOLCHAIN]…")
@click.option("--now", is_flag=True, help="End them at once: requests in flight fail.")
@click.option(
    "--wait",
    type=click.FloatRange(0),
    default=_WAIT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long builds may take to be done with them.",
)
@options()
def stop_(workers: tuple[str, ...], now: bool, wait: float, **_: object) -> int:
    """End workers, all of them unless some are named, when the builds that use them are done.

    Exits 0 when they have ended or none ran, 1 when one still works after the time to wait.
    """
    config = current_config()
    chosen = _chosen(look(config.runtime_dir), workers)
    began = time.monotonic()
    ended = stop(config.runtime_dir, chosen, now=now, seconds=wait) if chosen else []
    code = ExitCode.OK if all(one.ended for one in ended) else ExitCode.ACTION_FAILED
    if config.json:
        rows = [{"pid": one.worker.pid, "toolchain": _toolchain(one.worker), "ended": one.ended} for one in ended]
        emit_json("worker stop", {"workers": rows, "exit_code": int(code)})
        return code
    for one in ended:
        said = "ended" if one.ended else f"still at work after {duration(time.monotonic() - began)}"
        emit(config, safe(f"worker {one.worker.pid or '?'} of `{_toolchain(one.worker)}` {said}"))
    if not ended:
        emit(config, "no worker runs")
    elif code is not ExitCode.OK:
        emit(config, _next(ended, now=now))
    return code


def _next(ended: list[Ended], *, now: bool) -> str:
    """Say what to type where workers are left."""
    if not now:
        return "next: gsum worker stop --now, which fails what they have in flight"
    left = [str(one.worker.pid) for one in ended if not one.ended and one.worker.pid is not None]
    return f"next: kill -9 {' '.join(left)}" if left else "next: end their processes, which no one has noted, by hand"


def _chosen(found: list[Seen], named: tuple[str, ...]) -> list[Seen]:
    for name in named:
        if not any(name in _names(one) for one in found):
            raise NoSuchWorker(
                f"no worker `{name}` runs",
                facts={"running": counted(len(found), "worker")},
                hint="gsum worker status lists process ids and toolchains",
            )
    return [one for one in found if not named or _names(one) & set(named)]


def _names(worker: Seen) -> set[str]:
    """Return what a worker can be named by."""
    told = set() if worker.status is None else {worker.status.toolchain}
    return told if worker.pid is None else told | {str(worker.pid)}


def _toolchain(worker: Seen) -> str:
    return worker.status.toolchain if worker.status is not None else "?"


def _row(worker: Seen) -> tuple[str, ...]:
    told = worker.status
    if told is None:
        return (str(worker.pid or "?"), "?", "?", "does not answer", "", "", "", "")
    memory = "?" if told.memory is None else f"{told.memory >> 20} MB"
    idle = f"{duration(told.idle)} of {duration(told.idle_seconds)}" if told.clients == 0 else "in use"
    facts = (told.toolchain or "?", told.device or "?", told.state.value, duration(told.age), idle)
    return (str(told.pid), *facts, memory, f"{told.served} answered, {told.at_hand} at hand")


def _document(worker: Seen) -> dict[str, object]:
    if worker.status is None:
        return {"socket": worker.name, "answers": False, "pid": worker.pid}
    told: dict[str, object] = msgspec.to_builtins(worker.status)
    told.pop("type")
    return {"socket": worker.name, "answers": True, **told}
