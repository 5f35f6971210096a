"""Completeness of keys: whatever is declared and can change an output changes the key; nothing else does.

Mutations walk the fields of the declaration structs themselves, so a field added later is tried without being named
here. What is in no key is listed, with the reason.
"""

from __future__ import annotations

import enum
import re
import types
import typing
from collections.abc import Iterator

import msgspec
import pytest
import rfc8785
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st
from support.graphs import make_action

from gsum.engine.keys import compute_keys, toolchain_record
from gsum.rules.config import (
    Attention,
    CommandToolchain,
    Device,
    Dtype,
    FolderSource,
    GrammarSection,
    HuggingFaceSource,
    LocalToolchain,
    NumericsSection,
    PackageSource,
    Prompt,
    PromptExample,
    SchemaSection,
    Strength,
    Workspace,
    WorkspaceSection,
)
from gsum.rules.graph import ActionGraph, ActionKind
from gsum.rules.kinds import RULES
from gsum.rules.snapshot import Scope
from gsum.store.canonical import canonical_json
from gsum.store.digests import RecordKind, preimage_of

NOT_IN_KEYS = {
    "timeout_seconds": "decides whether a generation is had, never which",
    "memory_mb": "decides whether a generation is had, never which",
    "command": "`identity` stands for it",
    "source.path": "a folder's place on one machine; its files' digests are in the key",
}

LOCAL = LocalToolchain(
    source=PackageSource(package="p", version="1", file="m.gguf"),
    files={"m.gguf": "a" * 64},
    tied_embeddings=True,
    chat_template="b" * 64,
    device=Device.CPU,
    dtype=Dtype.BFLOAT16,
    attention=Attention.SDPA,
    numerics="n",
    grammar=GrammarSection(strength=Strength.LITERAL, backend="llguidance", version="1.9.1"),
)
COMMAND = CommandToolchain(
    command=("x",), identity="x-1", reproducible=True, network=False, grammar=GrammarSection(strength=Strength.NONE)
)
NUMERICS = {
    "n": NumericsSection(batching="single", threads=1, libraries={"torch": "1"}),
    "other": NumericsSection(batching="single", threads=1, libraries={"torch": "1"}),
}


def mutations(value: object, annotation: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield (path, changed value) for every field below a declaration."""
    if isinstance(value, msgspec.Struct):
        hints = typing.get_type_hints(type(value), include_extras=False)
        for name in value.__struct_fields__:
            for below, changed in mutations(getattr(value, name), hints[name], f"{path}.{name}"):
                yield below, msgspec.structs.replace(value, **{name: changed})
    elif isinstance(value, enum.Enum):
        for other in type(value):
            if other is not value:
                yield path, other
                return
    elif isinstance(value, bool):
        yield path, not value
    elif isinstance(value, int):
        yield path, value + 1
    elif isinstance(value, str):
        yield path, NUMERICS_OTHER if path.endswith(".numerics") else value[:-1] + ("c" if value[-1:] != "c" else "d")
    elif isinstance(value, dict):
        yield path, {**value, "added": next(iter(value.values()), "v")}
        if value:
            name, first = next(iter(value.items()))
            for below, changed in mutations(first, None, f"{path}[{name}]"):
                yield below, {**value, name: changed}
    elif isinstance(value, tuple):
        if value:
            yield path, value[1:]
            for below, changed in mutations(value[0], None, f"{path}[0]"):
                yield below, (changed, *value[1:])
        if len(value) > 1:
            yield f"{path} order", tuple(reversed(value))
    elif value is None:
        yield path, _some(annotation)
    else:
        raise AssertionError(f"{path}: no mutation for {type(value).__name__}")


NUMERICS_OTHER = "other"


def _some(annotation: object) -> object:
    options = [option for option in typing.get_args(annotation) if option is not types.NoneType]
    first = typing.get_args(options[0])[0] if typing.get_origin(options[0]) is typing.Annotated else options[0]
    return {str: "x", int: 7, bool: True}[first]


def _toolchain_cases():
    sources = {
        "package": LOCAL,
        "huggingface": msgspec.structs.replace(LOCAL, source=HuggingFaceSource(repo="o/m", commit="c" * 40)),
        "folder": msgspec.structs.replace(LOCAL, source=FolderSource(path="models/m")),
        "command": COMMAND,
    }
    for name, toolchain in sources.items():
        for path, changed in mutations(toolchain, None, ""):
            yield pytest.param(toolchain, path.removeprefix("."), changed, id=f"{name}{path}")


@pytest.mark.parametrize(("toolchain", "path", "changed"), list(_toolchain_cases()))
def test_every_declared_field_of_a_toolchain_is_in_its_key(toolchain, path, changed):
    before = preimage_of(RecordKind.TOOLCHAIN, toolchain_record(toolchain, NUMERICS)).key
    after = preimage_of(RecordKind.TOOLCHAIN, toolchain_record(changed, NUMERICS)).key
    name = re.sub(r"\[0\]| order", "", path)
    assert (before == after) == (name in NOT_IN_KEYS)


@pytest.mark.parametrize(
    ("path", "changed"), [pytest.param(*case, id=case[0]) for case in mutations(NUMERICS["n"], None, "n")]
)
def test_every_field_of_a_numerics_profile_is_in_the_toolchain_key(path, changed):
    before = preimage_of(RecordKind.TOOLCHAIN, toolchain_record(LOCAL, NUMERICS)).key
    assert preimage_of(RecordKind.TOOLCHAIN, toolchain_record(LOCAL, NUMERICS | {"n": changed})).key != before


# -- whole graphs -------------------------------------------------------------------------------------------------

PROMPT = Prompt(
    "system", "instruction", (PromptExample(input="in", output="out"), PromptExample(input="i2", output="o2"))
)
SCHEMA = SchemaSection(
    fields=("subject", "field", "value"),
    enums={"field": ("a", "b")},
    fact_pattern="(?P<subject>x)",
    reduce_once=("subject", "field"),
)
LEAF_SCOPE = Scope("D-0", True, True, 1, "1", "d" * 64)


def workspace(**changes) -> Workspace:
    fields = {
        "root": "/ws",
        "section": WorkspaceSection(name="w", principal="reader", default_toolchain="t"),
        "sources": {},
        "toolchains": {"t": LOCAL},
        "numerics": NUMERICS,
        "prompts": {"map": PROMPT, "reduce": PROMPT},
        "schemas": {"s": SCHEMA},
        "packages": {},
    }
    return Workspace(**(fields | changes))


def graph(leaf: dict | None = None, root: dict | None = None) -> ActionGraph:
    """Return two leaves under one root; `leaf` changes the first leaf's fields, `root` the root's."""
    common = {"schema": "s", "toolchain": "t", "principal": "reader"}
    changes = {"children": ("l0", "l1"), "prompt": "reduce"} | (root or {})
    first = make_action("l0", scope=LEAF_SCOPE, prompt="map", **(common | (leaf or {})))
    second = make_action("l1", scope=Scope("D-1", True, True, 1, "1", "e" * 64), prompt="map", **common)
    top = make_action("root", **(common | {"kind": ActionKind.REDUCE, "fan_in": 2} | changes))
    return ActionGraph({"l0": first, "l1": second, "root": top}, ("root",))


def changed_keys(ws: Workspace, changed: ActionGraph) -> set[str]:
    before = compute_keys(workspace(), graph()).actions
    after = compute_keys(ws, changed).actions
    return {label for label in before if before[label].key != after[label].key}


@pytest.mark.parametrize(
    ("path", "changed"), [pytest.param(*case, id=case[0]) for case in mutations(LEAF_SCOPE, None, "scope")]
)
def test_a_change_of_a_leafs_scope_changes_the_leaf_and_its_ancestors(path, changed):
    first = msgspec.structs.replace(graph().actions["l0"], scope=changed)
    altered = ActionGraph(graph().actions | {"l0": first}, ("root",))
    assert changed_keys(workspace(), altered) == {"l0", "root"}


@pytest.mark.parametrize(
    ("path", "changed"), [pytest.param(*case, id=case[0]) for case in mutations(PROMPT, None, "prompt")]
)
def test_a_change_of_a_prompt_changes_what_uses_it(path, changed):
    assert changed_keys(workspace(prompts={"map": PROMPT, "reduce": changed}), graph()) == {"root"}
    assert changed_keys(workspace(prompts={"map": changed, "reduce": PROMPT}), graph()) == {"l0", "l1", "root"}


@pytest.mark.parametrize(
    ("path", "changed"), [pytest.param(*case, id=case[0]) for case in mutations(SCHEMA, None, "schema")]
)
def test_a_change_of_a_schema_changes_all_that_uses_it(path, changed):
    assert changed_keys(workspace(schemas={"s": changed}), graph()) == {"l0", "l1", "root"}


def test_salt_toolchain_budget_fan_in_and_order_change_keys():
    salted = WorkspaceSection(name="w", principal="reader", default_toolchain="t", salt="x")
    assert changed_keys(workspace(section=salted), graph()) == {"l0", "l1", "root"}
    greedy = msgspec.structs.replace(LOCAL, dtype=Dtype.FLOAT32)
    assert changed_keys(workspace(toolchains={"t": greedy}), graph()) == {"l0", "l1", "root"}
    assert changed_keys(workspace(), graph(leaf={"input_tokens": 101})) == {"l0", "root"}
    assert changed_keys(workspace(), graph(root={"input_tokens": 101})) == {"root"}
    assert changed_keys(workspace(), graph(root={"fan_in": 3})) == {"root"}
    assert changed_keys(workspace(), graph(root={"children": ("l1", "l0")})) == {"root"}
    assert changed_keys(workspace(), graph(root={"children": ("l0",)})) == {"root"}
    assert changed_keys(workspace(), graph(leaf={"principal": "other"})) == {"l0", "root"}


def test_names_paths_and_labels_are_in_no_key():
    section = WorkspaceSection(name="another", principal="someone", default_toolchain="t", worker_idle_seconds=7)
    assert changed_keys(workspace(section=section, root="/elsewhere"), graph()) == set()
    assert changed_keys(workspace(), graph(leaf={"path": "moved.txt", "package": "p", "dossier": "d"})) == set()
    renamed = workspace(toolchains={"t2": LOCAL}, schemas={"s2": SCHEMA}, prompts={"map": PROMPT, "r2": PROMPT})
    altered = {
        label: msgspec.structs.replace(action, toolchain="t2", schema="s2", prompt="r2" if label == "root" else "map")
        for label, action in graph().actions.items()
    }
    assert changed_keys(renamed, ActionGraph(altered, ("root",))) == set()


def test_rule_version_is_in_the_key(monkeypatch):
    before = compute_keys(workspace(), graph()).actions
    monkeypatch.setattr(RULES["summary_tree"], "version", RULES["summary_tree"].version + 1)
    after = compute_keys(workspace(), graph()).actions
    assert all(before[label].key != after[label].key for label in before)


def test_every_preimage_and_record_recomputes_to_its_key_and_is_canonical():
    keys = compute_keys(workspace(), graph())
    preimages = [keyed.action for keyed in keys.actions.values()] + list(keys.records.values())
    assert {preimage.kind for preimage in preimages} == set(RecordKind) - {RecordKind.REQUEST}
    for preimage in preimages:
        assert blake3(preimage.data, derive_key_context=preimage.kind.context).hexdigest() == preimage.key
        assert rfc8785.dumps(msgspec.json.decode(preimage.data)) == preimage.data
    for label, keyed in keys.actions.items():
        named = {value for value in msgspec.json.decode(keyed.action.data).values() if isinstance(value, str)}
        assert set(keys.refs[label]) <= named
        assert set(keys.refs[label]) <= set(keys.records)


@given(st.lists(st.text(max_size=4), min_size=2, max_size=4), st.lists(st.text(max_size=4), min_size=2, max_size=4))
def test_preimages_are_injective_over_field_boundaries(first, second):
    """No two different lists of fields give one preimage, as joined strings do."""
    assert (canonical_json(first) == canonical_json(second)) == (first == second)


GOLDEN = {
    "l0": "30148f0d46ac783d8e3ab00294e39c589d92b13a6d2766294bd525f126c6f346",
    "root": "49795e7688b8920034ec7e8aad049fc9da73efe2372163978101035c8ed57246",
}


def test_golden_keys(monkeypatch):
    """A change here changes the key schema: bump KEY_SCHEMA in the same commit. Rule versions are pinned apart.

    But a field that a declaration gains, and that `workspace` sets, only gives new bytes: no key means anything else.
    """
    monkeypatch.setattr(RULES["summary_tree"], "version", 1)
    keys = compute_keys(workspace(), graph())
    assert {label: keys.actions[label].key for label in GOLDEN} == GOLDEN
    assert keys.terms["t"].toolchain == GOLDEN_TOOLCHAIN


GOLDEN_TOOLCHAIN = "5222f331ff83d6c042a4cccbf30fc00076ef7b56ff2a80614d5272e9984e526f"
