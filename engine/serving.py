"""Serving a result: only the current one, only a valid one, only with every citation verified against the sources.

The universe has just re-read and re-hashed every source below the target, so its keys are those of this moment.
"""

from __future__ import annotations

import msgspec

from gsum.engine.documents import Documents
from gsum.engine.inputs import InputReader, decode_result
from gsum.engine.states import State, TargetState, target_states
from gsum.engine.universe import Universe
from gsum.rules.claims import Result
from gsum.store.api import Store
from gsum.store.errors import ExitCode, GsumError


class NotServed(GsumError):
    """A target whose result must not be shown: stale, not built, or invalid."""

    def __init__(
        self, target: TargetState, message: str, *, exit_code: ExitCode, hint: str | None, facts: dict[str, object]
    ) -> None:
        super().__init__(message, facts=facts, hint=hint)
        self.target = target
        self.exit_code = exit_code


class Served(msgspec.Struct, frozen=True):
    """A result that may be shown, and the state it was found in."""

    target: TargetState
    result: Result


def serve(universe: Universe, store: Store, documents: Documents, label: str) -> Served:
    """Return the current result of a label.

    Raises:
        NotServed: STALE and NOT BUILT (exit 4), INVALID (exit 7); the error holds no claim.
        EvidenceBroken: when a stored citation does not hold (exit 10).
    """
    target = target_states(universe, store, [label])[label]
    if target.entry is None:
        raise _refusal(target)
    if target.state is State.INVALID:
        result = decode_result(store.get_blob(target.entry.result))
        raise NotServed(
            target,
            f"`{label}` is INVALID: what the model wrote can't be used",
            exit_code=ExitCode.INVALID,
            hint=f"gsum cat {target.entry.generation}" if target.entry.generation else None,
            facts={"why": result.diagnostic or "unknown"},
        )
    reader = InputReader(universe.workspace, universe.graph, universe.keys, store, documents)
    return Served(target, reader.load_result(label, target.entry.result))


def _refusal(target: TargetState) -> NotServed:
    facts: dict[str, object] = {}
    if target.state is State.STALE and target.previous is not None:
        message = f"`{target.label}` is STALE: its sources or declarations changed since it was built"
        facts = {"built as": target.previous.key[:16], "now": target.key[:16]}
    else:
        message = f"`{target.label}` is NOT BUILT"
    return NotServed(target, message, exit_code=ExitCode.STALE, hint=f"gsum build {target.label}", facts=facts)
