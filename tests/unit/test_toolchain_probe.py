"""The look at a machine's matrix products is taken once, and again when anything changes that decides it."""

import msgspec
import pytest
from support.tiny_model import NUMERICS, make_model, toolchain_for

from gsum.engine.llm import kept, probe
from gsum.engine.llm.kept import Start
from gsum.engine.llm.load import load
from gsum.engine.llm.schemes import SCHEMES
from gsum.engine.llm.wire import Hello
from gsum.rules.config import NumericsSection

RAGGED = SCHEMES["ragged-1"]
START = Start("code")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = make_model(tmp_path_factory.mktemp("tiny") / "m")
    toolchain = toolchain_for(folder)
    loaded = load("tiny", toolchain, folder, folder)
    return loaded, Hello("tiny", toolchain, NUMERICS, str(folder), "")


class Looks:
    """Counts looks at products, each of which finds what it is told."""

    def __init__(self, monkeypatch, found):
        self.count = 0

        def look(*_):
            self.count += 1
            return found

        monkeypatch.setattr(probe, "uneven_rows", look)


@pytest.mark.parametrize("found", [[], ["32×64"]])
def test_one_look_serves_every_later_start(model, tmp_path, monkeypatch, found):
    loaded, hello = model
    hello = msgspec.structs.replace(hello, cache_dir=str(tmp_path))
    looks = Looks(monkeypatch, found)
    assert [probe.uneven_shapes(hello, loaded, RAGGED, {"threads": "1"}, START) for _ in range(3)] == [found] * 3
    assert looks.count == 1


def test_whatever_decides_it_brings_another_look(model, tmp_path, monkeypatch):
    loaded, hello = model
    hello = msgspec.structs.replace(hello, cache_dir=str(tmp_path))
    looks = Looks(monkeypatch, [])
    other = msgspec.structs.replace(hello, numerics=NumericsSection("ragged-1", 2))
    probe.uneven_shapes(hello, loaded, RAGGED, {"instruction_set": "AVX2"}, START)
    probe.uneven_shapes(hello, loaded, RAGGED, {"instruction_set": "AVX512"}, START)
    probe.uneven_shapes(other, loaded, RAGGED, {"instruction_set": "AVX2"}, START)
    probe.uneven_shapes(hello, loaded, msgspec.structs.replace(RAGGED, quantum=8), {"instruction_set": "AVX2"}, START)
    for name, value in (("processor", "another"), ("interpreter", []), ("torch_build", "t"), ("library_versions", {})):
        with monkeypatch.context() as patch:
            patch.setattr(kept, name, lambda value=value: value)
            probe.uneven_shapes(hello, loaded, RAGGED, {"instruction_set": "AVX2"}, START)
    probe.uneven_shapes(hello, loaded, RAGGED, {"instruction_set": "AVX2"}, Start("other code"))
    probe.uneven_shapes(hello, loaded, RAGGED, {"instruction_set": "AVX2"}, Start("code", {"LD_LIBRARY_PATH": "/x"}))
    assert looks.count == 10


def test_a_damaged_answer_or_a_cache_that_can_not_be_written_costs_a_look(model, tmp_path, monkeypatch):
    loaded, hello = model
    hello = msgspec.structs.replace(hello, cache_dir=str(tmp_path))
    looks = Looks(monkeypatch, [])
    probe.uneven_shapes(hello, loaded, RAGGED, {}, START)
    [kept] = (tmp_path / "probes").iterdir()
    kept.write_bytes(b'{"no":')
    assert probe.uneven_shapes(hello, loaded, RAGGED, {}, START) == []
    assert looks.count == 2
    (tmp_path / "file").write_text("")
    nowhere = msgspec.structs.replace(hello, cache_dir=str(tmp_path / "file"))
    assert [probe.uneven_shapes(nowhere, loaded, RAGGED, {}, START) for _ in range(2)] == [[], []]
    assert looks.count == 4
