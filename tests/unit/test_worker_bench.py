"""A worker's bench: whose turn it is, and what becomes of requests when memory runs out."""

import pytest
from support.tiny_model import make_model, toolchain_for
from support.warm_clients import RAGGED, ask

from gsum.engine.llm import bench as benches
from gsum.engine.llm.bench import Bench
from gsum.engine.llm.kept import Start
from gsum.engine.llm.schemes import SCHEMES
from gsum.engine.llm.serve import open_model
from gsum.engine.llm.wire import Ask, Drop, Hello

RAGGED_WIDTH = SCHEMES["ragged-1"].width


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("tiny") / "m")


@pytest.fixture
def bench(folder, tmp_path):
    return Bench(open_model(Hello("tiny", toolchain_for(folder), RAGGED, str(folder), str(tmp_path)), Start("c")))


def take(bench, letters):
    for letter in letters:
        bench.take(0, Ask(letter, ask("x", f"{letter} site: Lyon.").request))


def all_said(bench, steps=2000):
    said = []
    while not bench.idle:
        said += [message for _, message in bench.step()]
        steps -= 1
        assert steps > 0, "it goes on without an answer"
    return {one.key: getattr(one, "reason", "answered") for one in said}


def test_memory_that_runs_out_while_a_request_is_taken_on_loses_none(bench):
    add = bench.decoder.add

    def tight(key, *given):
        if key == "0 huge" or len(bench.decoder.keys) == 2:
            raise MemoryError
        add(key, *given)

    bench.decoder.add = tight
    take(bench, ["a", "b", "c", "huge", "d"])
    assert all_said(bench) == {**dict.fromkeys("abcd", "answered"), "huge": "memory"}


@pytest.mark.parametrize("leaves", [True, False])
def test_an_answer_kept_while_memory_ran_out_is_let_go_with_its_client(bench, leaves):
    extend = bench.decoder._extend

    def tight(writing, logits):
        if writing.key == "0 b" and any(key == "0 a" for key, _ in bench.decoder._ended):
            bench.decoder._extend = extend
            raise MemoryError
        extend(writing, logits)

    bench.decoder._extend = tight
    take(bench, "abc")
    while bench.decoder._extend == tight:
        assert bench.step() == []
    assert [key for key, _ in bench.decoder._ended] == ["0 a"]
    bench.leave(0) if leaves else bench.take(0, Drop("a"))
    take(bench, "d")
    others = {} if leaves else {"a": "cancelled", "b": "answered", "c": "answered"}
    assert all_said(bench) == {**others, "d": "answered"}


def test_after_many_passes_without_trouble_more_are_taken_at_a_time_again(bench, monkeypatch):
    monkeypatch.setattr(benches, "_CLEAN_PASSES", 2)
    step, at_work = bench.decoder.step, []

    def once():
        at_work.append(len(bench.decoder.keys))
        if len(at_work) == 1:
            raise MemoryError
        return step()

    bench.decoder.step = once
    take(bench, "abcdefgh")
    all_said(bench)
    assert at_work[:6] == [8, 4, 4, 5, 5, 6]


def test_a_client_with_little_to_ask_has_its_turn_beside_one_with_much(bench):
    for number in range(3 * RAGGED_WIDTH):
        bench.take(0, Ask(f"{number}", ask("x").request))
    said = bench.step()
    bench.take(1, Ask("0", ask("x").request))  # a key that the other has asked for, too
    while not bench.idle:
        said += bench.step()
    order = [client for client, _ in said]
    assert (order.count(0), order.count(1)) == (3 * RAGGED_WIDTH, 1)
    assert order.index(1) < 2 * RAGGED_WIDTH + 1
