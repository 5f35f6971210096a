"""What a toolchain's device shows of itself: on CUDA its compute capability, which a profile may declare."""

import msgspec
import pytest
from support.tiny_model import NUMERICS, make_model, toolchain_for

from gsum.engine.llm import doctor
from gsum.engine.llm.isa import observed_instruction_set
from gsum.engine.llm.load import load
from gsum.engine.llm.verify import Mismatch, declared, mismatches, observe_model
from gsum.rules.config import Device, NumericsSection


@pytest.fixture
def h200(monkeypatch):
    """What torch says where the device is one of capability 9.0."""
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = make_model(tmp_path_factory.mktemp("tiny") / "m")
    toolchain = toolchain_for(folder)
    return msgspec.structs.replace(toolchain, device=Device.CUDA), load("tiny", toolchain, folder, folder)


def test_a_cuda_device_is_its_capability_whatever_the_processor_has(h200):
    assert observed_instruction_set(None, "cuda") == "sm_90"
    assert observed_instruction_set("AVX512_BF16", "cuda") == "sm_90"
    assert not observed_instruction_set(None).startswith("sm_")


def test_a_declared_capability_is_compared_with_the_device_of_the_loaded_model(h200, model):
    toolchain, loaded = model
    seen = observe_model(msgspec.structs.replace(loaded, device="cuda"))
    for name, wrong in (("sm_90", []), ("sm_80", [Mismatch("instruction_set", "sm_80", "sm_90")])):
        wanted = declared(toolchain, NumericsSection("single-2", None, name))
        assert [one for one in mismatches(wanted, seen) if one.name == "instruction_set"] == wrong
    assert "instruction_set" not in declared(toolchain, msgspec.structs.replace(NUMERICS, instruction_set=None))


def test_the_doctor_names_a_device_of_another_capability_than_declared(h200, model):
    toolchain, _ = model
    found = doctor._device("qwen", toolchain, NumericsSection("single-2", None, "sm_80"))
    assert (found.ok, found.value) == (False, "cuda, NVIDIA H200, sm_90, declared sm_80")
    assert found.hint is not None and "gsum toolchain pin qwen" in found.hint
    assert doctor._device("qwen", toolchain, NumericsSection("single-2", None, "sm_90")).ok
    assert doctor._device("qwen", toolchain, NumericsSection("single-2")).ok
