"""Cuts a process off from the network, for the rest of its life. Imports no model library."""

from __future__ import annotations

import sys

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


class NetworkRefused(OSError):
    """Something tried to use the network in a process that has none."""


def refuse_network() -> None:
    """Refuse every use of a socket and every name look-up from now on. An audit hook can't be removed."""
    sys.addaudithook(_refuse)


def _refuse(event: str, _: tuple[object, ...]) -> None:
    if event in _REFUSED:
        raise NetworkRefused(f"the model's worker has no network ({event})")
