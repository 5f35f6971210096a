"""Differences that a person would not expect are flagged, and only those."""

from __future__ import annotations

import pytest
from support.preimages import Former
from support.workspaces import make_workspace

from gsum.engine.explain import explain
from gsum.engine.universe import WorkspaceDocuments, load_universe
from gsum.store.digests import RecordKind

ROOT, LEAF = "//dossier:S-1/root", "//dossier:S-1/leaf-00"
LOCAL = """
[toolchain.fake]
executor = "local"
source = { kind = "package", package = "model", version = "1", file = "model.gguf" }
files = { "model.gguf" = "ZEROS", "tokenizer.json" = "ZEROS" }
tied_embeddings = true
chat_template = "ZEROS"
device = "cpu"
dtype = "float32"
attention = "eager"
numerics = "plain"
grammar = { strength = "schema", backend = "llguidance", version = "1" }

[numerics.plain]
batching = "invariant"
threads = 2
libraries = { torch = "2" }
""".replace("ZEROS", "0" * 64)


def put(*path: str, value: object):
    """Return a change of one field, in records that have it."""

    def change(kind: RecordKind, label: str, record: dict) -> dict:
        inner = record
        for name in path[:-1]:
            inner = inner.get(name) or {}
        if path[-1] in inner and (path[0] != "source" or label == LEAF):
            inner[path[-1]] = value
        return record

    return change


UNEXPECTED = {
    "library": (
        put("numerics", "profile", "libraries", "torch", value="1"),
        "the version of a library is part of the key",
    ),
    "threads": (put("numerics", "profile", "threads", value=1), "the numerics profile is part of the key"),
    "tokenizer": (put("files", "tokenizer.json", value="1" * 64), "the tokenizer is part of the key"),
    "grammar": (put("grammar", "version", value="0"), "the version of the grammar backend is part of the key"),
    "template": (put("chat_template", value="1" * 64), "the chat template is part of the key"),
    "rule": (
        put("rule_version", value=0),
        "this gsum's rule differs from the one that built it: no declaration changed",
    ),
    "fan-in": (put("fan_in", value=9), "it decides which documents stand in one group"),
    "version": (
        put("source", "version", value="0"),
        "a version's name is part of the key even where its text is the same",
    ),
}
EXPECTED = {
    "device": put("device", value="cuda"),
    "token limit": put("decoding", "max_new_tokens", value=1),
    "prompt": put("prompt", "instruction", value="Other."),
    "salt": put("salt", value="x"),
    "text": put("source", "text", value="1" * 64),
}


@pytest.fixture(scope="module")
def universe(tmp_path_factory: pytest.TempPathFactory):
    root = make_workspace(tmp_path_factory.mktemp("notes") / "ws", {"S-1": 2}, toolchain=LOCAL)
    return load_universe(root, [ROOT])


def notes(universe, change) -> set[str | None]:
    former = Former(universe, change)
    found = explain(universe, former.store, WorkspaceDocuments(universe.workspace), ROOT)
    assert found.causes
    return {cause.note for cause in found.causes}


@pytest.mark.parametrize("name", UNEXPECTED)
def test_what_is_easily_overlooked_is_flagged(universe, name: str) -> None:
    change, note = UNEXPECTED[name]
    assert notes(universe, change) == {note}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_anybody_would_expect_is_not(universe, name: str) -> None:
    assert notes(universe, EXPECTED[name]) == {None}
