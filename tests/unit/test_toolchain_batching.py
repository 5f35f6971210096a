"""Batching changes no bit: the logits of whole generations, alone and in any company, order and warmth."""

import hashlib

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import Phase, given, settings
from support.tiny_model import make_model, toolchain_for

from gsum.engine.llm.decode import Decoder
from gsum.engine.llm.load import load
from gsum.engine.llm.ragged import uneven_rows
from gsum.engine.llm.schemes import SCHEMES
from gsum.rules.config import Attention, Dtype
from gsum.rules.requests import Message, Request, Role

RAGGED = SCHEMES["ragged-1"]
SMALL = msgspec.structs.replace(SCHEMES["fixed-1"], width=8, quantum=32, rows=32)
"""The scheme of fixed passes, with passes that a prompt of these tests does not fit."""
EIGHT = msgspec.structs.replace(SMALL, width=4, quantum=8, rows=8)
CASES = {
    "ragged-1": (RAGGED, Dtype.FLOAT32, Attention.SDPA, 1),
    "ragged-1 eager": (RAGGED, Dtype.FLOAT32, Attention.EAGER, 1),
    "ragged-1 on two threads": (RAGGED, Dtype.FLOAT32, Attention.SDPA, 2),
    "ragged-2": (msgspec.structs.replace(SCHEMES["ragged-2"], width=8), Dtype.FLOAT32, Attention.EAGER, 1),
    "ragged-2 bfloat16": (msgspec.structs.replace(SCHEMES["ragged-2"], width=8), Dtype.BFLOAT16, Attention.EAGER, 1),
    "fixed-1": (SMALL, Dtype.FLOAT32, Attention.EAGER, 1),
}
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
        self.logits.setdefault(writing.key, []).append(hashlib.sha256(logits.numpy().tobytes()).hexdigest())
        super()._extend(writing, logits)


def run(decoder, numbers, pauses=(), drafts=None):
    """Generate for all, each next one joining after some passes; return tokens and logits by number."""
    done = {}
    waiting = list(zip(numbers, [*pauses, *[0] * len(numbers)], strict=False))
    pause = 0
    while waiting or decoder.keys:
        while waiting and not decoder.full and pause <= 0:
            number, pause = waiting.pop(0)
            decoder.add(str(number), asked(number), (drafts or {}).get(number, ()))
        pause -= 1
        done |= {int(key): outcome for key, outcome in decoder.step()}
    decoder.outcomes = done
    return {number: (done[number].token_ids, decoder.logits.get(str(number), [])) for number in numbers}


@pytest.fixture(scope="module", params=["llama", "qwen2"])
def folder(request, tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("tiny") / "m", family=request.param)


def loaded_as(folder, dtype, attention, threads=1):
    import torch

    torch.set_num_threads(threads)
    return load("tiny", toolchain_for(folder, dtype=dtype, attention=attention), folder, folder)


def each_alone(loaded, scheme):
    """What each request gives by itself, in a decoder of its own."""
    return {n: run(Recording(loaded, narrowed(scheme, 1)), [n])[n] for n in range(18)}


def narrowed(scheme, width):
    """A scheme with fewer requests at a time; the output layer of fixed passes has a fixed shape too."""
    return scheme if scheme.rows else msgspec.structs.replace(scheme, width=width)


@pytest.fixture(scope="module", params=list(CASES))
def case(request, folder):
    """A loaded model, a scheme, and what each request gives alone under it."""
    import torch

    scheme, dtype, attention, threads = CASES[request.param]
    loaded = loaded_as(folder, dtype, attention, threads)
    request.addfinalizer(lambda: torch.set_num_threads(1))
    if uneven_rows(loaded.model, scheme):
        assert dtype is Dtype.BFLOAT16, "this machine's products depend on their rows"
        pytest.skip("this machine has no products of bfloat16 that keep their bits; a worker would refuse it")
    return loaded, scheme, each_alone(loaded, scheme)


@pytest.fixture(scope="module")
def loaded(folder):
    return loaded_as(folder, Dtype.FLOAT32, Attention.SDPA)


@pytest.fixture(scope="module")
def alone(loaded):
    return each_alone(loaded, RAGGED)


PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # a failure is told as it is: to shrink it takes minutes
NUMBERS = st.lists(st.integers(0, 17), min_size=1, max_size=12, unique=True)
PAUSES = st.lists(st.integers(0, 6), max_size=12)


@settings(max_examples=6, deadline=None, phases=PHASES)
@given(
    numbers=NUMBERS,
    width=st.integers(1, 8),
    pauses=PAUSES,
    warm=st.lists(st.integers(0, 17), max_size=2, unique=True),
    dropped=st.integers(0, 17),
)
def test_every_logit_is_bitwise_what_it_is_alone(case, numbers, width, pauses, warm, dropped):
    loaded, scheme, alone = case
    decoder = Recording(loaded, narrowed(scheme, width))
    run(decoder, warm)
    decoder.logits.clear()
    decoder.add("given up", asked(dropped))
    decoder.step()
    decoder.drop("given up")
    got = run(decoder, numbers, pauses)
    assert got == {number: alone[number] for number in numbers}


def bent(tokens, cuts):
    """An answer with some of its places cut out, doubled or written over."""
    tokens = list(tokens)
    for place, count, put in cuts:
        at = place % (len(tokens) + 1)
        tokens[at : at + count] = put
    return tokens


TOKENS = st.integers(-3, 400)  # of which some are no tokens, and 2 ends an answer
CUTS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 6), st.lists(TOKENS, max_size=4)), max_size=3)
DRAFTS = st.one_of(
    CUTS.map(lambda cuts: ("bent", cuts)),
    st.integers(0, 17).map(lambda other: ("another's", other)),
    st.lists(TOKENS, max_size=40).map(lambda tokens: ("noise", tokens)),
)


@settings(max_examples=6, deadline=None, phases=PHASES)
@given(numbers=NUMBERS, pauses=PAUSES, drafts=st.lists(DRAFTS, min_size=12, max_size=12))
def test_no_draft_changes_a_logit(case, numbers, pauses, drafts):
    loaded, scheme, alone = case
    said = {}
    for number, (kind, what) in zip(numbers, drafts, strict=False):
        if kind == "bent":
            said[number] = bent(alone[number][0], what)
        else:
            said[number] = alone[what][0] if kind == "another's" else what
    decoder = Recording(loaded, scheme)
    assert run(decoder, numbers, pauses, said) == {number: alone[number] for number in numbers}


def test_the_requests_differ_in_length_and_in_what_is_chosen(alone):
    assert len({len(tokens) for tokens, _ in alone.values()}) > 5
    assert len({tokens for tokens, _ in alone.values()}) > 12
    assert sum(len(logits) for _, logits in alone.values()) > 150


def test_a_true_draft_leaves_one_pass_and_a_wrong_place_costs_few(loaded, alone):
    for number in (4, 7, 14):
        tokens, logits = alone[number]
        assert len(logits) > 4
        for draft, most in ((tokens, 1), (bent(tokens, [(len(tokens) // 2, 1, [300])]), 5)):
            decoder = Recording(loaded, RAGGED)
            decoder.add("", asked(number), draft)
            passes = 0
            while decoder.keys:
                [*ended] = decoder.step()
                passes += 1
            assert ended[0][1].token_ids == tokens
            assert decoder.logits[""] == logits
            assert passes <= most
            assert ended[0][1].drafted == len(logits) - passes


def test_passes_of_the_fixed_scheme_all_have_one_shape(loaded):
    shapes = set()
    hook = loaded.model.model.layers[0].mlp.down_proj.register_forward_hook(lambda _, fed, __: shapes.add(fed[0].shape))
    head = loaded.model.lm_head.register_forward_hook(lambda _, fed, __: shapes.add(fed[0].shape))
    try:
        run(Recording(loaded, SMALL), range(12), drafts={3: (5, 6, 7)})
    finally:
        hook.remove()
        head.remove()
    assert shapes == {(1, 32, 64), (1, 8, 32)}


@pytest.mark.parametrize(("scheme", "text"), [("fixed-1", 9), ("ragged-1", 36)])
def test_pieces_that_fill_a_pass_leave_the_others_to_share_theirs(loaded, scheme, text):
    """Eight prompts whose rest is more than a pass may have beside another row, thirty tokens each."""
    words = " ".join(f"Product P-{i} site: Lyon {i}." for i in range(text * 4))
    wanted = {
        str(n): Request(
            (Message(Role.SYSTEM, SYSTEMS[0]), Message(Role.USER, f"{n} {words}")), 1, None, 30, 4000, "t", "p"
        )
        for n in range(8)
    }
    alone = {key: Recording(loaded, SCHEMES[scheme]).generate(request) for key, request in wanted.items()}
    rest = min(len(one.token_ids) + one.prompt_tokens for one in alone.values()) - 30
    assert rest > {"fixed-1": 256, "ragged-1": 1024}[scheme] + len(SYSTEMS[0])
    decoder, done, passes = Recording(loaded, SCHEMES[scheme]), {}, 0
    for key, request in wanted.items():
        decoder.add(key, request)
    while decoder.keys:
        done |= dict(decoder.step())
        passes += 1
    assert {key: one.token_ids for key, one in done.items()} == {key: one.token_ids for key, one in alone.items()}
    sampled = [one.sampled for one in alone.values()]
    pieces = sum(-(-one.prompt_tokens // (SCHEMES[scheme].rows or 4000)) for one in alone.values())
    assert passes <= pieces + max(sampled) + 8 < sum(sampled)


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

    assert uneven_rows(loaded.model, RAGGED) == uneven_rows(loaded.model, EIGHT) == []
    layer = loaded.model.model.layers[0].mlp.down_proj

    def planted(_, fed, out):
        return torch.nextafter(out, out + 1) if fed[0].shape[0] == 8 else out

    hook = layer.register_forward_hook(planted)
    try:
        assert uneven_rows(loaded.model, RAGGED) == ["32×64"]
        assert uneven_rows(loaded.model, EIGHT) == []
    finally:
        hook.remove()


def test_rows_that_depend_on_their_place_are_found(loaded):
    import torch

    def planted(_, __, out):
        out[-1] = torch.nextafter(out[-1], out[-1] + 1)

    hook = loaded.model.model.layers[0].mlp.down_proj.register_forward_hook(planted)
    try:
        assert uneven_rows(loaded.model, EIGHT) == ["32×64"]
    finally:
        hook.remove()


@pytest.mark.parametrize("layer", ["model.layers.0.mlp.down_proj", "lm_head"])
def test_rows_that_differ_in_the_largest_pass_alone_are_found(loaded, layer):
    import torch

    def planted(_, fed, out):
        return torch.nextafter(out, out + 1) if fed[0].shape[0] > 1000 else out

    module = loaded.model.get_submodule(layer)
    hook = module.register_forward_hook(planted)
    try:
        assert uneven_rows(loaded.model, RAGGED) == ["×".join(map(str, module.weight.shape))]
    finally:
        hook.remove()


def test_the_output_layer_of_fixed_passes_is_looked_at_with_the_rows_that_it_is_given(loaded):
    import torch

    def planted(_, fed, out):
        if fed[0].shape[0] == EIGHT.width:
            out[-1] = torch.nextafter(out[-1], out[-1] + 1)

    hook = loaded.model.lm_head.register_forward_hook(planted)
    try:
        assert uneven_rows(loaded.model, EIGHT) == ["384×32"]
    finally:
        hook.remove()
