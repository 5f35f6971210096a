"""`[toolchain.qwen]` of BUILD.toml as declared, held against a small random Qwen2 in the place of the real weights.

Its generation_config asks for what the real one asks for: a penalty, a temperature, sampling, two ids that end.
"""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import msgspec
import pytest
from support.tiny_model import edit_json, fake_hub_cache, make_model, sha256_of, toolchain_for

from gsum.engine.llm.decode import Decoder, OverBudget
from gsum.engine.llm.load import load
from gsum.engine.llm.sources import ModelMissing, ToolchainError, locate_model
from gsum.engine.llm.tokenize import PromptTokenizer
from gsum.engine.llm.verify import declared, mismatches, observe_model
from gsum.rules.config import Attention, Device, Dtype, HuggingFaceSource, Strength
from gsum.rules.loader import load_workspace
from gsum.rules.requests import Message, Request, Role
from gsum.store.records import StopReason

ROOT = Path(__file__).parents[2]
WORKSPACE = load_workspace(ROOT)
QWEN = WORKSPACE.toolchains["qwen"]
IM_END, ENDOFTEXT = 2, 0
ASKED = Request(
    (Message(Role.SYSTEM, "You copy."), Message(Role.USER, "Product P-1 site: Lyon.")), 1, None, 32, 2048, "t", "p"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = make_model(tmp_path_factory.mktemp("qwen") / "m", family="qwen2")
    edit_json(made / "generation_config.json", eos_token_id=[IM_END, ENDOFTEXT], pad_token_id=ENDOFTEXT)
    return made


def as_declared(folder, **changes):
    """The toolchain of BUILD.toml with this folder's digests, on the CPU."""
    files = {name: sha256_of(folder / name) for name in QWEN.files}
    return msgspec.structs.replace(QWEN, **{"files": files, "device": Device.CPU, **changes})


def in_float32(folder, **changes):
    """The same weights in float32 under sdpa, in which products by hand and by the engine can be compared."""
    return toolchain_for(folder, **changes)


def at(hub, wanted):
    environ = {"HF_HUB_CACHE": str(hub)}
    return locate_model("qwen", wanted, cache_dir=hub, workspace_root=hub, environ=environ)


def test_the_declaration_is_that_of_the_reference():
    assert QWEN.source == HuggingFaceSource("Qwen/Qwen2.5-1.5B-Instruct", "989aa7980e4cf806f80c7fef2b1adb7bc71aa306")
    assert (QWEN.device, QWEN.dtype, QWEN.attention) == (Device.CUDA, Dtype.BFLOAT16, Attention.EAGER)
    assert QWEN.tied_embeddings is True
    assert QWEN.grammar.strength is Strength.NONE
    assert (QWEN.decoding.method, QWEN.decoding.max_new_tokens) == ("greedy", 384)
    package = WORKSPACE.packages["dossier"]
    assert (package.map_input_tokens, package.reduce_input_tokens) == (2048, 3072)


def test_it_loads_strictly_from_the_hub_s_cache_with_every_connection_forbidden(folder, tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    wanted = as_declared(folder)
    snapshot = fake_hub_cache(tmp_path, folder, QWEN.source.repo, QWEN.source.commit)
    found = at(tmp_path, wanted)
    assert found.folder == snapshot
    loaded = load("qwen", wanted, found.folder, tmp_path)
    seen = observe_model(loaded)
    wants = declared(wanted, WORKSPACE.numerics[QWEN.numerics])
    assert mismatches({name: wants[name] for name in wants.keys() & seen.keys()}, seen) == []
    assert loaded.end_ids == {IM_END, ENDOFTEXT}
    assert loaded.model.lm_head.weight is loaded.model.model.embed_tokens.weight
    assert Decoder(loaded).generate(ASKED).sampled > 0


def test_another_commit_is_not_there(folder, tmp_path):
    fake_hub_cache(tmp_path, folder, QWEN.source.repo, "0" * 40)
    with pytest.raises(ModelMissing) as caught:
        at(tmp_path, as_declared(folder))
    assert "gsum fetch" in (caught.value.hint or "")


def test_a_tampered_weight_of_the_cache_is_found_though_its_size_and_times_are_as_before(folder, tmp_path):
    snapshot = fake_hub_cache(tmp_path, folder, QWEN.source.repo, QWEN.source.commit)
    blob = (snapshot / "model.safetensors").resolve()
    before = blob.stat()
    data = bytearray(blob.read_bytes())
    data[-3] ^= 1
    blob.write_bytes(data)
    os.utime(blob, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert blob.stat().st_size == before.st_size
    with pytest.raises(ToolchainError) as caught:
        load("qwen", as_declared(folder), snapshot, tmp_path)
    assert caught.value.facts["file"] == snapshot / "model.safetensors"


def test_a_model_whose_output_layer_is_not_tied_is_not_the_declared_one(tmp_path):
    untied = make_model(tmp_path / "m", family="qwen2", tied=False)
    wanted = as_declared(untied)
    seen = observe_model(load("qwen", wanted, untied, tmp_path))
    wants = declared(wanted, WORKSPACE.numerics[QWEN.numerics])
    assert [one.name for one in mismatches({"tied_embeddings": wants["tied_embeddings"]}, seen)] == ["tied_embeddings"]


def test_greedy_ignores_the_penalty_that_transformers_keeps(folder, tmp_path):
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig

    torch.set_num_threads(1)
    wanted = in_float32(folder)
    loaded = load("qwen", wanted, folder, tmp_path)
    ours = list(Decoder(loaded).generate(ASKED).token_ids)
    prompt = PromptTokenizer(loaded.tokenizer).prompt(ASKED)
    ids = torch.tensor([[*prompt.shared, *prompt.rest]])
    model = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32)
    assert model.generation_config.repetition_penalty == 1.1

    def theirs():
        out = model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=ASKED.max_new_tokens
        )
        return out[0, ids.shape[1] :].tolist()

    assert theirs() != ours  # `do_sample=False` alone leaves the penalty on
    model.generation_config = GenerationConfig(eos_token_id=[IM_END, ENDOFTEXT], pad_token_id=ENDOFTEXT)
    assert theirs() == ours


@pytest.mark.parametrize("place", [0, 1])
def test_each_of_two_ids_ends_a_generation(folder, tmp_path, place):
    free = Decoder(load("qwen", in_float32(folder), folder, tmp_path)).generate(ASKED).token_ids
    chosen = list(dict.fromkeys(free))[2]  # a token that the model chooses, and not at once
    other = next(token for token in range(3, 300) if token not in free)
    both = [chosen, other] if place == 0 else [other, chosen]
    copy = shutil.copytree(folder, tmp_path / "copy")
    edit_json(copy / "generation_config.json", eos_token_id=both)
    loaded = load("qwen", in_float32(copy), copy, tmp_path)
    assert set(both) <= loaded.end_ids
    done = Decoder(loaded).generate(ASKED)
    assert done.token_ids == free[: free.index(chosen) + 1]
    assert done.stop is StopReason.EOS
    assert done.text == loaded.tokenizer.decode(list(done.token_ids[:-1]))


@pytest.mark.parametrize("budget", ["map_input_tokens", "reduce_input_tokens"])
def test_one_token_over_a_package_s_budget_is_refused(folder, tmp_path, budget):
    most = getattr(WORKSPACE.packages["dossier"], budget)
    loaded = load("qwen", in_float32(folder), folder, tmp_path)
    tokens = PromptTokenizer(loaded.tokenizer)

    def asked(filling):
        messages = (Message(Role.SYSTEM, "You copy."), Message(Role.USER, "1" * filling))
        return Request(messages, 1, None, QWEN.decoding.max_new_tokens, most, "t", "p")

    filling = most - tokens.prompt(asked(0)).total
    assert tokens.prompt(asked(filling)).total == most
    decoder = Decoder(loaded)
    decoder.add("fits", asked(filling))
    with pytest.raises(OverBudget) as caught:
        decoder.add("does not", asked(filling + 1))
    assert (caught.value.budget, caught.value.needed) == (most, most + 1)
    assert decoder.keys == ["fits"]
