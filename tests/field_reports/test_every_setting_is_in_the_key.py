"""Keys made of a list of chosen fields forget one: temperature and token limit (lobster#129, instructor#2585,
curator#135), the model's revision (opensanctions#4958, lighteval#1369), the tokenizer (axolotl#33), the prompt
(graphify#1942), the schema (accrue#39), the context length (litellm#42400), the tenant (litellm#29955), helper code
(redun#99, hamilton#1242). The old answer then comes back under the new setting, often with the new one as its origin.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import Gsum
from support.workspaces import edit_build, make_workspace, set_prompt

from gsum.engine.universe import load_universe

LOCAL = """
[toolchain.fake]
executor = "local"
source = { kind = "huggingface", repo = "a/model", commit = "COMMIT" }
files = { "model.safetensors" = "AAA", "tokenizer.json" = "BBB" }
tied_embeddings = true
chat_template = "CCC"
device = "cpu"
dtype = "float32"
attention = "eager"
numerics = "n-1"
grammar = { strength = "none" }
decoding = { method = "greedy", max_new_tokens = 384 }

[numerics.n-1]
batching = "single-1"
libraries = { torch = "2.0" }
"""
for _short, _whole in (("COMMIT", "a" * 40), ("AAA", "a" * 64), ("BBB", "b" * 64), ("CCC", "c" * 64)):
    LOCAL = LOCAL.replace(_short, _whole)

NONE = 'grammar = { strength = "none" }'
EDITS = {
    "token limit": (NONE, f"{NONE}\ndecoding = {{ max_new_tokens = 9 }}", 3),
    "schema": ('enums = { field = ["delivery",', 'max_evidence = 2\nenums = { field = ["delivery",', 0),
    "context length": ("map_input_tokens = 2048", "map_input_tokens = 1024", 2),
    "helper code": ('identity = "fake-1"', 'identity = "fake-1+helper-2"', 3),
    "everything disowned": ('name = "test"', 'name = "test"\nsalt = "2"', 3),
}
"""Edits, and how many requests they change: what is only in how an answer is read asks the model nothing again."""

LOCAL_EDITS = {
    "model revision": ('commit = "a', 'commit = "b'),
    "weights under the same name": ('"model.safetensors" = "aa', '"model.safetensors" = "ab'),
    "tokenizer": ('"tokenizer.json" = "bb', '"tokenizer.json" = "ba'),
    "chat template": ('chat_template = "cc', 'chat_template = "cd'),
    "token limit": ("max_new_tokens = 384", "max_new_tokens = 385"),
    "dtype": ('dtype = "float32"', 'dtype = "bfloat16"'),
    "library version": ('torch = "2.0"', 'torch = "2.1"'),
}


@pytest.mark.parametrize("edit", EDITS)
def test_another_setting_never_gets_the_old_answer(tmp_path: Path, edit: str) -> None:
    gsum = Gsum(tmp_path / "ws", {"S-1": 2})
    gsum("build", "//dossier:S-1")
    old = gsum("key", "//dossier:S-1/leaf-00", "--json").document["key"]
    *texts, requests = EDITS[edit]
    edit_build(gsum.root, *texts)
    assert gsum("show", "//dossier:S-1").code == 4
    calls = gsum.calls
    built = gsum("build", "//dossier:S-1", "--json").document
    assert len(built["recomputed"]) == 3
    assert gsum.calls - calls == requests
    shown = gsum("show", "//dossier:S-1/leaf-00", "--json").document
    assert shown["key"] != old
    assert shown["invocation"] == built["invocation"]


def test_another_prompt_never_gets_the_old_answer_and_no_two_are_mixed(tmp_path: Path) -> None:
    gsum = Gsum(tmp_path / "ws", {"S-1": 6})
    gsum("build", "//dossier:S-1")
    set_prompt(gsum.root, "map-v1", "Otherwise.")
    assert gsum("build", "//dossier:S-1/leaf-00").code == 0
    assert gsum("show", "//dossier:S-1").code == 4
    gsum("build", "//dossier:S-1")
    requests = [row["request"] for row in gsum("query", "generations(//dossier:S-1/...)", "--json").document["rows"]]
    prompts = {gsum("cat", request).out.count("Otherwise.") for request in requests[:6]}
    assert prompts == {1}


@pytest.mark.parametrize("edit", LOCAL_EDITS)
def test_what_a_model_is_made_of_changes_every_key(tmp_path: Path, edit: str) -> None:
    root = make_workspace(tmp_path / "ws", {"S-1": 2}, toolchain=LOCAL)

    def keys() -> list[str]:
        return [keyed.key for keyed in load_universe(root, ["//dossier:S-1"]).keys.actions.values()]

    before = keys()
    edit_build(root, *LOCAL_EDITS[edit])
    assert set(before).isdisjoint(keys())


def test_a_revision_that_moves_is_refused(tmp_path: Path) -> None:
    gsum = Gsum(tmp_path / "ws", {"S-1": 2})
    (gsum.root / "BUILD.toml").write_text((gsum.root / "BUILD.toml").read_text() + LOCAL.replace("fake", "hf"))
    assert gsum("query", "//toolchain:all").code == 0
    edit_build(gsum.root, f'commit = "{"a" * 40}"', 'commit = "main"')
    assert gsum("build", "//dossier:S-1").code == 3


def test_a_setting_that_is_absent_stands_in_the_key_as_null(tmp_path: Path) -> None:
    gsum = Gsum(tmp_path / "ws", {"S-1": 1})
    gsum("build", "//dossier:S-1/leaf-00")
    preimage = json.loads(gsum("key", "//dossier:S-1/leaf-00", "--json").document["preimage"])
    decoding = json.loads(gsum("cat", preimage["toolchain"]).out)["decoding"]
    assert {decoding[name] for name in ("temperature", "top_k", "top_p", "repetition_penalty")} == {None}
    assert decoding["do_sample"] is False


def test_another_reader_never_gets_an_answer_nor_sees_that_there_is_one(tmp_path: Path) -> None:
    gsum = Gsum(tmp_path / "ws", {"S-1": 2})
    other = ("--principal", "reader-two")
    before = gsum("status", "//dossier:S-1/...", "--json", *other).document
    gsum("build", "//dossier:S-1")
    assert gsum("status", "//dossier:S-1/...", "--json", *other).document == before
    ran = gsum("show", "//dossier:S-1", *other)
    assert ran.code == 4
    assert "NOT BUILT" in ran.out + ran.err
    mine = gsum("key", "//dossier:S-1", "--json").document["key"]
    assert gsum("cat", mine, *other).code == 2
