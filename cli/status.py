"""`gsum status`: a line per target with its state; a gate: exit 4 if one is stale or not built, else 7 if INVALID."""

from __future__ import annotations

from collections import Counter

import click

from gsum.cli.context import current_config, open_universe, options, reading_store
from gsum.cli.render import counted, emit, emit_json, state_text
from gsum.cli.reporting import STATE_WIDTH
from gsum.engine.states import State, target_states
from gsum.store.errors import ExitCode


@click.command("status")
@click.argument("patterns", nargs=-1, required=True, metavar="PATTERN…")
@options(principal=True, toolchain=True)
def command(patterns: tuple[str, ...]) -> int:
    """Say the state of each target that PATTERNs name.

    A gate: exits 4 if one is STALE or NOT BUILT, else 7 if one is INVALID.
    """
    config = current_config()
    universe = open_universe(config, patterns)
    with reading_store(config, config.root) as store:
        states = list(target_states(universe, store, universe.graph.requested).values())
    code = _gate([target.state for target in states])
    tally = Counter(target.state for target in states)
    counts = {state: tally[state] for state in State if tally[state]}
    if config.json:
        document = {
            "principal": universe.principal,
            "targets": [{"label": target.label, "state": target.state.value, "key": target.key} for target in states],
            "counts": {state.value: number for state, number in counts.items()},
            "exit_code": int(code),
        }
        emit_json("status", document)
        return code
    for target in states:
        emit(config, f"{state_text(target.state.value, STATE_WIDTH)}  {target.label}")
    summary = ", ".join(f"{number} {state.value}" for state, number in counts.items())
    emit(config, f"{counted(len(states), 'target')}: {summary}")
    return code


def _gate(states: list[State]) -> ExitCode:
    """Return the exit code: what must be built first is the stronger one."""
    if not all(state.current for state in states):
        return ExitCode.STALE
    return ExitCode.INVALID if State.INVALID in states else ExitCode.OK
