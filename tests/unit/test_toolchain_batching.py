"""Batching changes no bit: the logits of whole generations, alone and in any company, order and warmth."""

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings
from support.tiny_model import make_model, toolchain_for

from gsum.engine.llm.decode import Decoder
from gsum.engine.llm.load import load
from gsum.engine.llm.ragged import uneven_rows
from gsum.engine.llm.schemes import SCHEMES
from gsum.rules.requests import Message, Request, Role

RAGGED = SCHEMES["ragged-1"]
FORCING = 'start: "{" /[a-z]{3,9}/ " is a very long forced text " ("x" | "y") "}"\n'
GRAMMARS = (None, FORCING, "start: /[a-z0-9 ]{30}/\n")
SYSTEMS = ("Copy.", "You copy facts out of lines. " * 9)


def asked(number: int) -> Request:
    """One of eighteen requests: two prefixes, three grammars, and inputs of a few to a few hundred tokens."""
    text = " ".join(f"Product P-{number}-{i} site: Lyon {i * number}." for i in range((number * 5) % 17))
    messages = (Message(Role.SYSTEM, SYSTEMS[number % 2]), Message(Role.USER, text))
    return Request(messages, 1, GRAMMARS[number % 3], 8 + number, 2000, "t", "p")


class Recording(Decoder):
    """A decoder that keeps the logits it chose from."""

    def __init__(self, loaded, scheme):
        super().__init__(loaded, scheme)
        self.logits = {}

    def _extend(self, writing, logits):
        self.logits.setdefault(writing.key, []).append(logits.numpy().tobytes())
        super()._extend(writing, logits)


def run(decoder, numbers, pauses=()):
    """Generate for all, each next one joining after some passes; return tokens and logits by number."""
    done = {}
    waiting = list(zip(numbers, [*pauses, *[0] * len(numbers)], strict=False))
    pause = 0
    while waiting or decoder.keys:
        while waiting and not decoder.full and pause <= 0:
            number, pause = waiting.pop(0)
            decoder.add(str(number), asked(number))
        pause -= 1
        done |= {int(key): outcome.token_ids for key, outcome in decoder.step()}
    return {number: (done[number], decoder.logits.get(str(number), [])) for number in numbers}


@pytest.fixture(scope="module", params=["llama", "qwen2"])
def loaded(request, tmp_path_factory):
    import torch

    torch.set_num_threads(1)
    folder = make_model(tmp_path_factory.mktemp("tiny") / "m", family=request.param)
    return load("tiny", toolchain_for(folder), folder, folder)


@pytest.fixture(scope="module")
def alone(loaded):
    """What each request gives by itself, in a decoder of its own."""
    return {n: run(Recording(loaded, msgspec.structs.replace(RAGGED, width=1)), [n])[n] for n in range(18)}


@settings(max_examples=25, deadline=None)
@given(
    numbers=st.lists(st.integers(0, 17), min_size=1, max_size=12, unique=True),
    width=st.integers(1, 8),
    pauses=st.lists(st.integers(0, 6), max_size=12),
    warm=st.lists(st.integers(0, 17), max_size=2, unique=True),
)
def test_every_logit_is_bitwise_what_it_is_alone(loaded, alone, numbers, width, pauses, warm):
    decoder = Recording(loaded, msgspec.structs.replace(RAGGED, width=width))
    run(decoder, warm)
    decoder.logits.clear()
    got = run(decoder, numbers, pauses)
    assert got == {number: alone[number] for number in numbers}


def test_the_requests_differ_in_length_and_in_what_is_chosen(alone):
    assert len({len(tokens) for tokens, _ in alone.values()}) > 5
    assert len({tokens for tokens, _ in alone.values()}) > 12
    assert sum(len(logits) for _, logits in alone.values()) > 150


def test_a_request_dropped_between_passes_leaves_the_others_as_they_are(loaded, alone):
    decoder = Recording(loaded, RAGGED)
    for number in (4, 7, 8):
        decoder.add(str(number), asked(number))
    decoder.step()
    decoder.drop("7")
    done = {}
    while decoder.keys:
        done |= dict(decoder.step())
    assert {key: outcome.token_ids for key, outcome in done.items()} == {str(n): alone[n][0] for n in (4, 8)}


def test_memory_is_given_back_and_the_same_comes_out_after(loaded, alone):
    decoder = Recording(loaded, RAGGED)
    for number in (4, 7):
        decoder.add(str(number), asked(number))
    decoder.step()
    decoder.give_back_memory()
    assert decoder.keys == []
    decoder.logits.clear()
    assert run(decoder, [7, 4]) == {n: alone[n] for n in (7, 4)}


def test_what_generations_took_adds_up_to_the_time_that_passed(loaded):
    import time

    decoder = Decoder(loaded, RAGGED)
    began = time.monotonic()
    outcomes = []
    for number in (2, 5, 11):
        decoder.add(str(number), asked(number))
    while decoder.keys:
        outcomes += decoder.step()
    passed = time.monotonic() - began
    assert 0.7 * passed < sum(done.seconds for _, done in outcomes) <= passed


def test_rows_that_depend_on_their_number_are_found(loaded):
    """The check that a worker makes at its start, on a layer that gives itself away by one bit."""
    import torch

    assert uneven_rows(loaded.model, RAGGED.quantum) == []
    layer = loaded.model.model.layers[0].mlp.down_proj

    def planted(_, fed, out):
        return torch.nextafter(out, out + 1) if fed[0].shape[0] == 8 else out

    hook = layer.register_forward_hook(planted)
    try:
        assert uneven_rows(loaded.model, RAGGED.quantum) == ["32×64"]
    finally:
        hook.remove()
