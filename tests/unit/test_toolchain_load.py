"""Loading: strict, tied as declared, from declared files alone; greedy whatever a generation_config asks for."""

import hashlib
import json
import shutil

import pytest
from support.tiny_model import (
    NUMERICS,
    edit_json,
    fake_hub_cache,
    make_model,
    toolchain_for,
)

from gsum.engine.llm.decode import Decoder, NotANumber, OverBudget
from gsum.engine.llm.load import DeviceMissing, load, only_declared, require_device
from gsum.engine.llm.sources import ToolchainError, locate_model
from gsum.engine.llm.verify import declared, mismatches, observe_libraries, observe_model
from gsum.rules.config import (
    Attention,
    Device,
    Dtype,
    GrammarSection,
    HuggingFaceSource,
    NumericsSection,
    Strength,
)
from gsum.rules.requests import Message, Request, Role
from gsum.store.records import StopReason

COMMIT = "b" * 40
PLAIN = Request(
    (Message(Role.SYSTEM, "You copy."), Message(Role.USER, "Product P-1 site: Lyon.")), 1, None, 24, 500, "t", "p"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("tiny") / "m")


@pytest.fixture(scope="module")
def loaded(folder, tmp_path_factory):
    return load("tiny", toolchain_for(folder), folder, tmp_path_factory.mktemp("cache"))


def copied(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def test_what_is_observed_agrees_with_what_is_declared(folder, loaded):
    import torch

    torch.set_num_threads(1)
    seen = observe_model(loaded) | observe_libraries(NUMERICS, toolchain_for(folder))
    wanted = declared(toolchain_for(folder), NUMERICS)
    assert mismatches(wanted, seen) == []
    assert set(wanted) <= set(seen)
    assert loaded.vocab_size == 384 > len(loaded.tokenizer)
    assert loaded.end_ids == {0, 2}


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_an_untied_model_is_seen_as_untied(tmp_path, family):
    made = make_model(tmp_path / "m", family=family, tied=False)
    model = load("tiny", toolchain_for(made), made, tmp_path)
    wrong = mismatches(declared(toolchain_for(made), NUMERICS), {"tied_embeddings": "false"})
    assert observe_model(model)["tied_embeddings"] == "false"
    assert [(one.name, one.declared, one.observed) for one in wrong] == [("tied_embeddings", "true", "false")]


def _rewrite_tensors(path, change):
    from safetensors.torch import load_file, save_file

    tensors = load_file(str(path))
    change(tensors)
    save_file(tensors, str(path), metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("missing", lambda t: t.pop("model.layers.1.mlp.up_proj.weight")),
        ("unexpected", lambda t: t.update({"model.extra.weight": t["model.norm.weight"].clone()})),
        ("shape", lambda t: t.update({"model.norm.weight": t["model.norm.weight"][:-1].clone()})),
    ],
)
def test_weights_that_do_not_fit_exactly_are_refused(folder, tmp_path, name, change):
    made = copied(folder, tmp_path)
    _rewrite_tensors(made / "model.safetensors", change)
    with pytest.raises(ToolchainError) as caught:
        load("tiny", toolchain_for(made), made, tmp_path)
    assert caught.value.facts


def test_a_changed_weight_is_found_before_it_is_loaded(folder, tmp_path):
    wanted = toolchain_for(folder)
    made = copied(folder, tmp_path)
    data = bytearray((made / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (made / "model.safetensors").write_bytes(data)
    with pytest.raises(ToolchainError) as caught:
        load("tiny", wanted, made, tmp_path)
    assert caught.value.facts["file"] == made / "model.safetensors"
    assert caught.value.facts["found"] == hashlib.sha256(data).hexdigest()


def test_undeclared_files_of_a_folder_are_not_seen(folder, tmp_path):
    wanted = toolchain_for(folder)
    made = copied(folder, tmp_path)
    (made / "chat_template.jinja").write_text("{{ 'hijacked' }}")
    (made / "added_tokens.json").write_text('{"<evil>": 383}')
    (made / "pytorch_model.bin").write_bytes(b"pickle")
    with only_declared(wanted.files, made) as seen:
        assert sorted(path.name for path in seen.iterdir()) == sorted(wanted.files)
    model = load("tiny", wanted, made, tmp_path)
    assert "hijacked" not in model.tokenizer.chat_template


def test_a_hub_snapshot_of_links_to_blobs_loads_offline(folder, tmp_path):
    snapshot = fake_hub_cache(tmp_path / "hub", folder, "some/model", COMMIT)
    wanted = toolchain_for(folder, source=HuggingFaceSource("some/model", COMMIT))
    environ = {"HF_HUB_CACHE": str(tmp_path / "hub")}
    found = locate_model("tiny", wanted, cache_dir=tmp_path, workspace_root=tmp_path, environ=environ)
    assert found.folder == snapshot
    assert Decoder(load("tiny", wanted, found.folder, tmp_path)).generate(PLAIN).prompt_tokens > 0


def test_a_tampered_blob_of_the_hub_s_cache_is_refused(folder, tmp_path):
    snapshot = fake_hub_cache(tmp_path / "hub", folder, "some/model", COMMIT)
    wanted = toolchain_for(folder, source=HuggingFaceSource("some/model", COMMIT))
    edit_json((snapshot / "config.json").resolve(), rms_norm_eps=0.5)
    with pytest.raises(ToolchainError) as caught:
        load("tiny", wanted, snapshot, tmp_path)
    assert caught.value.facts["file"] == snapshot / "config.json"


def test_greedy_is_the_argmax_whatever_the_generation_config_asks_for(folder, loaded, tmp_path):
    asked = json.loads((folder / "generation_config.json").read_text())
    assert asked["repetition_penalty"] == 1.1
    assert asked["do_sample"] is True
    neutral = copied(folder, tmp_path)
    edit_json(neutral / "generation_config.json", do_sample=False, repetition_penalty=1.0, temperature=1.0)
    calm = Decoder(load("tiny", toolchain_for(neutral), neutral, tmp_path)).generate(PLAIN)
    eager = Decoder(loaded).generate(PLAIN)
    assert eager.token_ids == calm.token_ids == _argmax_by_hand(loaded, PLAIN)


def _argmax_by_hand(loaded, request):
    """Feed the whole sequence afresh for every token: no cache, no split, no generate()."""
    import torch

    text = loaded.tokenizer.apply_chat_template(
        [{"role": m.role.value, "content": m.content} for m in request.messages],
        tokenize=False,
        add_generation_prompt=True,
    )
    ids = loaded.tokenizer(text, add_special_tokens=False)["input_ids"]
    written: list[int] = []
    while len(written) < request.max_new_tokens:
        with torch.no_grad():
            logits = loaded.model(input_ids=torch.tensor([ids + written])).logits[0, -1]
        written.append(int(torch.argmax(logits)))
        if written[-1] in loaded.end_ids:
            break
    return tuple(written)


@pytest.mark.parametrize("family", ["llama", "qwen2"])
@pytest.mark.parametrize("attention", [Attention.EAGER, Attention.SDPA])
def test_bfloat16_runs_under_either_attention(tmp_path, family, attention):
    made = make_model(tmp_path / "m", family=family)
    wanted = toolchain_for(made, dtype=Dtype.BFLOAT16, attention=attention)
    model = load("tiny", wanted, made, tmp_path)
    seen = observe_model(model)
    assert (seen["dtype"], seen["attention"]) == ("bfloat16", attention.value)
    assert len(Decoder(model).generate(PLAIN).token_ids) > 0


def test_a_warm_prefix_gives_what_a_cold_one_gives(loaded):
    warm = Decoder(loaded)
    first, second = warm.generate(PLAIN), warm.generate(PLAIN)
    cold = Decoder(loaded).generate(PLAIN)
    assert first.token_ids == second.token_ids == cold.token_ids
    assert (first.reused, first.prefilled) == (0, first.prompt_tokens)
    assert second.reused > 0
    assert second.reused + second.prefilled == second.prompt_tokens == first.prompt_tokens
    assert first.stop is StopReason.LENGTH
    assert first.sampled == len(first.token_ids) == 24


def test_a_generation_does_not_depend_on_those_before_it(loaded):
    import msgspec

    others = [msgspec.structs.replace(PLAIN, messages=(PLAIN.messages[0], Message(Role.USER, t))) for t in "abcdef"]
    used = Decoder(loaded)
    for other in others:
        used.generate(other)
    assert used.generate(PLAIN).token_ids == Decoder(loaded).generate(PLAIN).token_ids


def test_a_grammar_is_followed_and_its_forced_tokens_are_counted(loaded):
    import msgspec

    asked = msgspec.structs.replace(PLAIN, grammar='start: "{\\"claims\\":[" ("1" | "2") "]}"\n')
    done = Decoder(loaded).generate(asked)
    assert done.text in ('{"claims":[1]}', '{"claims":[2]}')
    assert done.stop is StopReason.GRAMMAR
    assert done.forced + done.sampled == len(done.token_ids)
    assert done.forced > 0
    assert done.sampled == 1
    again = Decoder(loaded)
    again.generate(PLAIN)
    assert again.generate(asked).token_ids == done.token_ids


def test_a_wholly_forced_answer_costs_no_choice(loaded):
    import msgspec

    done = Decoder(loaded).generate(msgspec.structs.replace(PLAIN, grammar='start: "{\\"claims\\":[]}"\n'))
    assert (done.text, done.sampled, done.stop) == ('{"claims":[]}', 0, StopReason.GRAMMAR)
    assert (done.prefilled, done.reused) == (0, 0)  # nothing ran


def test_a_grammar_s_answer_that_is_too_long_ends_by_length(loaded):
    import msgspec

    asked = msgspec.structs.replace(PLAIN, grammar='start: "{\\"claims\\":[]}"\n', max_new_tokens=3)
    done = Decoder(loaded).generate(asked)
    assert (len(done.token_ids), done.stop) == (3, StopReason.LENGTH)


@pytest.mark.parametrize("grammar", ["start: (", "start: nowhere\n", "start: /a/ & /b/\n"])
def test_a_grammar_that_is_wrong_or_empty_is_a_failure_that_quotes_nothing(loaded, grammar):
    import msgspec

    from gsum.engine.llm.constrain import GrammarError

    with pytest.raises(GrammarError) as caught:
        Decoder(loaded).generate(msgspec.structs.replace(PLAIN, grammar=f"// secret\n{grammar}"))
    assert "secret" not in f"{caught.value.message} {caught.value.facts}"


def test_a_grammar_s_dead_end_in_an_answer_is_a_failure_that_shows_its_state(loaded):
    import msgspec

    from gsum.engine.llm.constrain import GrammarError

    with pytest.raises(GrammarError) as caught:
        Decoder(loaded).generate(msgspec.structs.replace(PLAIN, grammar='start: "{" rest\nrest: NO\nNO: /b/ & /c/\n'))
    assert set(caught.value.facts) == {"after tokens", "state"}
    assert caught.value.hint == "this is a fault of the grammar's builder"


def test_an_end_token_ends_and_is_not_text(loaded):
    decoder = Decoder(loaded)
    hello = loaded.tokenizer("hello", add_special_tokens=False)["input_ids"]
    script = iter([*hello, 0])
    decoder._choose = lambda logits, grammar: next(script)
    done = decoder.generate(PLAIN)
    assert done.token_ids == (*hello, 0)
    assert (done.text, done.stop) == ("hello", StopReason.EOS)


def test_equal_maxima_go_to_the_lowest_id(loaded):
    import torch

    logits = torch.zeros(384)
    logits[[7, 50, 300]] = 3.0
    assert Decoder(loaded)._choose(logits, None) == 7


def test_logits_that_are_no_numbers_are_a_failure(loaded):
    import torch

    with pytest.raises(NotANumber):
        Decoder(loaded)._choose(torch.tensor([0.0, float("nan")]), None)


def test_over_budget_is_refused_exactly_at_the_edge(loaded):
    import msgspec

    need = Decoder(loaded).generate(PLAIN).prompt_tokens
    Decoder(loaded).generate(msgspec.structs.replace(PLAIN, input_tokens=need))
    with pytest.raises(OverBudget) as caught:
        Decoder(loaded).generate(msgspec.structs.replace(PLAIN, input_tokens=need - 1))
    assert (caught.value.budget, caught.value.needed, caught.value.at_least) == (need - 1, need, False)


def test_ten_megabytes_are_refused_without_being_tokenised(loaded):
    import time

    import msgspec

    huge = msgspec.structs.replace(PLAIN, messages=(Message(Role.USER, "x y" * 3_500_000),), shared=0)
    decoder = Decoder(loaded)
    began = time.monotonic()
    with pytest.raises(OverBudget) as caught:
        decoder.generate(huge)
    assert time.monotonic() - began < 1
    assert caught.value.at_least
    assert caught.value.needed > 500


def test_the_model_s_context_is_a_budget_too(loaded):
    import msgspec

    with pytest.raises(OverBudget) as caught:
        Decoder(loaded).generate(msgspec.structs.replace(PLAIN, max_new_tokens=4096))
    assert caught.value.context
    assert caught.value.budget == 4096


@pytest.mark.parametrize("device", [Device.CUDA, Device.MPS])
def test_an_absent_device_says_what_to_type(device):
    import torch

    present = torch.cuda.is_available() if device is Device.CUDA else torch.backends.mps.is_available()
    if present:
        pytest.skip("this machine has the device")
    with pytest.raises(DeviceMissing) as caught:
        require_device("qwen", device)
    assert device.value in caught.value.message
    assert "gsum" in caught.value.hint


def test_versions_agree_up_to_the_build_s_local_part(folder):
    wanted = {"library torch": "2.13.0", "library transformers": "5.24.0", "threads": "1"}
    seen = {"library torch": "2.13.0+cpu", "library transformers": "5.23.0", "threads": "1"}
    assert [one.name for one in mismatches(wanted, seen)] == ["library transformers"]
    assert mismatches({"library torch": "2.13.0+cu130"}, seen)[0].observed == "2.13.0+cpu"


@pytest.mark.parametrize(
    ("changes", "numerics", "name"),
    [
        ({"chat_template": "0" * 64}, NUMERICS, "chat_template"),
        ({"tied_embeddings": False}, NUMERICS, "tied_embeddings"),
        ({"dtype": Dtype.FLOAT16}, NUMERICS, "dtype"),
        ({"attention": Attention.EAGER}, NUMERICS, "attention"),
        ({"device": Device.CUDA}, NUMERICS, "device"),
        ({"grammar": GrammarSection(Strength.LITERAL, "llguidance", "0.0.1")}, NUMERICS, "library llguidance"),
        ({}, NumericsSection("other-scheme", 1), "batching"),
        ({}, NumericsSection("single-2", 7), "threads"),
        ({}, NumericsSection("single-2", 1, "VAX"), "instruction_set"),
        ({}, NumericsSection("single-2", 1, None, {"tokenizers": "0.0"}), "library tokenizers"),
    ],
)
def test_every_declared_value_is_compared(folder, loaded, changes, numerics, name):
    import torch

    torch.set_num_threads(1)
    asked = toolchain_for(folder, **changes)
    seen = observe_libraries(numerics, asked) | observe_model(loaded)
    assert [one.name for one in mismatches(declared(asked, numerics), seen)] == [name]
