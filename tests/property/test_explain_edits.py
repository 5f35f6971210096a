"""Explanations over random edits: every target that would run has a cause, every cause was really made, and a past
build is explained as it was before it ran.
"""

from __future__ import annotations

import random
import re
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import run_build
from support.fake_executor import FakeExecutor
from support.memory_store import MemoryStore
from support.workspaces import edit_build, edit_text, make_workspace, set_fan_in, set_prompt

from gsum.engine.explain import CauseKind, Explanation, Node, Verdict, explain, explain_invocation
from gsum.engine.explain.reading import WorkspaceReader
from gsum.engine.query.load import load_outline_around
from gsum.engine.universe import Universe, WorkspaceDocuments, load_universe

ROOT = "//dossier:S-1/root"


class Document:
    """What the manifest says of one document."""

    def __init__(self, name: str) -> None:
        self.name, self.version, self.withdrawn, self.granted, self.revision = name, 1, False, True, 1

    def entry(self) -> str:
        return (
            f'\n[[documents]]\nid = "{self.name}"\nactive = "{self.version}"\n'
            f"withdrawn = {str(self.withdrawn).lower()}\n"
            f'versions = {{ 1 = "documents/{self.name}.v1.txt", 2 = "documents/{self.name}.v2.txt" }}\n'
            f"readers = {{ reader-demo = {{ granted = {str(self.granted).lower()}, revision = {self.revision} }} }}\n"
        )

    @property
    def readable(self) -> bool:
        return self.granted and not self.withdrawn


class World:
    """A workspace with one dossier and the edits made since it was last built."""

    def __init__(self, root: Path, count: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.root = make_workspace(root, {"S-1": 14}, fan_in=self.random.choice((2, 3, 4)))
        names = [f"D-{number:02}" for number in range(14)]
        self.documents = [Document(name) for name in names[:count]]
        self.spare = [Document(name) for name in names[count:]]
        self.fan_in = 0
        self.prompts = 0
        self.store = MemoryStore()
        self.write()
        self.build()

    def write(self) -> None:
        head = 'schema = 1\nid = "S-1"\ntitle = "Letters"\n'
        text = head + "".join(document.entry() for document in self.documents)
        (self.root / "corpus/dossiers/S-1/dossier.toml").write_text(text)

    def edit(self) -> None:
        """Make one random edit."""
        document = self.random.choice(self.documents)
        match self.random.randrange(10):
            case 0 | 1:
                document.version = 3 - document.version
            case 2:
                document.withdrawn = not document.withdrawn
            case 3:
                document.granted, document.revision = not document.granted, document.revision + 1
            case 4 if self.spare:
                self.documents.insert(self.random.randint(0, len(self.documents)), self.spare.pop())
            case 5 if len(self.documents) > 2:
                self.documents.remove(document)
                self.spare.insert(0, document)
            case 6:
                self.random.shuffle(self.documents)
            case 7:
                set_fan_in(self.root, self.random.choice((2, 3, 4, 5)))
            case 8:
                self.prompts += 1
                set_prompt(self.root, self.random.choice(("map-v1", "reduce-v1")), f"Instruction {self.prompts}.")
            case _:
                text = self.root / f"corpus/dossiers/S-1/documents/{document.name}.v{document.version}.txt"
                edit_text(self.root, "S-1", document.name, text.read_text() + "More.\n", str(document.version))
        self.write()

    def universe(self) -> Universe:
        return load_universe(self.root, [ROOT])

    def why(self) -> tuple[Universe, Explanation]:
        universe = self.universe()
        return universe, explain(universe, self.store, WorkspaceDocuments(universe.workspace), ROOT)

    def build(self, *patterns: str) -> None:
        run_build(self.root, self.store, *(patterns or (ROOT,)), executor=FakeExecutor())

    def state(self) -> dict[str, object]:
        """What stands in each field that a cause can name, for the readable world."""
        scopes = [action.scope for action in self.universe().graph.actions.values() if action.scope is not None]
        return {
            "order": [scope.id for scope in scopes],
            "scopes": {scope.id: scope for scope in scopes},
            "build": (self.root / "BUILD.toml").read_text(),
        }


def nodes_of(node: Node):
    yield node
    for child in node.children:
        yield from nodes_of(child)


def made(kind: CauseKind, name: str, before: dict, now: dict) -> bool:
    """Whether something of the kind really changed for the document."""
    old, new = before["scopes"].get(name), now["scopes"].get(name)
    match kind:
        case CauseKind.ADDED:
            return old is None and new is not None
        case CauseKind.REMOVED:
            return new is None and old is not None
        case CauseKind.WITHDRAWN:
            return old.active and not new.active
        case CauseKind.RESTORED:
            return new.active and not old.active
        case CauseKind.ACCESS:
            return (old.eligible, old.access_revision) != (new.eligible, new.access_revision)
        case CauseKind.DOCUMENT:
            return old.readable and new.readable and (old.version, old.text) != (new.version, new.text)
    raise AssertionError(kind)


def check(world: World, before: dict, now: dict, explanation: Explanation, universe: Universe) -> None:
    assert set(explanation.runs) == {t for cause in explanation.causes for t in cause.targets}
    assert not any(
        cause.kind in (CauseKind.UNKNOWN, CauseKind.REPLACED, CauseKind.INCOMPLETE) for cause in explanation.causes
    )
    kinds = {}
    for cause in explanation.causes:
        kinds.setdefault(cause.kind, []).append(cause.subject.rpartition("/")[2])
    for kind in (
        CauseKind.ADDED,
        CauseKind.REMOVED,
        CauseKind.WITHDRAWN,
        CauseKind.RESTORED,
        CauseKind.ACCESS,
        CauseKind.DOCUMENT,
    ):
        names = kinds.pop(kind, [])
        every = before["scopes"].keys() | now["scopes"].keys()
        both = before["scopes"].keys() & now["scopes"].keys()
        possible = every if kind in (CauseKind.ADDED, CauseKind.REMOVED) else both
        assert sorted(names) == sorted(name for name in possible if made(kind, name, before, now)), kind
    common = [name for name in before["order"] if name in now["scopes"]]
    reordered = common != [name for name in now["order"] if name in before["scopes"]]
    assert (CauseKind.REORDERED in kinds) == reordered
    kinds.pop(CauseKind.REORDERED, None)
    if before["build"] == now["build"]:
        assert kinds == {}
    for node in (inner for top in explanation.nodes for inner in nodes_of(top)):
        assert node.key == universe.keys.actions[node.label].key
        assert node.causes or node.children


worlds = st.tuples(st.integers(2, 9), st.integers(0, 2**32), st.integers(1, 5))


@given(worlds)
@settings(max_examples=60, deadline=None)
def test_causes_are_the_edits_that_were_made(drawn: tuple[int, int, int]) -> None:
    count, seed, edits = drawn
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "ws", count, seed)
        for _ in range(2):
            before = world.state()
            for _ in range(edits):
                world.edit()
            now = world.state()
            universe, explanation = world.why()
            key = universe.keys.actions[ROOT].key
            if explanation.verdict is Verdict.CURRENT:
                assert world.store.entries([key])
            else:
                check(world, before, now, explanation, universe)
            world.build()
            assert world.why()[1].verdict is Verdict.CURRENT


@given(worlds, st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_build_is_explained_afterwards_as_before(drawn: tuple[int, int, int], part_first: bool) -> None:
    count, seed, edits = drawn
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "ws", count, seed)
        for _ in range(edits):
            world.edit()
        if part_first:
            world.build("//dossier:S-1/leaf-00")
        _, expected = world.why()
        world.build()
        workspace, graph = load_outline_around(world.root, None)
        reader = WorkspaceReader(workspace, graph, world.store)
        found = explain_invocation(world.store, reader, "reader-demo", None, None)
        assert [(cause.text, sorted(cause.targets)) for cause in found.causes] == [
            (cause.text, sorted(cause.targets)) for cause in expected.causes
        ]
        assert sorted(found.runs) == sorted(expected.runs)
        assert found.nodes == expected.nodes


@given(st.integers(0, 2**32), st.lists(st.booleans(), min_size=4, max_size=4), st.booleans())
@settings(max_examples=40, deadline=None)
def test_nothing_of_an_unreadable_document_is_visible(seed: int, withdrawn: list[bool], rebuilt: bool) -> None:
    """Two worlds: they differ only in what a document, that the principal may not read now, holds."""
    shown = []
    for secret in ("First secret.\n", None):
        with tempfile.TemporaryDirectory() as folder:
            world = World(Path(folder) / "ws", 4, seed)
            hidden = world.documents[seed % 4]
            for document, flag in zip(world.documents, withdrawn, strict=True):
                document.withdrawn = flag and document is not hidden
            hidden.granted, hidden.revision = False, 2
            world.write()
            if rebuilt:
                world.build()
                edit_build(world.root, 'name = "test"', 'name = "test"\nsalt = "1"')
            if secret is not None:
                hidden.version = 2
                world.write()
                for version in "12":
                    edit_text(world.root, "S-1", hidden.name, secret, version)
            else:
                for version in "12":
                    (world.root / f"corpus/dossiers/S-1/documents/{hidden.name}.v{version}.txt").unlink()
            _, explanation = world.why()
            text = re.sub(r"\b\d{14}-[0-9a-f]{8}\b", "INVOCATION", repr(explanation))
            assert f"`{hidden.name}`: version" not in text
            assert not any(
                change.name in ("source.version", "source.text")
                for cause in explanation.causes
                for change in cause.fields
                if cause.subject.endswith(hidden.name)
            )
            shown.append(text)
    assert shown[0] == shown[1]
