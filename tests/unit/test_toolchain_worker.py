"""The worker as a real process over a tiny model: refusals, isolation, death, and what it answers."""

import os
import signal
import subprocess
import sys
import time

import pytest
from support.tiny_model import NUMERICS, edit_json, make_model, toolchain_for
from support.warm_clients import ENDLESS, RAGGED, SECRET, answers, ask

from gsum.engine.executors.local import LocalDialect, numerics_environment
from gsum.engine.executors.make import make_executor
from gsum.engine.executors.observe import observe_toolchain
from gsum.engine.executors.protocol import Failed, FailureReason, Generated
from gsum.engine.llm.kept import Start
from gsum.engine.llm.schemes import SCHEMES
from gsum.rules.config import Device, FolderSource, GrammarSection, NumericsSection, Strength
from gsum.store.errors import ExitCode

RAGGED_WIDTH = SCHEMES["ragged-1"].width


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("tiny") / "m")


def executor_for(folder, tmp_path, numerics=NUMERICS, **changes):
    return make_executor(
        toolchain_for(folder, **changes),
        numerics,
        cache_dir=tmp_path / "cache",
        workspace_root=tmp_path,
        name="tiny",
        environ=os.environ,
    )


@pytest.fixture
def running(folder, tmp_path):
    executor = executor_for(folder, tmp_path)
    yield executor
    executor.close()


def test_a_generation_says_all_that_was_observed(running):
    running.submit([ask("a"), ask("b")])
    outcomes = answers(running, 2)
    first, second = outcomes["a"], outcomes["b"]
    assert isinstance(first, Generated)
    assert first.generation == second.generation
    assert first.prompt_tokens == first.prefilled + first.reused
    assert (first.reused, second.reused > 0) == (0, True)
    assert first.forced + first.sampled == len(first.generation.token_ids)
    assert first.device.startswith("cpu: ")
    assert first.device.endswith("1 threads")
    assert first.dtype == "float32"
    assert {"torch", "transformers", "llguidance"} <= set(first.versions)
    assert first.settings == {
        "method": "greedy",
        "do_sample": False,
        "num_beams": 1,
        "temperature": None,
        "top_p": None,
        "top_k": None,
        "min_p": None,
        "repetition_penalty": None,
        "max_new_tokens": 12,
        "end_ids": "0,2",
        "grammar_backend": None,
    }
    assert first.seconds > 0


def test_failures_of_one_request_leave_the_worker_in_service(running):
    running.submit(
        [
            ask("a", "x " * 600),
            ask("b", "x" * 2_000_000),
            ask("c", f"{SECRET} " * 3, grammar=f"start: ({SECRET}"),
            ask("d", max_new_tokens=4096),
            ask("e"),
        ]
    )
    outcomes = answers(running, 5)
    exact, bound, broken, context, good = (outcomes[letter] for letter in "abcde")
    assert exact.reason is bound.reason is context.reason is FailureReason.OVER_BUDGET
    assert exact.facts["budget"] == "500 tokens"
    assert int(exact.facts["needed"].split()[0]) > 500
    assert bound.facts["needed"].startswith("at least ")
    assert exact.exit_code is ExitCode.ACTION_FAILED
    assert broken.reason is FailureReason.ERROR
    assert SECRET not in f"{broken.message} {broken.facts} {broken.hint}"
    assert isinstance(good, Generated)


def test_several_are_in_flight_and_each_gets_what_it_gets_alone(folder, tmp_path, running):
    letters = "abcdefghijkl"
    requests = [ask(letter, f"Product P-{i} site: Lyon. " * (i + 1)) for i, letter in enumerate(letters)]
    alone = {}
    for request in requests:
        running.submit([request])
        alone |= answers(running, 1)
    batched = executor_for(folder, tmp_path, RAGGED)
    try:
        batched.submit(requests)
        together = answers(batched, len(letters))
        assert batched.capacity > running.capacity
    finally:
        batched.close()
    fresh = executor_for(folder, tmp_path, RAGGED)
    try:
        fresh.submit(requests[::-1])
        again = answers(fresh, len(letters))
    finally:
        fresh.close()
    assert {key: one.generation for key, one in together.items()} == {k: one.generation for k, one in again.items()}
    texts = {key: one.generation.text for key, one in together.items()}
    assert texts == {key: one.generation.text for key, one in alone.items()}


def test_a_crash_fails_what_is_in_flight_and_the_next_are_fewer(folder, tmp_path):
    executor = executor_for(folder, tmp_path, RAGGED)
    try:
        executor.submit([ask("a")])
        answers(executor, 1)
        pid = executor.pid
        executor.submit([ask(letter, grammar=ENDLESS, max_new_tokens=3500) for letter in "bcdefghi"] + [ask("j")])
        time.sleep(0.3)
        os.kill(pid, signal.SIGKILL)
        outcomes = answers(executor, 9)
        assert {outcomes[letter].reason for letter in "bcdefghi"} == {FailureReason.CRASH}
        assert isinstance(outcomes["j"], Generated)
        assert executor.width == RAGGED_WIDTH // 2
    finally:
        executor.close()


def test_one_past_its_time_is_given_up_and_the_worker_lives_on(folder, tmp_path):
    executor = executor_for(folder, tmp_path, RAGGED)
    try:
        executor.submit([ask("a")])
        answers(executor, 1)
        pid = executor.pid
        executor.submit([ask("b", grammar=ENDLESS, max_new_tokens=3500, timeout=1), ask("c", max_new_tokens=200)])
        outcomes = answers(executor, 2)
        assert outcomes["b"].reason is FailureReason.TIMEOUT
        assert isinstance(outcomes["c"], Generated)
        executor.submit([ask("b"), ask("d")])
        assert all(isinstance(outcome, Generated) for outcome in answers(executor, 2).values())
        assert executor.pid == pid
    finally:
        executor.close()


def test_out_of_memory_goes_on_with_half_as_many_and_one_alone_fails(folder, tmp_path):
    from gsum.engine.llm.bench import Bench
    from gsum.engine.llm.serve import open_model
    from gsum.engine.llm.wire import Answer, Ask, Hello, Refused

    hello = Hello("tiny", toolchain_for(folder), RAGGED, str(folder), str(tmp_path))
    bench = Bench(open_model(hello, Start("c")))
    seen = []
    step = bench.decoder.step

    def tight():
        seen.append(len(bench.decoder.keys))
        if seen[-1] > 2 or "0 huge" in bench.decoder.keys:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")
        return step()

    bench.decoder.step = tight
    keys = [*"abcdefg", "huge"]
    for key in keys:
        bench.take(0, Ask(key, ask("x", key).request))
    said = []
    while not bench.idle:
        said += [message for _, message in bench.step()]
    assert seen[:3] == [8, 4, 2]
    assert max(seen[2:]) <= 2
    assert {one.key for one in said if isinstance(one, Answer)} == set("abcdefg")
    assert [(one.key, one.reason) for one in said if isinstance(one, Refused)] == [("huge", "memory")]


def test_a_worker_killed_in_a_generation_is_started_again(running):
    running.submit([ask("a")])
    answers(running, 1)
    pid = running.pid
    running.submit([ask("b", grammar=ENDLESS, max_new_tokens=3500), ask("c")])
    time.sleep(0.3)
    os.kill(pid, signal.SIGKILL)
    outcomes = answers(running, 2)
    assert outcomes["b"].reason is FailureReason.CRASH
    assert "SIGKILL" in outcomes["b"].facts["ended"]
    assert isinstance(outcomes["c"], Generated)
    assert running.pid != pid


def test_a_generation_past_its_time_fails_and_the_next_goes_on(running):
    running.submit([ask("a")])
    answers(running, 1)
    running.submit([ask("b", grammar=ENDLESS, max_new_tokens=3500, timeout=1), ask("c")])
    outcomes = answers(running, 2)
    assert outcomes["b"].reason is FailureReason.TIMEOUT
    assert isinstance(outcomes["c"], Generated)


def test_the_worker_ends_when_its_input_does_even_in_a_generation(folder, tmp_path):
    dialect = LocalDialect(
        "tiny", toolchain_for(folder), NUMERICS, cache_dir=tmp_path, workspace_root=tmp_path, environ=os.environ
    )
    argv, env, _ = dialect.launch()
    with subprocess.Popen(
        argv, env=env, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as worker:
        worker.stdin.write(dialect.greeting() + b"\n")
        worker.stdin.flush()
        assert b'"ready"' in worker.stdout.readline()
        worker.stdin.write(dialect.encode(ask("a", grammar=ENDLESS, max_new_tokens=3500)) + b"\n")
        worker.stdin.close()
        assert worker.wait(5) == 0
        assert worker.stdout.read() == b""


@pytest.mark.parametrize(
    ("changes", "numerics", "fact"),
    [
        ({"chat_template": "0" * 64}, NUMERICS, "chat_template"),
        ({}, NumericsSection("single-2", 1, None, {"torch": "1.0.0"}), "library torch"),
    ],
)
def test_a_mismatch_is_refused_with_both_values(folder, tmp_path, changes, numerics, fact):
    executor = executor_for(folder, tmp_path, numerics, **changes)
    executor.submit([ask("a"), ask("b")])
    for failed in answers(executor, 2).values():
        assert isinstance(failed, Failed)
        assert failed.reason is FailureReason.MISMATCH
        assert failed.exit_code is ExitCode.TOOLCHAIN
        assert list(failed.facts) == [fact]
        assert failed.facts[fact].startswith("declared ")
        assert failed.hint.endswith("gsum toolchain pin tiny")
    executor.close()


def test_an_absent_device_is_a_mismatch(folder, tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    executor = executor_for(folder, tmp_path, device=Device.CUDA)
    executor.submit([ask("a")])
    failed = answers(executor, 1)["a"]
    assert (failed.reason, failed.exit_code) == (FailureReason.MISMATCH, ExitCode.TOOLCHAIN)
    assert "cuda" in failed.message
    executor.close()


def test_a_changed_file_is_a_mismatch_that_names_it(folder, tmp_path):
    import shutil

    made = shutil.copytree(folder, tmp_path / "m")
    executor = executor_for(made, tmp_path)
    edit_json(made / "config.json", rms_norm_eps=0.25)
    executor.submit([ask("a")])
    failed = answers(executor, 1)["a"]
    assert failed.reason is FailureReason.MISMATCH
    assert failed.facts["file"] == str(made / "config.json")
    assert len(failed.facts["declared"]) == len(failed.facts["found"]) == 64
    executor.close()


def test_a_missing_model_fails_without_a_process(tmp_path, folder):
    executor = executor_for(folder, tmp_path, source=FolderSource(str(tmp_path / "nowhere")))
    executor.submit([ask("a")])
    failed = answers(executor, 1)["a"]
    assert (failed.reason, failed.exit_code) == (FailureReason.MODEL_MISSING, ExitCode.TOOLCHAIN)
    assert executor.pid is None


REACHING = """
import ctypes, socket, struct, sys
from gsum.engine.llm.hermetic import refuse_network
port, told = int(sys.argv[1]), refuse_network()
print(told.name)
calls = (
    lambda: socket.create_connection(("127.0.0.1", port)),
    lambda: socket.getaddrinfo("localhost", 80),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port)),
    lambda: socket.socket(socket.AF_UNIX).connect("/tmp/x"),
    lambda: socket.socket().bind(("127.0.0.1", 0)),
)
for call in calls:
    try:
        call()
    except OSError as error:
        print(type(error).__name__)
libc = ctypes.CDLL(None)
address = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(port), b"\\x7f\\0\\0\\1")
print(libc.connect(libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0), address, len(address)))
"""


def reach(port: int, code: str = REACHING) -> list[str]:
    argv = [sys.executable, "-c", code, str(port)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()


def test_the_worker_has_no_network():
    """Python's sockets are refused, and code that calls the system by itself finds no interface."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        told, *refused, by_system = reach(port)
        assert refused == ["NetworkRefused"] * 5
        assert by_system == ("-1" if told == "NAMESPACE" else "0")
        if told != "NAMESPACE":
            pytest.skip("this system gives no network namespace: only Python's sockets are refused")
        open_to_us = REACHING.replace("refuse_network()\n", "Isolation.SOCKETS\n").replace(
            "import refuse_n", "import Isolation #"
        )
        assert reach(port, open_to_us)[-1] == "0"


def test_the_worker_s_memory_has_a_limit_and_the_worker_outlives_it():
    code = (
        "import torch\nfrom gsum.engine.llm import hermetic\n"
        "from gsum.engine.llm.bench import is_memory\nhermetic.HEADROOM = 1 << 28\nhermetic.limit_memory(None)\n"
        "torch.zeros(1 << 24)\n"  # 64 MB of 256
        "try:\n    torch.zeros(1 << 28)\nexcept RuntimeError as error:\n    print(is_memory(error))\n"
        "print(float(torch.ones(1 << 20).sum()))\n"
    )
    if sys.platform != "linux":
        pytest.skip("the limit is Linux's")
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["True", "1048576.0"]


def test_the_worker_s_environment_is_minimal_and_switches_the_hubs_off(folder, tmp_path):
    environ = {"HOME": "/home/x", "SECRET_TOKEN": "s", "HF_TOKEN": "t", "PYTHONPATH": "/evil", "LD_PRELOAD": "/evil.so"}
    numerics = NumericsSection("single-2", 3, "AVX2")
    dialect = LocalDialect(
        "tiny", toolchain_for(folder), numerics, cache_dir=tmp_path, workspace_root=tmp_path, environ=environ
    )
    _, env, _ = dialect.launch()
    assert not {"SECRET_TOKEN", "HF_TOKEN", "PYTHONPATH", "LD_PRELOAD"} & set(env)
    assert (env["HF_HUB_OFFLINE"], env["OMP_NUM_THREADS"], env["ATEN_CPU_CAPABILITY"]) == ("1", "3", "avx2")
    assert numerics_environment(NumericsSection("single-2")) == {}


def test_observing_loads_and_compares_nothing(folder, tmp_path):
    import hashlib

    stale = toolchain_for(
        folder,
        files=dict.fromkeys(toolchain_for(folder).files, "0" * 64),
        chat_template="0" * 64,
        tied_embeddings=False,
        grammar=GrammarSection(Strength.LITERAL, "llguidance", "0.0.1"),
    )
    numerics = NumericsSection("single-2", 1, "AVX2", {"torch": "1.0"})
    seen = observe_toolchain("tiny", stale, numerics, cache_dir=tmp_path, workspace_root=tmp_path, environ=os.environ)
    assert seen.files["config.json"] == hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
    assert seen.chat_template == toolchain_for(folder).chat_template
    assert seen.tied_embeddings is True
    assert set(seen.libraries) == {"torch"}
    assert seen.grammar_version is not None
