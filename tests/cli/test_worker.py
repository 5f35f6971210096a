"""`gsum worker status|stop` over a real worker, what a build says of workers, and that nothing is started to look."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from support.cli import Gsum
from support.documented import check
from support.tiny_model import NUMERICS, make_model, toolchain_for
from support.warm_workers import ended, gone, only

from gsum.cli.config import config_from
from gsum.cli.executors import executors
from gsum.cli.worker import _next
from gsum.engine.events import WorkerReady, WorkerStarted
from gsum.engine.executors.make import make_executor
from gsum.engine.executors.protocol import ExecRequest, Generated
from gsum.engine.executors.staying import Warm
from gsum.engine.executors.workers import Ended, Seen
from gsum.rules.requests import Message, Request, Role
from gsum.store.errors import ExitCode

REQUEST = Request((Message(Role.USER, "Product P-1 site: Lyon."),), 0, None, 8, 500, "t", "p")


@pytest.fixture
def sockets(tmp_path):
    with ended(tmp_path / "run") as folder:
        yield folder


@pytest.fixture
def gsum(tmp_path, sockets):
    workspace = Gsum(tmp_path / "w")
    return lambda *words: workspace(*words, env={"GSUM_RUNTIME_DIR": str(sockets)})


@pytest.fixture
def worker(tmp_path, sockets):
    """A client of a warm worker, which has answered once."""
    executor = make_executor(
        toolchain_for(make_model(tmp_path / "m")),
        NUMERICS,
        cache_dir=tmp_path / "cache",
        workspace_root=tmp_path,
        name="tiny",
        environ=os.environ,
        warm=Warm(sockets, 300),
    )
    executor.submit([ExecRequest("a" * 64, REQUEST, 120)])
    while not (outcomes := executor.wait(120)):
        pass
    assert isinstance(outcomes[0], Generated)
    yield executor
    executor.close()


def test_where_none_runs_looking_and_stopping_say_so_and_make_nothing(gsum, sockets):
    looked = gsum("worker", "status")
    assert (looked.code, looked.out) == (0, "no worker runs; the first build that needs a model starts one\n")
    assert gsum("worker", "status", "--json").document["workers"] == []
    assert (gsum("worker", "stop").code, gsum("worker", "stop").out) == (0, "no worker runs\n")
    named = gsum("worker", "stop", "4711")
    assert (named.code, "no worker `4711` runs" in named.err) == (ExitCode.USAGE, True)
    assert not sockets.exists()


def test_a_worker_is_listed_waited_for_and_stopped(gsum, sockets, worker):
    pid = only(sockets).status.pid
    listed = gsum("worker", "status")
    assert listed.out.splitlines()[0].split() == [
        "pid", "toolchain", "device", "state", "age", "idle", "memory", "requests",
    ]  # fmt: skip
    row = listed.out.splitlines()[1]
    assert row.startswith(f"{pid}")
    assert "tiny" in row
    assert "in use" in row
    assert "1 answered, 0 at hand" in row
    check("worker status", gsum("worker", "status", "--json").document)
    busy = gsum("worker", "stop", "tiny", "--wait", "0.3")
    assert busy.code == ExitCode.ACTION_FAILED
    assert f"worker {pid} of `tiny` still at work" in busy.out
    threading.Timer(0.5, worker.close).start()
    # It takes no new clients, so it is not listed any more, and there is nothing left to stop.
    assert gsum("worker", "stop").out == "no worker runs\n"


def test_a_worker_that_was_stopped_by_a_signal_is_listed_by_its_process_id_and_ended(gsum, sockets, worker):
    worker.close()
    pid = only(sockets).pid
    os.kill(pid, signal.SIGSTOP)
    try:
        while "stopped" not in Path(f"/proc/{pid}/status").read_text():
            time.sleep(0.01)
        row = gsum("worker", "status").out.splitlines()[1]
        assert row.startswith(f"{pid}")
        assert "does not answer" in row
        [told] = gsum("worker", "status", "--json").document["workers"]
        assert (told["answers"], told["pid"]) == (False, pid)
        nobody = gsum("worker", "stop", "None")
        assert (nobody.code, "no worker `None` runs" in nobody.err) == (ExitCode.USAGE, True)
        left = gsum("worker", "stop", str(pid), "--wait", "0.1")
        assert (left.code, left.out.splitlines()[-1].partition(",")[0]) == (1, "next: gsum worker stop --now")
        assert gsum("worker", "stop", "--now", "--wait", "0.1").code == 0
        assert gone(pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_what_can_not_be_ended_is_named_by_its_process_id():
    ended_not = Ended(Seen("w", None, 4711), ended=False)
    assert _next([ended_not, Ended(Seen("v", None, 4712), ended=True)], now=True) == "next: kill -9 4711"


def test_stopping_one_that_nobody_uses_ends_it(gsum, sockets, worker):
    worker.close()
    pid = only(sockets).status.pid
    stopped = gsum("worker", "stop", str(pid), "--json")
    check("worker stop", stopped.document)
    assert stopped.document["workers"] == [{"pid": pid, "toolchain": "tiny", "ended": True}]
    assert stopped.code == 0
    assert gsum("worker", "status", "--json").document["workers"] == []


def test_the_folder_of_sockets_comes_from_the_environment(tmp_path):
    def folder(**environ: str) -> str:
        return str(config_from({}, environ, tmp_path).runtime_dir)

    (tmp_path / "x").mkdir()
    assert folder(GSUM_RUNTIME_DIR="here", XDG_RUNTIME_DIR=str(tmp_path)) == str(tmp_path / "here")
    assert folder(XDG_RUNTIME_DIR=str(tmp_path / "x")) == str(tmp_path / "x/gsum")
    own = f"gsum-{os.getuid()}"
    assert folder(XDG_RUNTIME_DIR=str(tmp_path / "absent"), TMPDIR="/var/tmp") == f"/var/tmp/{own}"
    assert folder() == f"/tmp/{own}"


def test_a_build_is_told_of_workers_that_start_and_of_those_it_finds(tmp_path, sockets):
    make_model(tmp_path / "w" / "m")
    workspace = _workspace(tmp_path / "w")
    config = config_from({"workspace": tmp_path / "w"}, {"GSUM_RUNTIME_DIR": str(sockets)}, tmp_path)
    said = []
    for _ in range(2):
        with executors(config, workspace, emit=said.append) as executor_for:
            executor = executor_for("tiny")
            executor.submit([ExecRequest("a" * 64, REQUEST, 120)])
            while not executor.wait(120):
                pass
    assert [type(event) for event in said] == [WorkerStarted, WorkerReady] * 2
    assert [(event.toolchain, event.worker, event.warm) for event in said] == [
        ("tiny", 0, False),
        ("tiny", 0, False),
        ("tiny", 0, True),
        ("tiny", 0, True),
    ]
    assert said[3].seconds < said[1].seconds


def _workspace(root):
    import msgspec
    from support.workspaces import make_workspace

    from gsum.rules.config import FolderSource
    from gsum.rules.loader import load_workspace

    make_workspace(root, {"S-1": 1})
    loaded = load_workspace(root)
    toolchain = msgspec.structs.replace(toolchain_for(root / "m"), source=FolderSource("m"))
    return msgspec.structs.replace(
        loaded, toolchains={**loaded.toolchains, "tiny": toolchain}, numerics={**loaded.numerics, "test": NUMERICS}
    )
