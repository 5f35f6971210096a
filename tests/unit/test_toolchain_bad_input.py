"""Models, templates and grammars that can't serve: each a clear refusal, none a crash or a wrong answer."""

import hashlib
import json
import os
import shutil
import struct

import msgspec
import pytest
from blake3 import blake3
from support.products import PRODUCT
from support.tiny_model import CHATML, NUMERICS, edit_json, make_model, toolchain_for

from gsum.engine.executors.make import make_executor
from gsum.engine.executors.protocol import ExecRequest, Failed, FailureReason
from gsum.engine.llm import convert
from gsum.engine.llm.convert import ensure_converted
from gsum.engine.llm.decode import Decoder, GrammarError, OverBudget
from gsum.engine.llm.fit import fingerprint
from gsum.engine.llm.kept import Start
from gsum.engine.llm.load import load
from gsum.engine.llm.serve import Served, open_model
from gsum.engine.llm.sources import ToolchainError
from gsum.engine.llm.wire import Hello, Refused
from gsum.rules.config import FolderSource, Strength
from gsum.rules.documents import lines as document_lines
from gsum.rules.grammar import leaf_grammar
from gsum.rules.requests import Message, Request, Role

ASKED = Request((Message(Role.USER, "Product P-1 site: Lyon."),), 0, None, 8, 500, "t", "p")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("tiny") / "m")


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "m")


def refusal(folder, tmp_path) -> ToolchainError:
    """Load a folder whose files are declared as they are, and return why it is refused."""
    with pytest.raises(ToolchainError) as caught:
        load("tiny", toolchain_for(folder), folder, tmp_path)
    return caught.value


@pytest.mark.parametrize("kept", [0, 5, 300, 0.5, 0.99])
def test_truncated_weights_are_refused(folder, tmp_path, kept):
    weights = folder / "model.safetensors"
    data = weights.read_bytes()
    weights.write_bytes(data[: kept if isinstance(kept, int) else int(len(data) * kept)])
    error = refusal(folder, tmp_path)
    assert error.message == "the model of toolchain `tiny` can't be loaded"
    assert error.facts["reason"] != ""


def test_the_tokenizer_of_a_larger_model_is_refused(folder, tmp_path):
    from transformers import AutoTokenizer

    other = AutoTokenizer.from_pretrained(str(folder))
    other.add_tokens([f"<extra_{i}>" for i in range(80)])
    other.save_pretrained(str(folder), save_jinja_files=False)
    error = refusal(folder, tmp_path)
    assert error.message == "the tokenizer of toolchain `tiny` is not its model's"
    assert error.facts["highest token id"] >= error.facts["embeddings of the model"] == 384


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ strftime_now('%d %b %Y') }}" + CHATML, "current date"),
        ("{% for message in messages %}\n{{ message", "does not compile: line 2"),
        (None, "it has none"),
    ],
)
def test_a_template_that_can_t_be_used_is_refused(folder, tmp_path, template, reason):
    edit_json(folder / "tokenizer_config.json", chat_template=template)
    error = refusal(folder, tmp_path)
    assert error.message == "the chat template of toolchain `tiny` can't be used"
    assert reason in error.facts["reason"]
    assert error.hint.endswith("gsum toolchain pin tiny")


def test_a_template_that_refuses_a_message_fails_the_action(folder, tmp_path):
    edit_json(folder / "tokenizer_config.json", chat_template="{{ raise_exception('no system role') }}")
    toolchain = toolchain_for(folder, chat_template=None)
    executor = make_executor(
        toolchain, NUMERICS, cache_dir=tmp_path, workspace_root=tmp_path, name="tiny", environ=os.environ
    )
    try:
        executor.submit([ExecRequest("a" * 64, ASKED, 60), ExecRequest("b" * 64, ASKED, 60)])
        outcomes = []
        while len(outcomes) < 2:
            outcomes += executor.wait(60)
    finally:
        executor.close()
    for failed in outcomes:
        assert isinstance(failed, Failed)
        assert failed.reason is FailureReason.ERROR
        assert failed.message == "the prompt could not be rendered"


def test_an_attention_that_is_not_run_is_refused(folder, tmp_path):
    edit_json(folder / "config.json", rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4})
    error = refusal(folder, tmp_path)
    assert error.facts == {"positions": "dynamic"}


def gguf(path, architecture: str) -> None:
    """Write a GGUF file with one metadata entry and no tensor."""
    text = [b"general.architecture", architecture.encode()]
    key, value = (struct.pack("<Q", len(one)) + one for one in text)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + key + struct.pack("<I", 8) + value)


def test_a_damaged_conversion_is_mended_and_known_by_what_it_is_then(tmp_path, whole, monkeypatch):
    def converted(name, toolchain, source, target):
        shutil.copytree(whole, target)
        table = {path.name: blake3(path.read_bytes()).hexdigest() for path in target.iterdir()}
        (target / "files.json").write_text(json.dumps(table))

    monkeypatch.setattr(convert, "convert", converted)
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    files = {"m.gguf": hashlib.sha256(b"GGUF").hexdigest()}
    hello = Hello("tiny", toolchain_for(whole, files=files), NUMERICS, str(tmp_path), str(tmp_path / "cache"))
    first = open_model(hello, Start("c"))
    assert isinstance(first, Served)
    weights = convert.converted_folder(hello.toolchain, tmp_path / "cache") / "model.safetensors"
    whole_weights = weights.read_bytes()
    weights.write_bytes(whole_weights[:-1])
    assert fingerprint([weights])[0] != first.files[weights]
    second = open_model(hello, Start("c"))
    assert isinstance(second, Served)
    assert weights.read_bytes() == whole_weights
    assert fingerprint(list(second.files)) == tuple(second.files.values())
    assert list(second.files) == list(first.files)


@pytest.mark.parametrize("architecture", ["brainfunk", None])
def test_a_gguf_that_can_t_be_read_is_refused_and_leaves_nothing(tmp_path, whole, architecture):
    if architecture is None:
        (tmp_path / "m.gguf").write_bytes(b"GGUF\x03\0\0\0 and no more")
    else:
        gguf(tmp_path / "m.gguf", architecture)
    toolchain = toolchain_for(whole, files={"m.gguf": "0" * 64}, source=FolderSource("."))
    with pytest.raises(ToolchainError) as caught:
        ensure_converted("tiny", toolchain, tmp_path, tmp_path / "cache")
    assert caught.value.message == "the GGUF file of toolchain `tiny` can't be converted"
    assert caught.value.facts["file"] == "m.gguf"
    assert list((tmp_path / "cache" / "converted").iterdir()) == []


def lines(count: int) -> str:
    """Return a grammar as a leaf's, of a document of so many lines."""
    each = [
        f'c{i}: "[{i}] " W{i}\nW{i}: %regex {{ "substring_words": "Product P-{i}-43 delivery: {i} of the year" }}\n'
        for i in range(count)
    ]
    return "start: " + " | ".join(f"c{i}" for i in range(count)) + "\n" + "".join(each)


@pytest.mark.parametrize("count", [3000, 6000])
def test_a_grammar_of_too_many_lines_fails_and_says_to_split(whole, tmp_path, count):
    loaded = load("tiny", toolchain_for(whole), whole, tmp_path)
    with pytest.raises(GrammarError) as caught:
        Decoder(loaded).generate(msgspec.structs.replace(ASKED, grammar=lines(count)))
    assert caught.value.message == "the input has too many lines for its grammar"
    assert caught.value.hint == "split the document into shorter ones"
    assert "Product" not in str(caught.value.facts)


def test_a_grammar_of_a_thousand_lines_is_followed(whole, tmp_path):
    loaded = load("tiny", toolchain_for(whole), whole, tmp_path)
    done = Decoder(loaded).generate(msgspec.structs.replace(ASKED, grammar=lines(1000), max_new_tokens=60))
    assert done.text.startswith("[")


def test_a_document_whose_every_line_is_too_long_for_a_value_gives_no_claims_and_no_choice(whole, tmp_path):
    loaded = load("tiny", toolchain_for(whole), whole, tmp_path)
    grammar = leaf_grammar(PRODUCT, Strength.LITERAL, document_lines(f"P-37-05 {'x' * 121}\n" * 40))
    done = Decoder(loaded).generate(msgspec.structs.replace(ASKED, grammar=grammar, max_new_tokens=60))
    assert done.text == '{"claims":[]}'
    assert (done.sampled, done.forced) == (0, len(done.token_ids))


def test_five_thousand_lines_are_over_budget_and_are_not_tokenised(whole, tmp_path):
    loaded = load("tiny", toolchain_for(whole), whole, tmp_path)
    text = "".join(f"Product P-37-{n:04} site: Hall {n}, gate {n % 7}.\n" for n in range(5000))
    grammar = leaf_grammar(PRODUCT, Strength.LITERAL, document_lines(text))
    asked = msgspec.structs.replace(ASKED, messages=(Message(Role.USER, text),), grammar=grammar, input_tokens=2048)
    decoder = Decoder(loaded)
    with pytest.raises(OverBudget) as caught:
        decoder.generate(asked)
    assert (caught.value.budget, caught.value.at_least) == (2048, True)
    assert decoder.keys == []


def test_an_instruction_set_that_is_not_there_is_refused_and_says_where_to_look(whole, tmp_path):
    numerics = msgspec.structs.replace(NUMERICS, instruction_set="AVX1024")
    refused = open_model(Hello("tiny", toolchain_for(whole), numerics, str(whole), str(tmp_path)), Start("c"))
    assert isinstance(refused, Refused)
    assert refused.facts["instruction_set"].startswith("declared AVX1024, found ")
    assert refused.hint is not None
    assert "that gsum doctor says this machine can run" in refused.hint
