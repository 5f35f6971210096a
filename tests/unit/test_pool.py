"""Several workers as one executor: who gets what, when a further one starts, what the failure of one costs."""

import os
import time

import pytest

from gsum.engine.executors import slots as places
from gsum.engine.executors.pool import Member, PoolExecutor
from gsum.engine.executors.protocol import ExecRequest, Failed, FailureReason, Generated
from gsum.engine.executors.slots import Slot
from gsum.rules.config import (
    Attention,
    Device,
    Dtype,
    FolderSource,
    GrammarSection,
    LocalToolchain,
    NumericsSection,
    Strength,
)
from gsum.rules.requests import Message, Request, Role
from gsum.store.records import Generation, StopReason


class Worker:
    """A `LineExecutor` as the pool sees it, that answers when told to."""

    reproducible, network, capacity = True, False, 8

    def __init__(self, width=4):
        self.width = width
        self.had, self.refused, self.closed, self.pid = [], False, False, None
        self.ready = True
        self._pending, self._out = [], []

    @property
    def load(self):
        return len(self._pending)

    def fileno(self):
        return None

    def give_back(self, most):
        back = [] if self.ready else self._pending[::-1][:most]
        self._pending = self._pending[: len(self._pending) - len(back)]
        return back

    def submit(self, requests):
        self.had += [request.key[0] for request in requests]
        self._pending += requests
        if self.refused:
            self.fail(self.reason)

    def wait(self, timeout):
        out, self._out = self._out, []
        return out

    def answer(self, count=99):
        taken, self._pending = self._pending[:count], self._pending[count:]
        text = Generation((1,), "x", StopReason.EOS)
        self._out += [Generated(r.key, text, 0.1, "cpu", "f", {}, {}, 1, 1, 0, 0, 1) for r in taken]

    def fail(self, reason, *, refused=False):
        self.reason = reason
        self.refused = self.refused or refused
        self._out += [Failed(request.key, reason, "it failed") for request in self._pending]
        self._pending = []

    def cancel(self):
        self.fail(FailureReason.CANCELLED)

    def close(self):
        self.closed = True


def pool(*workers, warm=(), jobs=None):
    return PoolExecutor([Member(worker, lambda at=at: at in warm) for at, worker in enumerate(workers)], jobs=jobs)


def ask(letters, prefix="map"):
    request = Request((Message(Role.SYSTEM, prefix), Message(Role.USER, "x")), 1, None, 8, 99, "t", "p")
    return [ExecRequest(letter * 64, request, 60) for letter in letters]


def keys(outcomes):
    return "".join(sorted(outcome.key[0] for outcome in outcomes))


def test_no_more_than_one_worker_can_do_at_a_time_goes_to_one():
    first, second = Worker(), Worker()
    pool(first, second).submit(ask("abcd"))
    assert (first.had, second.had) == (list("abcd"), [])


def test_more_than_that_starts_a_further_one_and_each_gets_its_half():
    first, second = Worker(), Worker()
    pool(first, second).submit(ask("abcdef"))
    assert sorted(first.had + second.had) == list("abcdef")
    assert abs(len(first.had) - len(second.had)) <= 2


def test_a_worker_that_is_warm_is_used_even_for_little_and_the_cold_one_is_not_started():
    cold, warm = Worker(), Worker()
    pool(cold, warm, warm=(1,)).submit(ask("ab"))
    assert (cold.had, warm.had) == ([], ["a", "b"])


def test_a_request_goes_where_its_prefix_is_if_that_costs_nothing_else():
    first, second = Worker(), Worker()
    executor = pool(first, second, warm=(0, 1))
    executor.submit(ask("a", "map"))
    executor.submit(ask("b", "reduce"))
    first.answer()
    second.answer()
    assert keys(executor.wait(0)) == "ab"
    executor.submit(ask("c", "reduce"))
    assert (first.had, second.had) == (["a"], ["b", "c"])
    executor.submit(ask("defg", "reduce"))  # but none idles for it
    assert (first.load, second.load) == (3, 2)


def test_what_waits_goes_to_whoever_is_free_first():
    first, second = Worker(2), Worker(2)
    executor = pool(first, second)
    executor.submit(ask("abcdef"))
    assert len(first.had) == len(second.had) == 2
    second.answer()
    assert len(executor.wait(0)) == 2
    assert len(second.had) == 4


def test_what_a_worker_still_starting_was_to_get_goes_by_halves_to_one_that_has_nothing_to_do():
    ready, starting = Worker(2), Worker(2)
    executor = pool(ready, starting)
    starting.ready = False
    executor.submit(ask("abcd"))
    assert (ready.load, starting.load) == (2, 2)
    ready.answer()
    assert keys(executor.wait(0)) == "ab"
    assert (ready.had, starting.load) == (list("abd"), 1)
    ready.answer()
    assert keys(executor.wait(0)) == "d"
    assert (ready.had, starting.load) == (list("abdc"), 0)
    ready.answer()
    assert keys(executor.wait(0)) == "c"


def test_a_worker_that_comes_up_a_moment_after_another_still_finds_its_half():
    early, late = Worker(8), Worker(8)
    executor = pool(early, late)
    early.ready = late.ready = False
    executor.submit(ask("abcdefghijkl"))
    early.ready = True
    assert executor.wait(0) == []
    assert (early.load, late.load) == (6, 6)
    early.answer(5)
    executor.wait(0)
    assert (early.load, late.load) == (1, 6)


def test_a_crash_fails_the_requests_of_that_worker_alone():
    first, second = Worker(2), Worker(2)
    executor = pool(first, second)
    executor.submit(ask("abcd"))
    lost = "".join(sorted(first.had))
    first.fail(FailureReason.CRASH)
    assert keys(executor.wait(0)) == lost
    second.answer()
    outcomes = executor.wait(0)
    assert all(isinstance(outcome, Generated) for outcome in outcomes)
    assert len(outcomes) == 2


def test_what_a_worker_that_never_came_up_refused_is_done_by_the_other():
    first, second = Worker(2), Worker(2)
    executor = pool(first, second)
    executor.submit(ask("abcd"))
    second.fail(FailureReason.MEMORY, refused=True)
    assert executor.wait(0) == []
    for _ in range(2):
        first.answer()
        executor.wait(0)
    assert sorted(first.had) == list("abcd")


def test_what_no_worker_can_do_fails_once_and_starts_no_other():
    first, second = Worker(2), Worker(2)
    executor = pool(first, second)
    executor.submit(ask("ab"))
    first.fail(FailureReason.MISMATCH, refused=True)
    assert keys(executor.wait(0)) == "ab"
    executor.submit(ask("cde"))
    assert keys(executor.wait(0)) == "cde"
    assert second.had == []


def test_when_all_have_been_refused_every_request_has_its_failure():
    first, second = Worker(2), Worker(2)
    executor = pool(first, second)
    executor.submit(ask("abcd"))
    first.fail(FailureReason.MEMORY, refused=True)
    second.fail(FailureReason.MEMORY, refused=True)
    failed = []
    for _ in range(4):
        failed += executor.wait(0)
    assert keys(failed) == "abcd"
    assert {outcome.reason for outcome in failed} == {FailureReason.MEMORY}


def test_jobs_bound_what_is_in_flight_over_all_workers():
    first, second = Worker(), Worker()
    executor = pool(first, second, warm=(0, 1), jobs=3)
    executor.submit(ask("abcdef"))
    assert len(first.had + second.had) == 3
    assert executor.capacity == 3


def test_cancelling_fails_what_is_queued_and_what_is_with_the_workers():
    first, second = Worker(2), Worker(2)
    executor = pool(first, second)
    executor.submit(ask("abcdef"))
    executor.cancel()
    outcomes = executor.wait(0)
    assert keys(outcomes) == "abcdef"
    assert {outcome.reason for outcome in outcomes} == {FailureReason.CANCELLED}
    executor.close()
    assert first.closed
    assert second.closed


def test_a_worker_that_was_asked_nothing_wakes_nobody():
    class Talking(Worker):
        """One whose connection is readable all the time."""

        reading, writing = os.pipe()

        def fileno(self):
            return self.reading

    idle, busy = Talking(1), Worker(1)
    os.write(idle.writing, b".")
    executor = pool(idle, busy, warm=(0, 1))
    executor.submit(ask("ab"))
    idle.answer()
    assert len(executor.wait(0)) == 1
    began = time.process_time()
    assert executor.wait(0.5) == []
    assert time.process_time() - began < 0.2
    os.close(idle.reading)
    os.close(idle.writing)


# ---- places -----------------------------------------------------------------------------------------------------


def toolchain(device=Device.CPU, **changes):
    files = {"model.safetensors": "0" * 64}
    grammar = GrammarSection(Strength.NONE)
    return LocalToolchain(
        FolderSource("m"), files, True, device, Dtype.FLOAT32, Attention.SDPA, "n", grammar, **changes
    )


def count(declared, threads=1, *, environ=None, weights=2**30, jobs=None, held=lambda: 0):
    numerics = NumericsSection("single-2", threads)
    return len(places.slots(declared, numerics, environ=environ or {}, weights=weights, jobs=jobs, held=held))


@pytest.fixture
def machine(monkeypatch):
    """A machine of eight processors and 64 GiB."""
    monkeypatch.setattr(places, "processors", lambda: 8)
    monkeypatch.setattr(places, "free_memory", lambda: 64 << 30)
    return monkeypatch


def test_processors_by_threads_say_how_many_workers_there_are(machine):
    assert [count(toolchain(), threads) for threads in (1, 2, 3, 8, 16, None)] == [8, 4, 2, 1, 1, 1]


def test_memory_jobs_and_a_declared_limit_make_them_fewer(machine):
    machine.setattr(places, "free_memory", lambda: 9 << 30)
    assert count(toolchain()) == 4  # one GiB of weights, one beside
    assert count(toolchain(memory_mb=4608)) == 2
    assert count(toolchain(), weights=10**12) == 1
    assert count(toolchain(), jobs=3) == 3


def test_what_its_warm_workers_hold_leaves_room_for_these_workers(machine):
    machine.setattr(places, "free_memory", lambda: 1 << 30)
    assert count(toolchain()) == 1
    assert count(toolchain(), held=lambda: 3 << 30) == 2


def test_where_memory_is_plenty_no_worker_is_asked_what_it_holds(machine):
    assert count(toolchain(), held=lambda: pytest.fail("asked")) == 8


def test_each_visible_cuda_device_is_a_place_that_sees_only_it(machine):
    numerics = NumericsSection("single-2")
    found = places.slots(
        toolchain(Device.CUDA), numerics, environ={"CUDA_VISIBLE_DEVICES": "2, GPU-8f,5"}, weights=1, jobs=2
    )
    assert found == [Slot(0, {"CUDA_VISIBLE_DEVICES": "2"}), Slot(1, {"CUDA_VISIBLE_DEVICES": "GPU-8f"})]
    assert count(toolchain(Device.CUDA), environ={"CUDA_VISIBLE_DEVICES": ""}) == 1  # which says what is missing


def test_this_machine_s_processors_and_memory_are_told():
    assert 1 <= places.processors() <= (os.cpu_count() or 1)
    assert places.free_memory() > 2**20
