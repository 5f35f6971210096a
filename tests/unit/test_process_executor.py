"""The line executor against real processes: order, timeouts, crashes, broken answers, process groups."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from support import fake_model

from gsum.engine.executors.client import MAX_CRASHES
from gsum.engine.executors.make import make_executor
from gsum.engine.executors.pool import Member, PoolExecutor
from gsum.engine.executors.protocol import ExecRequest, Failed, FailureReason, Generated, Outcome
from gsum.rules.config import CommandToolchain, GrammarSection, Strength
from gsum.rules.requests import Message, Request, Role
from gsum.store.digests import Key
from gsum.store.errors import ExitCode
from gsum.store.records import StopReason

PROGRAM = str(Path(fake_model.__file__).resolve())
LEAF = "Copy.\n\n[1] Ref 4\n[2] Product P-1 site: Lyon.\n[3] Product P-1 status: open.\n"


class Rig:
    """A command executor over the fake model, and the log of its calls."""

    def __init__(self, tmp_path: Path):
        self.tmp_path = tmp_path
        self.log = tmp_path / "calls"
        self.executors = []

    def executor(self, *options: str, command: tuple[str, ...] = ()):
        made = make_executor(
            CommandToolchain(
                command=command or (sys.executable, PROGRAM, "--log", str(self.log), *options),
                identity="fake-1",
                reproducible=True,
                network=False,
                grammar=GrammarSection(Strength.NONE),
            ),
            None,
            cache_dir=self.tmp_path,
            workspace_root=self.tmp_path,
        )
        self.executors.append(made)
        return made

    def calls(self) -> list[str]:
        return [line.split("\t")[0][:1] for line in self.log.read_text().splitlines()]

    def pids(self) -> list[int]:
        return [int(line.split("\t")[1]) for line in self.log.read_text().splitlines()]


@pytest.fixture
def rig(tmp_path):
    rig = Rig(tmp_path)
    yield rig
    for executor in rig.executors:
        executor.close()


def asked(letter: str, *, timeout: int = 60, grammar: str | None = None, text: str = LEAF) -> ExecRequest:
    request = Request((Message(Role.USER, text),), 0, grammar, 384, 2048, "0" * 64, "1" * 64)
    return ExecRequest(Key(letter * 64), request, timeout)


def drain(executor, count: int, seconds: float = 30.0) -> dict[str, Outcome]:
    outcomes: list[Outcome] = []
    until = time.monotonic() + seconds
    while len(outcomes) < count and time.monotonic() < until:
        outcomes += executor.wait(5.0)
    assert len(outcomes) == count
    return {outcome.key[0]: outcome for outcome in outcomes}


def gone(pid: int, seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False


def test_it_answers_every_request_with_one_program(rig):
    executor = rig.executor()
    executor.submit([asked("a"), asked("b", grammar="start: /x/"), asked("c", text="Copy.\n\n[1] nothing")])
    outcomes = drain(executor, 3)
    first = outcomes["a"]
    assert isinstance(first, Generated)
    assert first.generation.text == (
        '{"claims":[{"subject":"P-1","field":"site","value":"Lyon","evidence":[2]},'
        '{"subject":"P-1","field":"status","value":"open","evidence":[3]}]}'
    )
    assert bytes(first.generation.token_ids).decode() == first.generation.text
    assert first.generation.stop is StopReason.EOS
    assert first.sampled == len(first.generation.token_ids)
    assert outcomes["b"].generation.stop is StopReason.GRAMMAR
    assert outcomes["c"].generation.text == '{"claims":[]}'
    assert rig.calls() == ["a", "b", "c"]
    assert len(set(rig.pids())) == 1


def test_a_reduction_is_answered_with_claim_numbers():
    text = "Choose.\n\n[1] subject: P-1; field: site; value: Lyon\n[2] subject: P-2; field: status; value: on; off"
    assert fake_model.generate(text, 1) == (
        '{"claims":[{"subject":"P-1","field":"site","value":"Lyon","evidence":[1]}]}'
    )


def test_nothing_is_started_before_the_first_request(rig):
    executor = rig.executor()
    assert executor.wait(0.2) == []
    assert executor.pid is None
    executor.close()
    assert not rig.log.exists()


def test_wait_returns_empty_at_its_timeout(rig):
    executor = rig.executor("--slow", "1.5")
    executor.submit([asked("a")])
    began = time.monotonic()
    assert executor.wait(0.3) == []
    assert time.monotonic() - began < 1.2
    assert isinstance(drain(executor, 1)["a"], Generated)


def test_a_hang_times_out_with_its_whole_group_and_the_others_go_on(rig, tmp_path):
    pid_file = tmp_path / "grandchild"
    executor = rig.executor("--hang-at", "1", "--child-pid-file", str(pid_file))
    executor.submit([asked("a", timeout=2), asked("b"), asked("c")])
    outcomes = drain(executor, 3)
    failed = outcomes["a"]
    assert isinstance(failed, Failed)
    assert failed.reason is FailureReason.TIMEOUT
    assert failed.facts["allowed"] == "2 s"
    assert failed.exit_code is ExitCode.ACTION_FAILED
    assert isinstance(outcomes["b"], Generated)
    assert isinstance(outcomes["c"], Generated)
    assert rig.calls() == ["a", "b", "c"]
    assert gone(rig.pids()[0])
    assert gone(int(pid_file.read_text()))


@pytest.mark.parametrize(("option", "how"), [("--crash-at", "signal 9 (SIGKILL)"), ("--exit-at", "exit code 7")])
def test_a_crash_fails_only_the_request_in_flight(rig, option, how):
    executor = rig.executor(option, "2")
    executor.submit([asked("a"), asked("b"), asked("c")])
    outcomes = drain(executor, 3)
    assert isinstance(outcomes["a"], Generated)
    assert isinstance(outcomes["c"], Generated)
    failed = outcomes["b"]
    assert failed.reason is FailureReason.CRASH
    assert failed.facts["ended"] == how
    assert "as asked" in failed.facts["stderr"]
    assert rig.calls() == ["a", "b", "c"]
    assert len(set(rig.pids())) == 2


def test_kill_minus_nine_from_outside_is_a_crash(rig):
    executor = rig.executor("--hang-at", "1")
    executor.submit([asked("a"), asked("b")])
    until = time.monotonic() + 20
    while not (rig.log.exists() and rig.pids()) and time.monotonic() < until:
        assert executor.wait(0.05) == []
    os.kill(rig.pids()[0], signal.SIGKILL)
    outcomes = drain(executor, 2)
    assert outcomes["a"].reason is FailureReason.CRASH
    assert isinstance(outcomes["b"], Generated)


def test_a_program_that_died_while_idle_costs_no_request(rig):
    executor = rig.executor()
    for letter in "abcde":  # more often than it may crash
        executor.submit([asked(letter)])
        assert isinstance(drain(executor, 1)[letter], Generated)
        os.kill(executor.pid, signal.SIGKILL)
        assert gone(executor.pid)
    assert len(set(rig.pids())) == 5


def test_a_death_while_idle_is_noticed_and_keeps_no_one_awake(rig):
    """The pool's other worker takes its time; what is left of the dead one must not turn the wait into a loop."""
    idle, working = rig.executor(), rig.executor("--slow", "1.0")
    pool = PoolExecutor([Member(idle, lambda: True), Member(working, lambda: True)])
    pool.submit([asked("a"), asked("b")])
    assert isinstance(drain(pool, 1)["a"], Generated)
    os.kill(idle.pid, signal.SIGKILL)
    assert gone(idle.pid)
    began = time.process_time()
    assert isinstance(drain(pool, 1)["b"], Generated)
    assert time.process_time() - began < 0.3
    assert idle.pid is None


def test_a_program_that_dies_while_a_descendant_holds_its_pipes_is_noticed(rig, tmp_path):
    script = "import os, subprocess, sys\nsubprocess.Popen(['sleep', '600'])\nsys.stdin.readline()\nos._exit(3)\n"
    executor = rig.executor(command=(sys.executable, "-c", script))
    executor.submit([asked("a", timeout=30)])
    began = time.monotonic()
    failed = drain(executor, 1)["a"]
    assert time.monotonic() - began < 15
    assert failed.reason is FailureReason.CRASH
    assert failed.facts["ended"] == "exit code 3"


def test_it_gives_up_after_crashes_in_a_row(rig):
    executor = rig.executor("--crash-always")
    letters = "abcdef"
    executor.submit([asked(letter) for letter in letters])
    outcomes = drain(executor, len(letters))
    assert {outcome.reason for outcome in outcomes.values()} == {FailureReason.CRASH}
    assert len(set(rig.pids())) == MAX_CRASHES
    assert "3 times in a row" in outcomes["f"].message
    executor.submit([asked("0")])
    assert drain(executor, 1)["0"].reason is FailureReason.CRASH
    assert len(rig.pids()) == MAX_CRASHES


@pytest.mark.parametrize("kind", [*(k for k in fake_model.GARBAGE if k != "twice"), "oversized"])
def test_a_broken_answer_fails_one_request_and_the_stream_is_not_trusted_again(rig, kind):
    executor = rig.executor("--garbage-at", "1", "--garbage", kind)
    executor.submit([asked("a"), asked("b")])
    outcomes = drain(executor, 2)
    failed = outcomes["a"]
    assert isinstance(failed, Failed)
    assert failed.reason is FailureReason.PROTOCOL
    assert failed.facts["answer"]
    assert isinstance(outcomes["b"], Generated)
    assert len(set(rig.pids())) == 2


def test_a_second_answer_to_one_request_ends_the_program(rig):
    executor = rig.executor("--garbage-at", "1", "--garbage", "twice")
    executor.submit([asked("a"), asked("b"), asked("c")])
    outcomes = drain(executor, 3)
    assert outcomes["a"].generation.text == "{}"
    assert isinstance(outcomes["c"], Generated)
    assert len(set(rig.pids())) == 2


def test_an_error_is_passed_on_as_one_line(rig):
    executor = rig.executor("--error-at", "1")
    executor.submit([asked("a"), asked("b")])
    outcomes = drain(executor, 2)
    assert outcomes["a"].reason is FailureReason.OVER_BUDGET
    assert outcomes["a"].facts == {"error": "no answer"}
    assert isinstance(outcomes["b"], Generated)
    assert len(set(rig.pids())) == 1


def test_standard_error_is_drained_and_bounded(rig):
    executor = rig.executor("--noise", "--exit-at", "30")
    letters = "abcdefghijklmnopqrstuvwxyzABCD"
    executor.submit([asked(letter) for letter in letters])
    outcomes = drain(executor, len(letters))
    tail = outcomes["D"].facts["stderr"].splitlines()
    assert len(tail) <= 20
    assert max(map(len, tail)) <= 400
    assert tail[-1] == "exiting as asked"


def test_large_requests_pass_through_the_pipe(rig):
    executor = rig.executor()
    executor.submit([asked("a", text=LEAF + "x" * 3_000_000), asked("b")])
    outcomes = drain(executor, 2)
    assert outcomes["a"].generation == outcomes["b"].generation


def test_cancel_is_fast_keeps_what_is_done_and_can_be_followed_by_more(rig):
    executor = rig.executor("--hang-at", "2")
    executor.submit([asked("a"), asked("b"), asked("c")])
    first = executor.wait(20)
    until = time.monotonic() + 20
    while len(rig.pids()) < 2 and time.monotonic() < until:
        assert executor.wait(0.05) == []
    began = time.monotonic()
    executor.cancel()
    outcomes = drain(executor, 2)
    assert time.monotonic() - began < 2
    assert [outcome.key[0] for outcome in first] == ["a"]
    assert {outcomes[x].reason for x in "bc"} == {FailureReason.CANCELLED}
    assert outcomes["b"].exit_code is ExitCode.INTERRUPTED
    assert all(gone(pid) for pid in rig.pids())
    executor.submit([asked("d")])
    assert isinstance(drain(executor, 1)["d"], Generated)


def test_cancel_keeps_an_answer_that_has_already_arrived(rig):
    executor = rig.executor()
    executor.submit([asked("a")])
    until = time.monotonic() + 20
    while not rig.log.exists() and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.5)  # the answer lies in the pipe; nobody has read it
    executor.cancel()
    assert isinstance(drain(executor, 1)["a"], Generated)


def test_close_ends_an_idle_program_by_closing_its_input(rig):
    executor = rig.executor()
    executor.submit([asked("a")])
    drain(executor, 1)
    executor.close()
    executor.close()
    assert gone(rig.pids()[0])


def test_the_program_is_out_of_reach_of_the_terminal(rig):
    executor = rig.executor()
    executor.submit([asked("a")])
    drain(executor, 1)
    pid = rig.pids()[0]
    assert os.getsid(pid) == pid != os.getsid(0)


def test_a_missing_program_is_a_toolchain_failure(rig):
    executor = rig.executor(command=("./no-such-program",))
    executor.submit([asked("a"), asked("b")])
    outcomes = drain(executor, 2)
    for failed in outcomes.values():
        assert failed.reason is FailureReason.MODEL_MISSING
        assert failed.exit_code is ExitCode.TOOLCHAIN
        assert "BUILD.toml" in failed.hint
