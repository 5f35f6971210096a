"""The record of a build that had nothing to do: an invocation and its two events, as every build has them.

Written without msgspec, which would take longer to import than most null builds take; the tests hold the bytes to what
`gsum.store.records` and `gsum.engine.events` read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from gsum.engine.index.quick import NothingToDo
from gsum.store.database import Database
from gsum.store.ledger import put_ended
from gsum.store.version import VERSION

INVOCATION_SCHEMA = 2
EVENT_SCHEMA = 1


def invocation_id(now: str) -> str:
    """Return a fresh invocation id: the time, then random hex, so that ids sort by start."""
    digits = "".join(character for character in now if character.isdigit())[:14]
    return f"{digits}-{os.urandom(4).hex()}"


def record_null_build(
    database: Database, done: NothingToDo, patterns: Sequence[str], started: str, seconds: float
) -> str:
    """Record in one transaction that all that was asked for stands; return the invocation's id."""
    invocation = invocation_id(started)
    record = {
        "id": invocation,
        "started": started,
        "patterns": patterns,
        "principal": done.principal,
        "toolchain": done.toolchain,
        "full": False,
        "version": VERSION,
        "status": "ok",
        "exit_code": 0,
        "seconds": seconds,
        "targets": done.targets,
        "cached": done.targets,
        "schema": INVOCATION_SCHEMA,
    }
    began = {
        "event": "BuildStarted",
        "invocation": invocation,
        "patterns": patterns,
        "targets": done.targets,
        "to_run": 0,
        "schema": EVENT_SCHEMA,
    }
    ended = {"event": "BuildFinished", "invocation": invocation, "status": "ok", "exit_code": 0, "seconds": seconds}
    put_ended(database, invocation, _encoded(record), [_encoded(began), _encoded(ended)])
    return invocation


def _encoded(record: dict[str, object]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
