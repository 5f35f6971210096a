"""Workers that outlive their client: found again, shared, replaced when dead, refused when not the user's own."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.tiny_model import edit_json, make_model, toolchain_for
from support.warm_clients import ENDLESS, SECRET, answers, ask, one, sent, until
from support.warm_workers import gone, only

from gsum.engine.executors.protocol import FailureReason, Generated
from gsum.engine.executors.runtime import Runtime
from gsum.engine.executors.workers import held_memory, look, stop
from gsum.engine.llm.wire import State


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("tiny") / "m")


def test_a_worker_stays_and_the_next_client_finds_it_warm(clients, sockets):
    first = clients()
    assert look(sockets) == []
    cold = one(first)
    first.close()
    status = only(sockets).status
    second = clients()
    warm = one(second)
    assert cold.generation == warm.generation
    assert (cold.reused, warm.reused > 0) == (0, True)  # the prefix is kept, too
    assert clients.started() == [False, True]
    assert [notice.seconds is None for notice in clients.notices] == [True, False] * 2
    assert second.pid == status.pid
    assert (status.state, status.toolchain, status.device, status.served) == (State.IDLE, "tiny", "cpu", 1)
    assert status.memory > 2**20
    assert held_memory(sockets, "tiny") > 2**20 and held_memory(sockets, "another") == 0
    assert (status.clients, status.idle_seconds) == (0, 300)
    assert look(sockets)[0].status.clients == 1


def test_its_socket_and_log_are_the_user_s_alone_and_no_text_is_in_the_log(sharing, shared):
    assert isinstance(one(sharing(), text=f"{SECRET} site: Lyon."), Generated)
    files = [path for path in shared.iterdir() if path.name != "lock"]
    assert sorted(path.suffix for path in files) == [".log", ".pid", ".sock"]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert shared.stat().st_mode & 0o777 == 0o700
    [log] = [path for path in files if path.suffix == ".log"]
    assert SECRET.encode() not in log.read_bytes()


def test_two_clients_at_once_share_it_each_with_requests_of_the_same_keys(sharing, shared):
    first, second = sharing(), sharing()
    one(first, "z")
    before = only(shared).status
    letters = "abcdef"
    first.submit([ask(letter, f"Product P-{i} site: Lyon.") for i, letter in enumerate(letters)])
    second.submit([ask(letter, f"Product P-{i} site: Lyon.") for i, letter in enumerate(letters)])
    ours, theirs = answers(first, 6), answers(second, 6)
    assert {key: one.generation for key, one in ours.items()} == {key: one.generation for key, one in theirs.items()}
    assert sharing.started()[1:] == [True]
    after = only(shared).status
    assert (after.pid, after.served) == (before.pid, before.served + 12)


def test_a_client_that_goes_away_takes_its_requests_with_it(sharing, shared):
    leaving, staying = sharing(), sharing()
    assert isinstance(one(staying), Generated)
    served = only(shared).status.served
    leaving.submit([ask(letter, grammar=ENDLESS, max_new_tokens=3500) for letter in "bcdefghi"])
    sent(leaving, shared, 8)
    leaving.close()
    assert isinstance(one(staying, "c"), Generated)
    assert only(shared).status.at_hand == 0
    assert only(shared).status.served == served + 1


CLIENT = """
import os, sys
sys.path[:0] = {path!r}
from pathlib import Path
from support.tiny_model import toolchain_for
from support.warm_clients import Clients, ask, ENDLESS
clients = Clients(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
executor = clients()
executor.submit([ask("z", grammar=ENDLESS, max_new_tokens=3500)] if sys.argv[4] == "endless" else [ask("z")])
while not (outcomes := executor.wait(120)):
    pass
print(executor.pid, outcomes[0].generation.text if hasattr(outcomes[0], "generation") else outcomes[0].message)
"""


def client_process(clients, what):
    tests = Path(__file__).parents[1]
    argv = [clients.model, clients.tmp_path, clients.sockets, what]
    program = CLIENT.format(path=[str(tests)])
    return subprocess.Popen([sys.executable, "-c", program, *map(str, argv)], stdout=subprocess.PIPE, text=True)


def test_many_clients_that_start_at_once_start_one_worker_and_none_fails(clients, sockets):
    processes = [client_process(clients, "short") for _ in range(4)]
    said = [process.communicate(timeout=200)[0].split(maxsplit=1) for process in processes]
    assert {process.returncode for process in processes} == {0}
    assert {pid for pid, _ in said} == {str(only(sockets).status.pid)}
    assert len({text for _, text in said}) == 1


def test_the_worker_outlives_a_client_killed_in_a_request_and_drops_it(sharing, shared):
    assert isinstance(one(sharing()), Generated)
    process = client_process(sharing, "endless")
    until(lambda: only(shared).status.at_hand == 1, 60)
    process.kill()
    process.wait()
    process.stdout.close()
    until(lambda: only(shared).status.at_hand == 0)
    assert sharing.made[0].pid == only(shared).status.pid
    assert isinstance(one(sharing(), "b"), Generated)


def test_a_worker_killed_in_mid_build_fails_what_is_in_flight_and_is_replaced_at_its_stale_socket(clients, sockets):
    executor = clients()
    assert isinstance(one(executor), Generated)
    pid, width, name = executor.pid, executor.width, only(sockets).name
    executor.submit([ask(letter, grammar=ENDLESS, max_new_tokens=3500) for letter in "bcdefghi"] + [ask("j")])
    sent(executor, sockets, 8)
    os.kill(pid, signal.SIGKILL)
    until(lambda: look(sockets) == [])
    with Runtime(sockets) as runtime:
        assert runtime.names() == [name]  # the socket is there, but nobody listens
    outcomes = answers(executor, 9)
    assert {outcomes[letter].reason for letter in "bcdefghi"} == {FailureReason.CRASH}
    assert outcomes["b"].facts["ended"] == "signal 9 (SIGKILL)"
    assert isinstance(outcomes["j"], Generated)
    assert executor.width == width // 2
    assert executor.pid == only(sockets).status.pid != pid


def test_an_idle_worker_ends_by_itself_and_takes_its_socket_away(clients, sockets):
    executor = clients(idle=1)
    assert isinstance(one(executor), Generated)
    time.sleep(1.5)
    pid = only(sockets).status.pid  # a client is no idleness, however long it says nothing
    executor.close()
    assert gone(pid)
    with Runtime(sockets) as runtime:
        assert runtime.names() == []


def test_stopping_waits_for_those_that_it_serves_and_lets_others_start_their_own(clients, sockets):
    serving = clients()
    assert isinstance(one(serving), Generated)
    worker = only(sockets)
    assert [one_.ended for one_ in stop(sockets, [worker], now=False, seconds=0.5)] == [False]
    assert isinstance(one(serving, "b"), Generated)
    assert isinstance(one(clients(), "c"), Generated)
    assert only(sockets).status.pid != worker.status.pid
    serving.close()
    assert gone(worker.status.pid)
    clients.made[-1].close()
    assert [one_.ended for one_ in stop(sockets, [only(sockets)], now=False, seconds=10)] == [True]
    assert look(sockets) == []


def test_stopping_now_fails_what_is_in_flight(clients, sockets):
    executor = clients()
    assert isinstance(one(executor), Generated)
    executor.submit([ask("b", grammar=ENDLESS, max_new_tokens=3500)])
    sent(executor, sockets, 1)
    assert [one_.ended for one_ in stop(sockets, [only(sockets)], now=True, seconds=10)] == [True]
    assert answers(executor, 1)["b"].reason is FailureReason.CRASH


def test_cancelling_leaves_the_worker_to_others(sharing, shared):
    executor = sharing()
    assert isinstance(one(executor), Generated)
    executor.submit([ask("b", grammar=ENDLESS, max_new_tokens=3500)])
    executor.cancel()
    assert answers(executor, 1)["b"].reason is FailureReason.CANCELLED
    until(lambda: only(shared).status.at_hand == 0)
    assert isinstance(one(executor, "c"), Generated)
    assert sharing.started()[1:] == [True]


def test_a_refusal_reaches_every_client_and_the_worker_goes(clients, sockets):
    first, second = (clients(chat_template="0" * 64) for _ in range(2))
    first.submit([ask("a")])
    second.submit([ask("b")])
    for executor, letter in ((first, "a"), (second, "b")):
        failed = answers(executor, 1)[letter]
        assert (failed.reason, list(failed.facts)) == (FailureReason.MISMATCH, ["chat_template"])
    until(lambda: look(sockets) == [])


def test_a_model_that_changed_under_a_warm_worker_is_not_served(clients, sockets, tmp_path):
    own = shutil.copytree(clients.model, tmp_path / "own")
    declared = toolchain_for(own).files
    assert isinstance(one(clients(model=own)), Generated)
    clients.made[0].close()
    edit_json(own / "config.json", rms_norm_eps=0.25)
    failed = one(clients(model=own, files=declared), "b")
    assert failed.reason is FailureReason.MISMATCH
    assert failed.facts["file"] == str(own / "config.json")  # a fresh worker has read it, and found what differs
    assert clients.started() == [False, True, False]
    until(lambda: look(sockets) == [])


def test_model_files_that_were_touched_or_fetched_again_cost_a_warm_worker_and_no_build(clients, sockets, tmp_path):
    own = shutil.copytree(clients.model, tmp_path / "own")
    first, second = clients(model=own), clients(model=own)
    before = one(first)
    assert isinstance(before, Generated)
    pid = first.pid
    os.utime(own / "config.json")
    after = one(second, "b")
    assert after.generation == before.generation
    assert second.pid == only(sockets).status.pid != pid
    assert isinstance(one(first, "c"), Generated)  # the first worker serves whom it has
    assert first.pid == pid
    first.close()
    second.close()
    weights = own / "model.safetensors"
    shutil.copy(weights, tmp_path / "again")
    (tmp_path / "again").replace(weights)
    assert isinstance(one(clients(model=own), "d"), Generated)
