"""Completeness: whichever field of whichever preimage or record differs, exactly that field is named, once.

Fields are taken from the records themselves, so one that is added later is tested without a line here.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support.memory_store import MemoryStore
from support.preimages import Former, paths, with_other
from support.workspaces import make_workspace

from gsum.engine.explain import CauseKind, Explanation, Verdict, explain
from gsum.engine.explain.causes import find_causes
from gsum.engine.explain.reading import WorkspaceReader
from gsum.engine.explain.records import Records
from gsum.engine.keys import ActionPreimage, LeafPerimeter, NodePerimeter
from gsum.engine.universe import Universe, WorkspaceDocuments, load_universe
from gsum.rules.config import CommandToolchain, DecodingSection, GrammarSection, NumericsSection
from gsum.rules.snapshot import Scope
from gsum.rules.toml import dotted
from gsum.store.digests import RecordKind

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
instruction_set = "avx2"
libraries = { torch = "2", transformers = "5" }
""".replace("ZEROS", "0" * 64)

ROOT, LEAF, REDUCE = "//dossier:S-1/root", "//dossier:S-1/leaf-04", "//dossier:S-1/reduce-01"
EXTRA = """
[[prompt.map-v1.examples]]
input = "a"
output = "b"
"""


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Universe:
    return universe_of(tmp_path_factory.mktemp("local"), LOCAL)


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Universe:
    return universe_of(tmp_path_factory.mktemp("command"), None)


def universe_of(root: Path, toolchain: str | None) -> Universe:
    more = {} if toolchain is None else {"toolchain": toolchain}
    make_workspace(root / "ws", {"S-1": 6}, **more)
    file = root / "ws/BUILD.toml"
    file.write_text(file.read_text().replace("\n[prompt.reduce-v1]", EXTRA + "\n[prompt.reduce-v1]"))
    return load_universe(root / "ws", [ROOT])


def explained(universe: Universe, former: Former) -> Explanation:
    return explain(universe, former.store, WorkspaceDocuments(universe.workspace), ROOT)


def names(explanation: Explanation) -> list[str]:
    return [change.name for cause in explanation.causes for change in cause.fields]


def record_at(universe: Universe, label: str) -> dict:
    return msgspec.json.decode(universe.keys.actions[label].action.data)


def above(universe: Universe, label: str) -> list[str]:
    """A label and its ancestors, children before parents."""
    found = {label}
    for other, action in universe.graph.actions.items():
        if found & set(action.children):
            found.add(other)
    return [other for other in universe.graph.actions if other in found]


def with_one(where: str, path: tuple[str, ...]):
    """A change of the action at one label."""
    return lambda kind, name, record: (
        with_other(record, path) if kind is RecordKind.ACTION and name == where else record
    )


@pytest.mark.parametrize("where", [LEAF, REDUCE, ROOT])
def test_every_field_of_an_action_is_named_alone(local: Universe, where: str) -> None:
    record = record_at(local, where)
    tested = set()
    for path in paths(record):
        tested.add(path[0])
        if path[0] in ("children", "perimeter", "toolchain", "prompt", "schema") or path == ("source", "id"):
            continue  # keys of records and lists of documents, which have tests of their own below
        if path == ("source",):
            continue  # null: an inner node, which no former preimage of its slot can have made a leaf
        explanation = explained(local, Former(local, with_one(where, path)))
        assert names(explanation) == [dotted(path)], path
        assert len(explanation.causes) == 1
        assert list(explanation.causes[0].targets) == above(local, where)
        assert explanation.verdict is Verdict.STALE
    assert tested == set(ActionPreimage.__struct_fields__)
    if where == LEAF:
        assert {path[1] for path in paths(record) if path[0] == "source"} == set(Scope.__struct_fields__)


@pytest.mark.parametrize("where", [LEAF, REDUCE])
def test_a_field_of_another_key_schema_is_named(local: Universe, where: str) -> None:
    def change(kind: RecordKind, name: str, record: dict) -> dict:
        return {**record, "future": 7} if kind is RecordKind.ACTION and name == where else record

    explanation = explained(local, Former(local, change))
    assert [cause.text for cause in explanation.causes] == ["`future`: 7 → none"]


def test_a_leaf_that_was_an_inner_node_names_its_source(local: Universe) -> None:
    leaf = record_at(local, LEAF)
    reader = WorkspaceReader(local.workspace, local.graph, MemoryStore())
    causes = find_causes(reader, Records(lambda _: None), LEAF, {**leaf, "source": None}, leaf)
    assert [cause.text for cause in causes] == ["`source`: none → `D-04`"]


def test_another_document_in_a_slot_is_one_removed_and_one_added(local: Universe) -> None:
    explanation = explained(local, Former(local, with_one(LEAF, ("source", "id"))))
    assert [cause.text for cause in explanation.causes] == ["document `D-04` added", "document `D-04x` removed"]
    assert list(explanation.causes[0].targets) == above(local, LEAF)
    assert list(explanation.causes[1].targets) == above(local, LEAF)[1:]


def test_other_children_are_documents_in_another_order(local: Universe) -> None:
    def change(kind: RecordKind, name: str, record: dict) -> dict:
        turned = kind is RecordKind.ACTION and name == REDUCE
        return {**record, "children": record["children"][::-1]} if turned else record

    explanation = explained(local, Former(local, change))
    assert [cause.kind for cause in explanation.causes] == [CauseKind.REORDERED]
    assert explanation.causes[0].fields[0].after == ["D-00", "D-01", "D-02", "D-03", "D-04", "D-05"]
    assert explanation.causes[0].note == "the order of documents is part of the key"


@pytest.mark.parametrize("section", ["toolchain", "prompt", "schema"])
@pytest.mark.parametrize("which", ["local", "command"])
def test_every_field_of_a_record_is_named_alone(section: str, which: str, request: pytest.FixtureRequest) -> None:
    universe: Universe = request.getfixturevalue(which)
    key = record_at(universe, LEAF)[section]
    record = msgspec.json.decode(universe.keys.records[key].data)
    users = [label for label in universe.graph.actions if record_at(universe, label)[section] == key]
    for path in paths(record):
        former = Former(
            universe,
            lambda kind, name, record, path=path: with_other(record, path) if name == key else record,
        )
        explanation = explained(universe, former)
        inner = path[1:] if path[0] == section else path
        assert names(explanation) == [dotted((section, *inner))], path
        targets = {label for user in users for label in above(universe, user)}
        assert set(explanation.causes[0].targets) == targets
        assert explanation.causes[0].subject == {"toolchain": "fake", "prompt": "map-v1", "schema": "product"}[section]


def test_what_a_toolchain_declares_is_in_its_record(local: Universe, command: Universe) -> None:
    """The test above takes fields from the record; here the record is held against the declarations."""
    left_out = {"timeout_seconds", "command", "libraries", "path", "memory_mb"}
    for universe in (local, command):
        record = msgspec.json.decode(universe.keys.records[record_at(universe, LEAF)["toolchain"]].data)
        present = {part for path in paths(record) for part in path} | record.keys()
        section = universe.workspace.toolchains["fake"]
        kinds = [type(section), DecodingSection, GrammarSection]
        kinds += [] if isinstance(section, CommandToolchain) else [NumericsSection]
        for kind in kinds:
            assert set(kind.__struct_fields__) - left_out <= present


@pytest.mark.parametrize(
    ("path", "note"),
    [
        (("numerics", "profile", "libraries", "torch"), "the version of a library is part of the key"),
        (("numerics", "profile", "threads"), "the numerics profile is part of the key"),
        (("grammar", "version"), "the version of the grammar backend is part of the key"),
        (("files", "tokenizer.json"), "the tokenizer is part of the key"),
        (("chat_template",), "the chat template is part of the key"),
        (("dtype",), None),
    ],
)
def test_what_a_person_may_not_expect_is_flagged(local: Universe, path: tuple[str, ...], note: str | None) -> None:
    key = record_at(local, LEAF)["toolchain"]
    former = Former(local, lambda kind, name, record: with_other(record, path) if name == key else record)
    assert [cause.note for cause in explained(local, former).causes] == [note]


@pytest.mark.parametrize(("where", "kind"), [(LEAF, LeafPerimeter), (REDUCE, NodePerimeter)])
def test_every_field_of_a_perimeter_that_follows_from_nothing_is_named(
    local: Universe, where: str, kind: type[msgspec.Struct]
) -> None:
    for name in kind.__struct_fields__:
        former = Former(
            local,
            lambda kind, label, record, name=name: (
                with_other(record, (name,)) if kind is RecordKind.PERIMETER and label == where else record
            ),
        )
        explanation = explained(local, former)
        assert names(explanation) == [f"perimeter.{name}"]
        assert list(explanation.causes[0].targets) == above(local, where)


def test_a_perimeter_that_follows_from_the_scope_is_no_cause(local: Universe) -> None:
    def change(kind: RecordKind, name: str, record: dict) -> dict:
        if name != LEAF:
            return record
        if kind is RecordKind.PERIMETER:
            return {**record, "access_revision": 0}
        return {**record, "source": {**record["source"], "access_revision": 0}}

    assert names(explained(local, Former(local, change))) == ["source.access_revision"]


def test_values_that_python_takes_for_equal_differ(local: Universe) -> None:
    def change(kind: RecordKind, name: str, record: dict) -> dict:
        revision = {**(record.get("source") or {}), "access_revision": True}
        return {**record, "source": revision} if kind is RecordKind.ACTION and name == LEAF else record

    assert names(explained(local, Former(local, change))) == ["source.access_revision"]
