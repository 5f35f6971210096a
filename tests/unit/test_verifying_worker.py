"""A verification against real workers: the shipped scheme passes, one that pads badly is found in its batches."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.engine import TickingClock, run_build
from support.tiny_model import FILES, make_model, sha256_of
from support.warm_workers import ended
from support.workspaces import make_workspace

from gsum.cli.group import cli
from gsum.engine.executors.client import LineExecutor
from gsum.engine.executors.local import LocalDialect
from gsum.engine.executors.process import ChildProcess
from gsum.engine.executors.workers import look
from gsum.engine.llm import prefixes
from gsum.engine.llm.schemes import SCHEMES
from gsum.engine.universe import load_universe
from gsum.engine.verifying.report import RequestVerified, VerifyOptions, VerifyStatus
from gsum.engine.verifying.run import Verification
from gsum.rules.config import LocalToolchain
from gsum.store.errors import ExitCode
from gsum.store.local import open_store

BAD_WORKER = Path(__file__).parents[1] / "support/badly_padded_worker.py"
TOOLCHAIN = """
[toolchain.fake]
executor = "local"
numerics = "test"
device = "cpu"
dtype = "float32"
attention = "sdpa"
tied_embeddings = true
source = {{ kind = "folder", path = {folder} }}
files = {files}
grammar = {{ strength = "none" }}
decoding = {{ max_new_tokens = 24 }}

[numerics.test]
batching = "ragged-1"
threads = 1
"""
LEAVES = 6
PATTERN = "//dossier:S-1/..."


class BadDialect(LocalDialect):
    """Our worker's lines, spoken with the worker that pads badly."""

    def open(self):
        argv, env, cwd = self.launch()
        return ChildProcess([argv[0], "-P", str(BAD_WORKER)], env=env, cwd=cwd)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A workspace whose leaves are of different lengths and whose model is a tiny random one."""
    folder = make_model(tmp_path_factory.mktemp("tiny") / "m", family="qwen2")
    files = ", ".join(f'"{name}" = "{sha256_of(folder / name)}"' for name in FILES if (folder / name).exists())
    toolchain = TOOLCHAIN.format(folder=json.dumps(str(folder)), files=f"{{ {files} }}")
    texts = {f"D-{n:02}": "".join(f"Product P-1-{n} site: Hall {i}.\n" for i in range(n + 1)) for n in range(LEAVES)}
    return make_workspace(tmp_path_factory.mktemp("w") / "w", {"S-1": texts}, toolchain=toolchain)


@pytest.fixture(scope="module")
def honest(root):
    """The worker as shipped."""
    executor = executor_of(LocalDialect, root)
    yield executor
    executor.close()


@pytest.fixture(scope="module")
def store(root, honest):
    """A store that the honest worker filled."""
    with open_store(root / ".gsum") as opened:
        assert len(run_build(root, opened, PATTERN, executor=honest).report.generated) >= LEAVES
        yield opened


def executor_of(dialect, root):
    workspace = load_universe(root, [PATTERN]).workspace
    toolchain = workspace.toolchains["fake"]
    assert isinstance(toolchain, LocalToolchain)
    spoken = dialect(
        "fake",
        toolchain,
        workspace.numerics["test"],
        cache_dir=root / "cache",
        workspace_root=root,
        environ={"PATH": os.defpath},
    )
    width = SCHEMES["ragged-1"].width
    return LineExecutor(spoken, reproducible=True, network=False, capacity=2 * width, width=width)


def verify(root, store, executor, *, interrupted=lambda events: False, rounds=3):
    """Return the report and the events of a verification."""
    events = []
    verification = Verification(
        universe=load_universe(root, [PATTERN]),
        store=store,
        executor_for=lambda _: executor,
        emit=events.append,
        interrupted=lambda: interrupted(events),
        clock=TickingClock().clock,
        options=VerifyOptions((PATTERN,), None, 0, rounds, opaque=False),
    )
    return verification.run(), events


def test_the_shipped_scheme_gives_in_every_batch_what_is_stored(root, store, honest):
    report, _ = verify(root, store, honest)
    assert report.exit_code == ExitCode.OK
    assert report.same == report.executions == 3 * report.requests
    assert report.requests >= LEAVES
    assert {width for one in report.rounds for width in one.widths} >= {1, 2, 3}


def test_a_scheme_that_pads_badly_is_found_and_only_in_company(root, store):
    served = {key: store.generation_for(key) for key in requests_of(root, store)}
    bad = executor_of(BadDialect, root)
    report, _ = verify(root, store, bad)
    bad.close()
    assert report.status is VerifyStatus.DIFFERS
    assert report.exit_code == ExitCode.NOT_REPRODUCIBLE
    assert all(len(found.batch) > 1 for found in report.differing)
    assert report.rounds[0].same == report.rounds[0].executions  # alone, nothing is padded
    for found in report.differing:
        assert found.stored.request in found.batch
        assert found.divergence.token is not None
        assert store.generations(found.stored.request)[0] == served[found.stored.request]
        assert found.second in store.generations(found.stored.request)
    assert {key: store.generation_for(key) for key in served} == served


def test_an_interruption_keeps_what_was_generated_and_asks_no_more(root, store, honest):
    def after_two(events):
        return sum(isinstance(event, RequestVerified) for event in events) >= 2

    key = requests_of(root, store)[0]
    before = len(store.observations(key))
    report, events = verify(root, store, honest, interrupted=after_two)
    assert report.exit_code == ExitCode.INTERRUPTED
    verified = [event.request for event in events if isinstance(event, RequestVerified)]
    assert report.executions == len(verified) == 2
    assert len(store.observations(key)) == before + verified.count(key)


def test_the_command_asks_a_worker_of_its_own_that_keeps_nothing(root, store, tmp_path):
    """A worker that stayed, or a prefix that one kept, would confirm itself."""
    with ended(tmp_path / "run") as folder, contextlib.chdir(root):
        environment = {"GSUM_RUNTIME_DIR": str(folder), "GSUM_CACHE": str(tmp_path / "cache"), "GSUM_STORE": None}
        ran = CliRunner(env=environment).invoke(cli, ["verify", PATTERN, "--rounds", "1", "-q"])
        assert (ran.exit_code, look(folder)) == (0, [])
        assert not folder.exists()
        assert not (tmp_path / "cache" / prefixes.FOLDER).exists()


def requests_of(root, store):
    universe = load_universe(root, [PATTERN])
    entries = store.entries([keyed.key for keyed in universe.keys.actions.values()])
    return [entry.request for entry in entries.values() if entry.request is not None]
