"""Workers that outlive their client: found again, shared, replaced when dead, refused when not the user's own."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from support.tiny_model import NUMERICS, edit_json, make_model, toolchain_for
from support.warm_workers import ended, gone, only

from gsum.engine.executors import runtime as runtimes
from gsum.engine.executors.local import LocalDialect
from gsum.engine.executors.make import make_executor
from gsum.engine.executors.protocol import ExecRequest, FailureReason, Generated
from gsum.engine.executors.runtime import Runtime, RuntimeRefused
from gsum.engine.executors.staying import Warm
from gsum.engine.executors.workers import look, stop
from gsum.engine.llm import fit
from gsum.engine.llm.wire import Hello, State
from gsum.engine.llm.worker import report_bug
from gsum.rules.config import Device, NumericsSection, Strength
from gsum.rules.requests import Message, Request, Role

RAGGED = NumericsSection("ragged-1", 1)
ENDLESS = "start: /[a-z]{3400}/"
SECRET = "Sesame-4711"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("tiny") / "m")


@pytest.fixture
def sockets(tmp_path):
    with ended(tmp_path / "run") as folder:
        yield folder


class Clients:
    """Executors over one folder of sockets, all closed at the end, and the notices of their workers."""

    def __init__(self, model: Path, tmp_path: Path, sockets: Path):
        self.model, self.tmp_path, self.sockets = model, tmp_path, sockets
        self.notices, self.made = [], []

    def __call__(self, numerics=RAGGED, idle=300, model=None, alone=False, **changes):
        made = make_executor(
            toolchain_for(model or self.model, **changes),
            numerics,
            cache_dir=self.tmp_path / "cache",
            workspace_root=self.tmp_path,
            name="tiny",
            environ=os.environ,
            warm=Warm(self.sockets, idle, self.notices.append),
            alone=alone,
        )
        self.made.append(made)
        return made

    def started(self):
        """What was said of the workers, in order: whether each was warm."""
        return [notice.warm for notice in self.notices if notice.seconds is None]


@pytest.fixture
def clients(model, tmp_path, sockets):
    clients = Clients(model, tmp_path, sockets)
    yield clients
    for executor in clients.made:
        executor.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with ended(tmp_path_factory.mktemp("shared") / "run") as folder:
        yield folder


@pytest.fixture
def sharing(model, shared):
    """Clients of one worker that several tests use: it is warm for all but the first."""
    clients = Clients(model, shared.parent, shared)
    yield clients
    for executor in clients.made:
        executor.close()


def ask(letter: str, text: str = "Product P-1 site: Lyon.", *, timeout: int = 120, **changes) -> ExecRequest:
    request = Request((Message(Role.SYSTEM, "Copy."), Message(Role.USER, text)), 1, None, 12, 500, "t", "p")
    return ExecRequest(letter * 64, msgspec.structs.replace(request, **changes), timeout)


def answers(executor, count):
    found = []
    while len(found) < count:
        found += executor.wait(120)
    return {outcome.key[0]: outcome for outcome in found}


def one(executor, letter="a", **changes):
    executor.submit([ask(letter, **changes)])
    return answers(executor, 1)[letter]


def sent(executor, folder, count):
    """Let an executor hand over what it has, and wait until the worker has `count` requests at hand."""
    until(lambda: executor.wait(0) or only(folder).status.at_hand == count, 60)


def until(condition, seconds=20.0):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


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
from unit.test_warm_worker import Clients, ask, ENDLESS
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


def test_a_memory_limit_that_the_model_does_not_fit_is_refused_with_both_figures(clients):
    if sys.platform != "linux":
        pytest.skip("the limit is Linux's")
    failed = one(clients(memory_mb=16))
    assert failed.reason is FailureReason.MEMORY
    assert failed.facts["allowed"] == "16 MB"
    assert int(failed.facts["taken by the model"].split()[0]) > 16


def test_a_declared_memory_limit_is_the_process_s_and_a_long_path_of_the_folder_is_no_obstacle(clients, tmp_path):
    if sys.platform != "linux":
        pytest.skip("the limit and /proc are Linux's")
    deep = tmp_path / ("d" * 120)
    with ended(deep):
        clients.sockets = deep
        executor = clients(memory_mb=64_000)
        assert isinstance(one(executor), Generated)
        assert only(deep).status.served == 1
        limits = Path(f"/proc/{executor.pid}/limits").read_text()
        assert str(64_000 << 20) in next(line for line in limits.splitlines() if line.startswith("Max data size"))


def test_a_warm_worker_has_no_network_but_its_socket(sharing):
    executor = sharing()
    assert isinstance(one(executor), Generated)
    ours, theirs = (Path(f"/proc/{pid}/ns/net").readlink() for pid in ("self", executor.pid))
    if ours == theirs:
        pytest.skip("this system gives no network namespace: test_the_worker_has_no_network covers its sockets")
    interfaces = Path(f"/proc/{executor.pid}/net/dev").read_text().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in interfaces] in ([], ["lo"])
    assert Path(f"/proc/{executor.pid}/net/route").read_text().splitlines()[1:] == []


def test_what_the_dead_left_long_ago_is_swept_when_a_worker_starts(clients, sockets):
    with Runtime(sockets) as runtime, runtime.lock():
        for name in ("old", "lately"):
            runtime.listen(name).close()
            os.close(runtime.log(name))
            runtime.note_pid(name, 1)
        listening = runtime.listen("lives")
        os.close(runtime.log("alone"))
    for file in ("old.sock", "old.log", "old.pid", "alone.log", "lives.sock"):
        os.utime(sockets / file, (1, 1))
    with listening:
        assert isinstance(one(clients()), Generated)
        left = {path.name for path in sockets.iterdir()}
    assert {"lives.sock", "lately.sock", "lately.log", "lately.pid"} <= left
    assert not {"old.sock", "old.log", "old.pid", "alone.log"} & left


def test_a_lock_that_another_process_holds_fails_what_was_asked_and_says_so(clients, sockets, monkeypatch):
    monkeypatch.setattr(runtimes, "_LOCK_SECONDS", 0.1)
    with Runtime(sockets) as runtime, runtime.lock():
        failed = one(clients())
    assert (failed.reason, failed.facts["folder"]) == (FailureReason.ERROR, str(sockets))
    assert failed.facts["reason"] == "another process holds the lock of the workers' folder"
    assert "GSUM_RUNTIME_DIR" in failed.hint


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_may_use_is_refused(clients, sockets, mode):
    sockets.mkdir()
    sockets.chmod(mode)
    failed = one(clients())
    assert (failed.reason, failed.facts["folder"]) == (FailureReason.MISMATCH, str(sockets))
    assert f"{mode:03o}" in failed.facts["why"]
    assert "GSUM_RUNTIME_DIR" in failed.hint
    sockets.chmod(0o700)


def test_a_link_in_the_folder_s_place_is_refused(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(RuntimeRefused):
        Runtime(tmp_path / "link")


def test_the_other_end_of_a_socket_must_be_the_same_user(tmp_path, monkeypatch):
    if not hasattr(socket, "SO_PEERCRED"):
        pytest.skip("this system does not tell")
    me = os.getuid()
    with Runtime(tmp_path / "run") as runtime, runtime.lock(), contextlib.closing(runtime.listen("w")):
        sock = runtime.connect("w")
        with sock:
            monkeypatch.setattr(runtimes.os, "getuid", lambda: me + 1)
            with pytest.raises(PermissionError):
                runtimes.require_own(sock)
        with pytest.raises(PermissionError):
            runtime.connect("w")


def test_the_name_tells_apart_what_would_be_another_worker(model, tmp_path):
    def name(numerics=NUMERICS, slot=0, environment=None, **changes):
        hello = Hello("tiny", toolchain_for(model, **changes), numerics, str(model), str(tmp_path), code="c")
        return fit.worker_name(hello, environment or {}, slot)

    same = {
        name(),
        name(timeout_seconds=9),
        name(grammar=msgspec.structs.replace(toolchain_for(model).grammar, strength=Strength.LITERAL)),
    }
    others = {
        name(RAGGED),
        name(NumericsSection("single-2", 2)),
        name(slot=1),
        name(environment={"CUDA_VISIBLE_DEVICES": "1"}),
        name(device=Device.CUDA),
        name(memory_mb=100),
        name(files={"config.json": "0" * 64}),
    }
    assert len(same) == 1
    assert len(same | others) == 1 + 7


def test_the_code_digest_covers_every_module_that_a_worker_imports():
    code = (
        "import sys, gsum.engine.llm.worker\n"
        "print(*(module.__file__ for name, module in sys.modules.items() if name.startswith('gsum.')))"
    )
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    root = Path(__file__).parents[2]
    covered = {path for pattern in fit.CODE for path in root.glob(pattern)}
    assert {path for path in map(Path, listed) if path.name != "__init__.py"} <= covered


def test_an_error_that_ends_a_worker_is_reported_without_its_text(capsys):
    try:
        raise ValueError(f"the line {SECRET!r} is odd")
    except ValueError as error:
        report_bug(type(error), error, error.__traceback__)
    said = capsys.readouterr().err
    assert SECRET not in said
    assert said.startswith("ValueError at test_warm_worker.py:")


def test_without_idle_time_a_worker_ends_with_its_executor_and_no_socket_is_made(clients, sockets):
    executor = clients(idle=0)
    assert isinstance(one(executor), Generated)
    pid = executor.pid
    executor.close()
    assert gone(pid)
    assert not sockets.exists()


def test_only_what_a_worker_was_not_given_comes_back(clients):
    executor = clients()
    executor.submit([ask(letter) for letter in "abc"])
    assert not executor.ready
    assert [request.key[0] for request in executor.give_back(2)] == ["c", "b"]
    assert isinstance(answers(executor, 1)["a"], Generated)
    assert executor.ready
    executor.submit([ask("d")])
    assert executor.give_back(1) == []
    assert isinstance(answers(executor, 1)["d"], Generated)


def test_who_wants_to_be_alone_gets_a_worker_of_its_own_that_reads_no_kept_prefix(clients, sockets):
    warm, alone = clients(), clients(alone=True)
    shared = one(warm)
    own = one(alone)
    assert own.generation == shared.generation
    assert own.reused == 0
    assert alone.pid != warm.pid == only(sockets).status.pid
    pid = alone.pid
    alone.close()
    assert gone(pid)


def test_a_dialect_without_sockets_says_nothing_of_idling(model, tmp_path):
    dialect = LocalDialect(
        "tiny", toolchain_for(model), NUMERICS, cache_dir=tmp_path, workspace_root=tmp_path, environ=os.environ
    )
    assert not dialect.is_there()
