"""How far a program is worked ahead of, and that nothing is lost or blamed wrongly when it ends."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from support import fake_model

from gsum.engine.executors.make import make_executor
from gsum.engine.executors.pace import AHEAD_SECONDS, FEWEST, MOST, Pace
from gsum.engine.executors.protocol import ExecRequest, Failed, FailureReason, Generated
from gsum.rules.config import CommandToolchain, GrammarSection, Strength
from gsum.rules.requests import Message, Request, Role
from gsum.store.digests import Key

PROGRAM = str(Path(fake_model.__file__).resolve())

STUMBLING = """
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    open({log!r}, "a").write(request["key"][:4] + "\\n")
    if "poison" in request["messages"][0]["content"]:
        {what}
    print(json.dumps({{"key": request["key"], "text": "[]", "stop": "eos"}}), flush=True)
"""


def test_a_slow_program_gets_one_request_at_a_time():
    pace = Pace()
    for _ in range(5):
        pace.answered(1, AHEAD_SECONDS / (FEWEST - 1), dry=True)
        assert pace.width == 1


def test_a_quick_program_is_worked_ahead_of_more_and_more_up_to_a_bound():
    pace = Pace()
    widths = []
    for _ in range(8):
        pace.answered(pace.width, pace.width * 1e-5, dry=False)
        widths.append(pace.width)
    assert widths == [FEWEST, 16, 32, 64, 128, MOST, MOST, MOST]


def test_the_work_ahead_is_bounded_in_time_and_falls_at_once():
    pace = Pace()
    for _ in range(8):
        pace.answered(100, 0.1, dry=False)
    assert pace.width == int(AHEAD_SECONDS * 1000)
    pace.answered(1, 1.0, dry=False)
    assert pace.width == 1


def test_a_program_that_ran_dry_is_quicker_than_the_time_that_we_took():
    pace = Pace()
    pace.answered(1, 1e-4, dry=True)
    assert pace.width == FEWEST
    for width in (16, 32, 64, 128, MOST, MOST):
        pace.answered(pace.width, 1.0, dry=True)
        assert pace.width == width
    pace.answered(64, 1.0, dry=False)
    assert pace.width == 1


def test_after_a_stumble_it_begins_again():
    pace = Pace()
    pace.answered(100, 0.001, dry=True)
    pace.stumbled()
    assert pace.width == 1


class Rig:
    """An executor over a program that does something else at requests that say `poison`."""

    def __init__(self, folder: Path, what: str) -> None:
        self.log = folder / "log"
        script = STUMBLING.format(log=str(self.log), what=what)
        toolchain = CommandToolchain(
            command=(sys.executable, "-c", script),
            identity="stumbling-1",
            reproducible=True,
            network=False,
            grammar=GrammarSection(Strength.NONE),
        )
        self.executor = make_executor(toolchain, None, cache_dir=folder, workspace_root=folder)

    def run(self, poisoned: set[int], count: int, timeout: int = 60) -> dict[int, Generated | Failed]:
        """Ask for `count` answers after enough others that the program is known to be quick."""
        self._drain([_request(number, "plain", timeout) for number in range(1000, 1400)])
        requests = [_request(n, "poison" if n in poisoned else "plain", timeout) for n in range(count)]
        outcomes = self._drain(requests)
        return {int(key[:8]): outcome for key, outcome in outcomes.items()}

    def _drain(self, requests: list[ExecRequest]) -> dict[str, Generated | Failed]:
        self.executor.submit(requests)
        found: dict[str, Generated | Failed] = {}
        until = time.monotonic() + 60
        while len(found) < len(requests) and time.monotonic() < until:
            for outcome in self.executor.wait(1.0):
                assert outcome.key not in found, "one outcome a request"
                found[outcome.key] = outcome
        return found


def _request(number: int, text: str, timeout: int) -> ExecRequest:
    request = Request((Message(Role.USER, text),), 0, None, 384, 2048, "0" * 64, "1" * 64)
    return ExecRequest(Key(f"{number:08d}" * 8), request, timeout)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("os._exit(3)", FailureReason.CRASH),
        ('print("no JSON", flush=True); continue', FailureReason.PROTOCOL),
        ("time.sleep(600)", FailureReason.TIMEOUT),
    ],
)
def test_of_many_that_a_quick_program_has_only_the_one_at_fault_fails(tmp_path, what, reason):
    rig = Rig(tmp_path, what)
    try:
        outcomes = rig.run({3, 57}, 60, timeout=4 if reason is FailureReason.TIMEOUT else 60)
    finally:
        rig.executor.close()
    failed = {number: outcome.reason for number, outcome in outcomes.items() if isinstance(outcome, Failed)}
    assert failed == {3: reason, 57: reason}
    assert len(outcomes) == 60


def test_a_quick_program_really_has_many_at_a_time(tmp_path):
    rig = Rig(tmp_path, "pass")
    try:
        outcomes = rig.run(set(), 300)
        assert all(isinstance(outcome, Generated) for outcome in outcomes.values())
        assert rig.executor.width >= FEWEST
        assert rig.executor.capacity > rig.executor.width
    finally:
        rig.executor.close()
