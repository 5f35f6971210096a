"""The same code on a CUDA device: same tokens warm and cold, and bfloat16 under eager attention."""

import pytest
from support.tiny_model import NUMERICS, make_model, toolchain_for

from gsum.engine.llm.decode import Decoder
from gsum.engine.llm.load import load
from gsum.engine.llm.verify import declared, mismatches, observe_model
from gsum.rules.config import Attention, Device, Dtype, NumericsSection
from gsum.rules.requests import Message, Request, Role

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device"),
]
ASKED = Request(
    (Message(Role.SYSTEM, "You copy."), Message(Role.USER, "Product P-1 site: Lyon.")), 1, None, 64, 500, "t", "p"
)
ON_CUDA = NumericsSection("single-2")


@pytest.fixture(scope="module", params=["llama", "qwen2"])
def folder(request, tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("tiny") / "m", family=request.param)


@pytest.mark.parametrize("attention", [Attention.EAGER, Attention.SDPA])
@pytest.mark.parametrize("dtype", [Dtype.BFLOAT16, Dtype.FLOAT16, Dtype.FLOAT32])
def test_tokens_do_not_depend_on_what_came_before(folder, tmp_path, dtype, attention):
    wanted = toolchain_for(folder, device=Device.CUDA, dtype=dtype, attention=attention)
    loaded = load("tiny", wanted, folder, tmp_path)
    assert mismatches(declared(wanted, ON_CUDA), observe_model(loaded)) == []
    warm = Decoder(loaded)
    first, second = warm.generate(ASKED), warm.generate(ASKED)
    assert first.token_ids == second.token_ids == Decoder(loaded).generate(ASKED).token_ids
    assert second.reused > 0


def test_float32_agrees_with_the_cpu(folder, tmp_path):
    on_cpu = load("tiny", toolchain_for(folder), folder, tmp_path)
    on_cuda = load("tiny", toolchain_for(folder, device=Device.CUDA), folder, tmp_path)
    assert observe_model(on_cuda)["device"] == "cuda"
    assert NUMERICS.threads == 1
    assert Decoder(on_cuda).generate(ASKED).token_ids == Decoder(on_cpu).generate(ASKED).token_ids


def test_a_grammar_s_mask_reaches_the_device(folder, tmp_path):
    import msgspec

    loaded = load("tiny", toolchain_for(folder, device=Device.CUDA), folder, tmp_path)
    done = Decoder(loaded).generate(msgspec.structs.replace(ASKED, grammar='start: "[" ("1" | "2") "]"\n'))
    assert done.text in ("[1]", "[2]")
