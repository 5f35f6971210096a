"""How a model is filled: as transformers would, with every tensor of its files and no other."""

import msgspec
import pytest
import torch
from safetensors.torch import load_file, save_file
from support.tiny_model import edit_json, make_model, toolchain_for

from gsum.engine.llm.load import load
from gsum.engine.llm.sources import ToolchainError
from gsum.engine.llm.weights import build_model
from gsum.rules.config import Attention, Dtype


def refusal(folder, **declared) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        load("tiny", toolchain_for(folder, **declared), folder, folder)
    return caught.value


@pytest.mark.parametrize("family", ["llama", "qwen2"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("dtype", [Dtype.FLOAT32, Dtype.BFLOAT16])
def test_a_model_is_the_one_that_transformers_loads(tmp_path, family, tied, dtype):
    from transformers import AutoModelForCausalLM

    folder = make_model(tmp_path / "m", family=family, tied=tied)
    ours = build_model("tiny", toolchain_for(folder, dtype=dtype, attention=Attention.EAGER), folder)
    theirs = AutoModelForCausalLM.from_pretrained(
        str(folder), dtype=getattr(torch, dtype.value), attn_implementation="eager"
    )
    for mine, other in (
        (dict(ours.named_parameters()), dict(theirs.named_parameters())),
        (dict(ours.named_buffers()), dict(theirs.named_buffers())),
    ):
        assert list(mine) == list(other) != []
        for name, tensor in mine.items():
            assert tensor.dtype == other[name].dtype, name
            assert torch.equal(tensor, other[name]), name
            assert not tensor.requires_grad
    assert ours.config.to_dict() == theirs.config.to_dict()
    assert ours.generation_config.to_dict() == theirs.generation_config.to_dict()
    assert not ours.training
    assert (ours.lm_head.weight is ours.model.embed_tokens.weight) is tied


def test_weights_that_change_on_disk_later_change_nothing_in_memory(tmp_path):
    folder = make_model(tmp_path / "m")
    model = build_model("tiny", toolchain_for(folder), folder)
    before = [parameter.clone() for parameter in model.parameters()]
    weights = folder / "model.safetensors"
    with weights.open("r+b") as file:
        file.seek(-4096, 2)
        file.write(bytes(4096))
    assert all(map(torch.equal, before, model.parameters()))


def test_weights_in_several_files_are_one_model(tmp_path):
    folder = make_model(tmp_path / "m")
    whole = build_model("tiny", toolchain_for(folder), folder)
    tensors = load_file(folder / "model.safetensors")
    half = sorted(tensors)[: len(tensors) // 2]
    save_file({name: tensors[name] for name in half}, folder / "one.safetensors")
    save_file({name: tensors[name] for name in tensors if name not in half}, folder / "two.safetensors")
    (folder / "model.safetensors").unlink()
    parted = build_model("tiny", toolchain_for(folder), folder)
    assert all(map(torch.equal, whole.parameters(), parted.parameters()))


def test_an_output_layer_beside_the_embeddings_it_is_tied_to_is_the_same_or_refused(tmp_path):
    folder = make_model(tmp_path / "m")
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    head = tensors["model.embed_tokens.weight"].clone()
    save_file({**tensors, "lm_head.weight": head}, weights)
    same = build_model("tiny", toolchain_for(folder), folder)
    assert same.lm_head.weight is same.model.embed_tokens.weight
    head[3, 3] += 1
    save_file({**tensors, "lm_head.weight": head}, weights)
    assert refusal(folder).facts == {"not what they are tied to": "lm_head.weight"}


def test_each_tensor_that_does_not_fit_is_named_with_what_is_wrong(tmp_path):
    folder = make_model(tmp_path / "m")
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    tensors["model.extra.weight"] = tensors.pop("model.layers.1.mlp.up_proj.weight")
    tensors["model.norm.weight"] = tensors["model.norm.weight"][:-1].clone()
    save_file(tensors, weights)
    assert refusal(folder).facts == {
        "missing": "model.layers.1.mlp.up_proj.weight",
        "unexpected": "model.extra.weight",
        "of another shape": "model.norm.weight",
    }


def test_quantised_weights_are_refused(tmp_path):
    folder = make_model(tmp_path / "m")
    edit_json(folder / "config.json", quantization_config={"quant_method": "fp8"})
    error = refusal(folder)
    assert error.message == "the model of toolchain `tiny` does not hold its weights in one dtype"
    assert "fp8" in error.facts["quantised"]


def test_a_model_with_parts_that_stay_in_float32_is_refused_in_bfloat16_alone(tmp_path, monkeypatch):
    from transformers import LlamaForCausalLM

    folder = make_model(tmp_path / "m")
    monkeypatch.setattr(LlamaForCausalLM, "_keep_in_fp32_modules_strict", {"norm"})
    assert refusal(folder, dtype=Dtype.BFLOAT16).facts == {"kept in float32": "norm"}
    load("tiny", toolchain_for(folder), folder, folder)


def test_a_tensor_in_several_files_is_refused(tmp_path):
    folder = make_model(tmp_path / "m")
    tensors = load_file(folder / "model.safetensors")
    name = "model.embed_tokens.weight"
    save_file({name: tensors[name] + 1}, folder / "zzz.safetensors")
    with pytest.raises(ToolchainError) as caught:
        build_model("tiny", toolchain_for(folder), folder)
    assert caught.value.facts == {"tensor": name, "reason": "it is in several files"}


@pytest.mark.parametrize("dtype", [torch.int8, torch.bool, torch.float8_e4m3fn])
def test_a_tensor_of_no_plain_float_type_is_refused(tmp_path, dtype):
    folder = make_model(tmp_path / "m")
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    save_file({**tensors, "model.norm.weight": tensors["model.norm.weight"].to(dtype)}, weights)
    assert refusal(folder).facts == {"tensor": "model.norm.weight", "reason": f"it is of {dtype}"}


def test_no_code_of_a_model_runs_and_nobody_is_asked_whether_it_may(tmp_path, monkeypatch):
    folder = make_model(tmp_path / "m")
    (folder / "evil.py").write_text("raise SystemExit('evil')\n")
    edit_json(folder / "config.json", model_type="t5", auto_map={"AutoModelForCausalLM": "evil.Evil"})
    asked = []
    monkeypatch.setattr("builtins.input", lambda *_: asked.append(1) or "y")
    with pytest.raises(ValueError, match=r"evil|trust_remote_code|T5|t5"):
        build_model("tiny", toolchain_for(folder), folder)
    assert asked == []
    assert refusal(folder).message == "the model of toolchain `tiny` can't be loaded"


@pytest.mark.parametrize(
    ("file", "change"), [("config.json", {"dtype": "auto"}), ("generation_config.json", {"eos_token_id": "x"})]
)
def test_a_configuration_of_wrong_types_is_a_refusal(tmp_path, file, change):
    folder = make_model(tmp_path / "m")
    edit_json(folder / file, **change)
    assert refusal(folder).message == "the model of toolchain `tiny` can't be loaded"


def test_a_declared_dtype_is_that_of_every_parameter_whatever_the_files_hold(tmp_path):
    folder = make_model(tmp_path / "m")
    weights = folder / "model.safetensors"
    save_file({name: tensor.bfloat16() for name, tensor in load_file(weights).items()}, weights)
    loaded = load("tiny", msgspec.structs.replace(toolchain_for(folder), dtype=Dtype.FLOAT32), folder, folder)
    assert {parameter.dtype for parameter in loaded.model.parameters()} == {torch.float32}
