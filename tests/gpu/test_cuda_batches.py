"""Batches on a CUDA device: under `fixed-1` every logit of whole generations is bitwise what it is alone."""

import pytest
from support.tiny_model import make_model, toolchain_for

from gsum.engine.llm.decode import Decoder
from gsum.engine.llm.load import load
from gsum.engine.llm.ragged import uneven_rows
from gsum.engine.llm.schemes import SCHEMES
from gsum.rules.config import Attention, Device, Dtype
from gsum.rules.requests import Message, Request, Role

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device"),
]
FIXED = SCHEMES["fixed-1"]
FORCING = 'start: "{" /[a-z]{3,9}/ " is a very long forced text " ("x" | "y") "}"\n'
COUNT = 12


def asked(number: int) -> Request:
    text = " ".join(f"Product P-{number}-{i} site: Lyon {i * number}." for i in range((number * 5) % 17))
    messages = (Message(Role.SYSTEM, "Copy." * (1 + number % 2 * 40)), Message(Role.USER, text))
    return Request(messages, 1, FORCING if number % 3 == 0 else None, 24 + number, 4000, "t", "p")


class Recording(Decoder):
    """A decoder that keeps the logits it chose from."""

    def __init__(self, loaded):
        super().__init__(loaded, FIXED)
        self.logits = {}

    def _extend(self, writing, logits):
        self.logits.setdefault(writing.key, []).append(logits.numpy().tobytes())
        super()._extend(writing, logits)


def run(loaded, numbers, *, together):
    decoder, waiting, done = Recording(loaded), list(numbers), {}
    while waiting or decoder.keys:
        while waiting and not decoder.full and (together or not decoder.keys):
            number = waiting.pop(0)
            decoder.add(str(number), asked(number))
        done |= {int(key): outcome.token_ids for key, outcome in decoder.step()}
    return {number: (done[number], decoder.logits[str(number)]) for number in numbers}


@pytest.fixture(scope="module", params=[Dtype.BFLOAT16, Dtype.FLOAT32])
def loaded(request, tmp_path_factory):
    folder = make_model(tmp_path_factory.mktemp("tiny") / "m", family="qwen2")
    wanted = toolchain_for(folder, device=Device.CUDA, dtype=request.param, attention=Attention.EAGER)
    return load("tiny", wanted, folder, folder)


def test_the_device_s_products_keep_rows_in_other_places(loaded):
    assert uneven_rows(loaded.model, FIXED) == []


@pytest.mark.parametrize("order", [range(COUNT), range(COUNT)[::-1], [5, 0, 11, 3]])
def test_every_logit_is_bitwise_what_it_is_alone(loaded, order):
    alone = run(loaded, range(COUNT), together=False)
    assert run(loaded, list(order), together=True) == {number: alone[number] for number in order}
