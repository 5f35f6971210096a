"""What bounds warm workers: memory, network, whose folder it is, which clients fit, when they end by themselves."""

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from support.tiny_model import NUMERICS, make_model, toolchain_for
from support.warm_clients import RAGGED, SECRET, answers, ask, one
from support.warm_workers import ended, gone, only

from gsum.engine.executors import runtime as runtimes
from gsum.engine.executors.local import LocalDialect
from gsum.engine.executors.protocol import FailureReason, Generated
from gsum.engine.executors.runtime import Runtime, RuntimeRefused
from gsum.engine.llm import fit
from gsum.engine.llm.wire import Hello
from gsum.engine.llm.worker import report_bug
from gsum.rules.config import Device, NumericsSection, Strength


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("tiny") / "m")


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
    assert said.startswith(f"ValueError at {Path(__file__).name}:")


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
