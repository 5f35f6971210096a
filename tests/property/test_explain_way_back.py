"""Whatever fields are changed at once, the way back names exactly these, and its key is the one that was."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.preimages import Former, paths, with_other
from support.workspaces import edit_build, make_workspace

from gsum.engine.explain import explain
from gsum.engine.universe import Universe, WorkspaceDocuments, load_universe
from gsum.rules.toml import dotted
from gsum.store.digests import RecordKind

ROOT = "//dossier:S-1/root"
LOCAL = """
[toolchain.fake]
executor = "local"
source = { kind = "huggingface", repo = "a/model", commit = "COMMIT" }
files = { "model.safetensors" = "ZEROS", "tokenizer.json" = "ZEROS" }
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
libraries = { torch = "2", transformers = "5" }
""".replace("ZEROS", "0" * 64).replace("COMMIT", "a" * 40)

Planted = tuple[str, tuple[str, ...]]
"""A record (by kind, or `action`, or a document) and the path of a field in it."""


@pytest.fixture(scope="module")
def universe(tmp_path_factory: pytest.TempPathFactory) -> Universe:
    root = make_workspace(tmp_path_factory.mktemp("back") / "ws", {"S-1": 6}, toolchain=LOCAL)
    edit_build(root, "reduce_input_tokens = 3072", "reduce_input_tokens = 2048")  # alike, and yet each its own
    edit_build(root, "Read a list of claims.", "Read one document.")
    return load_universe(root, [ROOT])


def choices(universe: Universe) -> list[Planted]:
    leaf = msgspec.json.decode(universe.keys.actions["//dossier:S-1/leaf-00"].action.data)
    found: list[Planted] = []
    for name in ("toolchain", "schema", "prompt"):
        record = msgspec.json.decode(universe.keys.records[leaf[name]].data)
        found += [(name, path) for path in paths(record)]
    found += [("action", ("salt",)), ("action", ("rule_version",)), ("leaf", ("input_tokens",))]
    return found + [(f"//dossier:S-1/leaf-0{n}", ("source", field)) for n in (1, 4) for field in ("version", "text")]


def change_of(universe: Universe, planted: set[Planted]):
    """Return the change that makes former records of present ones: `planted` fields had other values."""
    leaf = msgspec.json.decode(universe.keys.actions["//dossier:S-1/leaf-00"].action.data)
    keys = {leaf[name]: name for name in ("toolchain", "schema", "prompt")}

    def change(kind: RecordKind, name: str, record: dict) -> dict:
        for where, path in planted:
            whole = kind is RecordKind.ACTION and (
                where == "action" or where == name or (where == "leaf" and record["source"] is not None)
            )
            if whole or keys.get(name) == where:
                record = with_other(record, path)
        return record

    return change


def name_of(planted: Planted) -> str:
    where, path = planted
    if where in ("toolchain", "schema", "prompt"):
        return dotted((where, *(path[1:] if path[0] == where else path)))
    return dotted(path)


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_the_way_back_is_what_was_planted(universe: Universe, data: st.DataObject) -> None:
    planted = data.draw(st.sets(st.sampled_from(choices(universe)), min_size=1, max_size=6))
    former = Former(universe, change_of(universe, planted))
    found = explain(universe, former.store, WorkspaceDocuments(universe.workspace), ROOT).way_back
    assert found is not None
    assert found.key == former.keys[ROOT]
    named = [(cause.subject, change.name) for cause in found.causes for change in cause.fields]
    assert sorted(name for _, name in named) == sorted(map(name_of, planted))
    assert len(set(named)) == len(named)


def test_what_differs_at_one_node_alone_is_no_declaration_s_doing_and_is_not_proposed(universe: Universe) -> None:
    former = Former(universe, change_of(universe, {("//dossier:S-1/leaf-02", ("salt",))}))
    assert explain(universe, former.store, WorkspaceDocuments(universe.workspace), ROOT).way_back is None
