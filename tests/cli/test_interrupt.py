"""Ctrl-C and SIGTERM, against real processes: what is finished is kept, exit 130, and the next build goes on."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

import pytest
from support.cli import Gsum

from gsum.store.errors import ExitCode

DOCUMENTS = 6


@pytest.fixture
def slow(tmp_path):
    return Gsum(tmp_path / "w", {"S-1": DOCUMENTS}, "--slow", "0.25")


def wait_until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def worker_of(gsum):
    return int(gsum.log.read_text().splitlines()[-1].split("\t")[1])


def alive(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_stops_cleanly_and_keeps_what_is_finished(slow, number):
    process = slow.start("build", "//dossier:S-1")
    wait_until(lambda: slow.calls >= 3)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == ExitCode.INTERRUPTED
    assert err == "stopping: what is finished is kept; once more stops at once\n"
    assert out.splitlines()[-1] == "what is finished is kept; the same command goes on from there"
    assert out.splitlines()[-2].startswith("interrupted: 9 targets")
    wait_until(lambda: not alive(worker_of(slow)))
    finished = out.count("  generated ")
    assert finished >= 2
    slow.model()
    document = slow("build", "//dossier:S-1", "--json").document
    assert (document["status"], len(document["generated"])) == ("ok", 9 - finished)
    assert slow("log", "--json").document["invocations"][1]["status"] == "interrupted"


def test_two_signals_stop_at_once_and_leave_the_store_intact(tmp_path):
    gsum = Gsum(tmp_path / "w", {"S-1": DOCUMENTS}, "--hang-at", "3")
    process = gsum.start("build", "//dossier:S-1")
    wait_until(lambda: gsum.calls >= 3)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == ExitCode.INTERRUPTED
    wait_until(lambda: not alive(worker_of(gsum)))
    before = gsum.calls
    gsum.model()
    document = gsum("build", "//dossier:S-1", "--json").document
    assert document["status"] == "ok"
    assert gsum("log", "--json").document["invocations"][1]["status"] == "interrupted"
    assert len(document["cached"]) >= 1
    assert gsum.calls == before + len(document["generated"])


def test_a_second_signal_while_the_first_is_obeyed_exits_at_once(tmp_path):
    """The handler raises the second time, wherever the main thread is."""
    from gsum.cli.interrupts import Interrupts, StopNow

    said = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(StopNow), Interrupts(lambda: said.append(1)) as interrupts:
        signal.raise_signal(signal.SIGINT)
        assert interrupts.asked()
        signal.raise_signal(signal.SIGINT)
    assert said == [1]
    assert signal.getsignal(signal.SIGINT) is before


def test_json_of_an_interrupted_build_is_one_document(slow):
    process = slow.start("build", "//dossier:S-1", "--json")
    wait_until(lambda: slow.calls >= 2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    import json

    document = json.loads(out)
    assert (document["status"], document["exit_code"]) == ("interrupted", 130)
    assert len(document["generated"]) + len(document["skipped"]) == document["targets"] == 9


def test_kill_9_of_gsum_loses_no_finished_action_and_ends_the_worker(slow):
    process = slow.start("build", "//dossier:S-1")
    wait_until(lambda: slow.calls >= 3)
    process.kill()
    out, _ = process.communicate(timeout=20)
    wait_until(lambda: not alive(worker_of(slow)))
    finished = out.count("  generated ")
    slow.model()
    document = slow("build", "//dossier:S-1", "--json").document
    assert len(document["cached"]) >= finished >= 1
    assert "running or killed" in slow("log").out
