"""What a worker imports: no compiler, nothing for several machines, and whoever asks for them later has them whole."""

import gc
import json
import subprocess
import sys
import weakref
from pathlib import Path

import msgspec
import pytest
from support.tiny_model import NUMERICS, edit_json, make_model, toolchain_for

from gsum.engine.llm import convert, serve
from gsum.engine.llm import load as loading
from gsum.engine.llm.imports import uncollected
from gsum.engine.llm.kept import Start
from gsum.engine.llm.wire import Hello, Refused

SUPPORT = str(Path(__file__).resolve().parents[1])
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[2])
import msgspec
from gsum.engine.llm.decode import Decoder
from gsum.engine.llm.kept import Start
from gsum.engine.llm.serve import Served, open_model
from gsum.engine.llm.wire import Hello
from gsum.rules.requests import Message, Request, Role

hello = msgspec.json.decode(sys.argv[1], type=Hello)
served = open_model(hello, Start("code"))
told = {"refused": None if isinstance(served, Served) else served.message}
if isinstance(served, Served):
    asked = Request((Message(Role.SYSTEM, "Copy."), Message(Role.USER, "[1] hello")), 1, None, 24, 500, "t", "p")
    told["tokens"] = Decoder(served.loaded, served.scheme).generate(asked).token_ids
    told["imported"] = [name for name in ("torch._dynamo", "torch.distributed.tensor", "sympy") if name in sys.modules]

    import torch
    import torch._dynamo

    marked = torch.compiler.disable(lambda: 1)
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
    from transformers import masking_utils

    with masking_utils.TransformGetItemToIndex() as mode:
        told["transform"] = isinstance(mode, TransformGetItemToIndex)
    told["marked"] = [marked(), torch._dynamo.external_utils is not None, torch.distributed.is_available()]
print(json.dumps(told))
"""


def told_of(hello: Hello) -> dict:
    """Load and generate in a fresh process."""
    argv = [sys.executable, "-c", PROGRAM, msgspec.json.encode(hello).decode(), SUPPORT]
    return json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_a_generation_needs_no_compiler_and_who_asks_for_it_later_has_the_real_one(tmp_path, family):
    folder = make_model(tmp_path / "m", family=family)
    told = told_of(Hello("tiny", toolchain_for(folder), NUMERICS, str(folder), str(tmp_path / "cache")))
    assert told["refused"] is None
    assert len(told["tokens"]) == 24
    assert told["imported"] == []
    assert told["transform"] is True
    assert told["marked"] == [1, True, True]


@pytest.mark.parametrize("kind", ["no such kind", 7, None])
def test_a_configuration_of_no_known_kind_is_refused_by_loading(tmp_path, kind):
    folder = make_model(tmp_path / "m")
    edit_json(folder / "config.json", model_type=kind)
    told = told_of(Hello("tiny", toolchain_for(folder), NUMERICS, str(folder), str(tmp_path / "cache")))
    assert told["refused"] == "the model of toolchain `tiny` can't be loaded"


def test_garbage_is_looked_for_again_after_a_start_even_one_that_failed():
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), uncollected():
        1 / 0  # noqa: B018
    assert gc.isenabled()
    gc.unfreeze()


def test_libraries_that_are_not_the_declared_ones_are_refused_before_a_file_is_hashed(tmp_path, monkeypatch):
    folder = make_model(tmp_path / "m")
    hashed = []
    monkeypatch.setattr(serve, "check_files", lambda *_, **__: hashed.append(1))
    numerics = msgspec.structs.replace(NUMERICS, libraries={"torch": "1.0"})
    refused = serve.open_model(
        Hello("tiny", toolchain_for(folder), numerics, str(folder), str(tmp_path)), Start("code")
    )
    assert isinstance(refused, Refused)
    assert refused.facts["library torch"].startswith("declared 1.0, found ")
    assert hashed == []


def test_a_file_that_is_gone_when_it_is_hashed_is_named(tmp_path):
    folder = make_model(tmp_path / "m")
    hello = Hello("tiny", toolchain_for(folder), NUMERICS, str(folder), str(tmp_path / "cache"))
    (folder / "model.safetensors").unlink()
    refused = serve.open_model(hello, Start("code"))
    assert isinstance(refused, Refused)
    assert refused.reason == "error"
    assert refused.facts["file"] == str(folder / "model.safetensors")


def test_a_start_without_memory_is_no_verdict_on_the_model(tmp_path, monkeypatch):
    folder = make_model(tmp_path / "m")

    def full(*_):
        raise MemoryError

    monkeypatch.setattr(loading, "build_model", full)
    with pytest.raises(MemoryError):
        loading.load("tiny", toolchain_for(folder), folder, tmp_path)


def test_what_a_conversion_has_read_is_let_go_though_no_garbage_is_looked_for(tmp_path, monkeypatch):
    read = []

    class Model:
        def __init__(self):
            self.itself = self
            read.append(weakref.ref(self))

    def converted(name, toolchain, source, target):
        Model()
        target.mkdir()
        (target / "files.json").write_text("{}")

    monkeypatch.setattr(convert, "convert", converted)
    with uncollected():
        toolchain = toolchain_for(make_model(tmp_path / "m"))
        folder = convert.ensure_converted("tiny", toolchain, tmp_path, tmp_path / "cache")
        assert [one() for one in read] == [None]
    gc.unfreeze()
    assert convert.damaged_files(folder) == []
