"""Cuts a process off from the network, and bounds its memory, for the rest of its life. Imports no model library.

Where the system allows it, the process goes into a network namespace of its own, in which there is no interface; in
any case Python's sockets are refused. A socket that listened before goes on accepting: that is how clients come.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import os
import sys
from pathlib import Path

_REFUSED = frozenset(
    {
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.sendmsg",
        "socket.sendto",
    }
)
HEADROOM = 4 << 30
"""What a worker on the CPU may take beside its model: the decoder's bound on keys and values, and as much again."""
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000  # CLONE_NEWUSER and CLONE_NEWNET of Linux's sched.h


class Isolation(enum.Enum):
    """What keeps a process off the network."""

    NAMESPACE = "a network namespace without interfaces"
    SOCKETS = "refused sockets"


class NetworkRefused(OSError):
    """Something tried to use the network in a process that has none."""


def refuse_network() -> Isolation:
    """Refuse every use of the network from now on. Call it before the process has a second thread.

    An audit hook can't be removed, and no process leaves a namespace for one it has no rights in.
    """
    isolation = Isolation.NAMESPACE if _enter_empty_namespace() else Isolation.SOCKETS
    sys.addaudithook(_refuse)
    return isolation


def limit_memory(megabytes: int | None) -> int | None:
    """Bound the memory that the process may take; beyond, an allocation fails. Linux only.

    `megabytes` is for all its data; null: `HEADROOM` more than it has. If it has more already, nothing is bound, and
    how much it has, in megabytes, is returned.
    """
    if sys.platform != "linux":
        return None
    import resource  # noqa: PLC0415 - absent on Windows

    [line] = [one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmData:")]
    has = int(line.split()[1]) * 1024
    most = has + HEADROOM if megabytes is None else megabytes << 20
    if most < has:
        return has >> 20
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    return None


def _enter_empty_namespace() -> bool:
    """Leave the network's namespace: as one who may, or else as the owner of a user namespace of one's own."""
    if sys.platform != "linux":
        return False
    try:
        unshare = ctypes.CDLL(None, use_errno=True).unshare
    except (OSError, AttributeError):
        return False
    if unshare(_NEW_NET) == 0:
        return True
    user, group = os.getuid(), os.getgid()
    if unshare(_NEW_USER | _NEW_NET) != 0:
        return False
    with contextlib.suppress(OSError):  # without a mapping the ids read as nobody's, and rights stay what they were
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True


def _refuse(event: str, _: tuple[object, ...]) -> None:
    if event in _REFUSED:
        raise NetworkRefused(f"the model's worker has no network ({event})")
