"""Soundness and minimality over random dossiers and edits, on a deterministic executor.

After any edits an incremental build equals a clean one (keys, statuses, claims); what it ran is within the edited
leaves and their ancestors, a set that the test works out by itself from slots and fan-in; a second build runs nothing.
Between builds, what is shown is what a clean build would make now, or it is refused.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support import workspaces
from support.engine import Built, results, run_build
from support.fake_executor import FakeExecutor

from gsum.engine.serving import NotServed, serve
from gsum.engine.states import State
from gsum.engine.universe import WorkspaceDocuments, load_universe
from gsum.rules import manifest_edit
from gsum.store.local import LocalStore, open_store

READERS = (workspaces.READER, "other")
DOSSIER = "S-1"
LABEL = f"//dossier:{DOSSIER}/"


def ancestors(count: int, fan_in: int) -> dict[str, set[str]]:
    """For each leaf part, the parts above it: worked out from the definition of the tree alone."""
    level = [({f"leaf-{slot:02}"}, f"leaf-{slot:02}") for slot in range(count)]
    above: dict[str, set[str]] = {next(iter(leaves)): set() for leaves, _ in level}
    depth = 0
    while True:
        depth += 1
        last = len(level) <= fan_in
        groups = [level[start : start + fan_in] for start in range(0, len(level), fan_in)]
        prefix = "reduce" if depth == 1 else f"reduce{depth}"
        grown = []
        for number, group in enumerate(groups):
            name = "root" if last else f"{prefix}-{number:02}"
            leaves = set().union(*(covered for covered, _ in group))
            for leaf in leaves:
                above[leaf].add(name)
            grown.append((leaves, name))
        if last:
            return above
        level = grown


class Invalidation(RuleBasedStateMachine):
    """Random edits, then builds by either of two readers."""

    def __init__(self) -> None:
        super().__init__()
        self.scratch = Path(tempfile.mkdtemp(prefix="gsum-property-"))
        self.root = self.scratch / "ws"
        self.store = open_store(self.scratch / "store")
        self.counter = 0

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.scratch)

    @initialize(count=st.integers(1, 7), fan_in=st.integers(2, 4))
    def start(self, count: int, fan_in: int) -> None:
        workspaces.make_workspace(self.root, {DOSSIER: count}, fan_in=fan_in)
        self.count, self.fan_in = count, fan_in
        self.prompts = {"map-v1": 0, "reduce-v1": 0}
        for slot in range(count):
            self._edit_manifest(lambda text, slot=slot: manifest_edit.grant(text, f"D-{slot:02}", "other"))
        self.permitted: dict[str, set[str] | None] = dict.fromkeys(READERS)
        """Per reader what may run at the next build; None: everything (never built)."""

    # -- bookkeeping -------------------------------------------------------------------------------------------

    def _edit_manifest(self, edit) -> None:
        file = self.root / f"corpus/dossiers/{DOSSIER}/dossier.toml"
        file.write_text(edit(file.read_text()).text)

    def _parts(self) -> set[str]:
        above = ancestors(self.count, self.fan_in)
        return set(above).union(*above.values())

    def _permit(self, slots: set[int], readers: tuple[str, ...] = READERS) -> None:
        above = ancestors(self.count, self.fan_in)
        for slot in slots:
            leaf = f"leaf-{slot:02}"
            self._permit_parts({leaf} | above[leaf], readers)

    def _permit_parts(self, parts: set[str], readers: tuple[str, ...] = READERS) -> None:
        for reader in readers:
            if self.permitted[reader] is not None:
                self.permitted[reader] |= parts

    def _inner(self) -> set[str]:
        return {part for part in self._parts() if not part.startswith("leaf")}

    def _slot(self, data: st.DataObject) -> int:
        return data.draw(st.integers(0, self.count - 1), label="slot")

    # -- edits -------------------------------------------------------------------------------------------------

    @rule(data=st.data(), version=st.sampled_from(["1", "2"]))
    def activate(self, data, version):
        slot = self._slot(data)
        self._edit_manifest(lambda text: manifest_edit.activate(text, f"D-{slot:02}", version))
        self._permit({slot})

    @rule(data=st.data(), back=st.booleans())
    def withdraw_or_restore(self, data, back):
        slot = self._slot(data)
        edit = manifest_edit.restore if back else manifest_edit.withdraw
        self._edit_manifest(lambda text: edit(text, f"D-{slot:02}"))
        self._permit({slot})

    @rule(data=st.data(), reader=st.sampled_from(READERS), back=st.booleans())
    def revoke_or_grant(self, data, reader, back):
        slot = self._slot(data)
        edit = manifest_edit.grant if back else manifest_edit.revoke
        self._edit_manifest(lambda text: edit(text, f"D-{slot:02}", reader))
        self._permit({slot}, (reader,))  # another reader's change leaves your keys alone

    @rule(data=st.data(), version=st.sampled_from(["1", "2"]), kind=st.sampled_from(["fact", "blank", "bom", "crlf"]))
    def edit_text(self, data, version, kind):
        slot = self._slot(data)
        self.counter += 1
        text = workspaces.document_text(DOSSIER, slot)
        text = {
            "fact": text + f"Product P-1-{slot:02} status: seen {self.counter} times.\n",
            "blank": text + "\n" * self.counter,
            "bom": "\N{ZERO WIDTH NO-BREAK SPACE}" + text,
            "crlf": text.replace("\n", "\r\n"),
        }[kind]
        workspaces.edit_text(self.root, DOSSIER, f"D-{slot:02}", text, version)
        self._permit({slot})

    @rule()
    @precondition(lambda self: self.count < 9)
    def append_document(self):
        slot = self.count
        text = workspaces.document_text(DOSSIER, slot)
        folder = self.root / f"corpus/dossiers/{DOSSIER}"
        for version in ("1", "2"):
            workspaces.write_text(folder / f"documents/D-{slot:02}.v{version}.txt", text)
        with (folder / "dossier.toml").open("a") as manifest:
            manifest.write(
                f'\n[[documents]]\nid = "D-{slot:02}"\nactive = "1"\nwithdrawn = false\n'
                f'versions = {{ 1 = "documents/D-{slot:02}.v1.txt", 2 = "documents/D-{slot:02}.v2.txt" }}\n'
                f"readers = {{ {READERS[0]} = {{ granted = true, revision = 1 }} }}\n"
            )
        self.count += 1
        # The last groups of every level may change shape: everything above leaves may run, and the new leaf.
        self._permit({slot})
        self._permit_parts(self._inner())

    @rule(name=st.sampled_from(["map-v1", "reduce-v1"]))
    def change_prompt(self, name):
        self.prompts[name] += 1
        workspaces.set_prompt(self.root, name, f"Instruction {self.prompts[name]}.")
        self._permit_parts(self._parts() if name == "map-v1" else self._inner())

    @rule(fan_in=st.integers(2, 4))
    def change_fan_in(self, fan_in):
        workspaces.set_fan_in(self.root, fan_in)
        self.fan_in = fan_in
        self._permit_parts(self._inner())

    @rule(length=st.integers(100, 120))
    def change_schema(self, length):
        self._replace(r"max_length = \d+", f"max_length = {length}", after="[schema.product]")
        self._permit_parts(self._parts())

    @rule(identity=st.sampled_from(["fake-1", "fake-2"]))
    def change_toolchain(self, identity):
        self._replace(r'identity = "[^"]*"', f'identity = "{identity}"', after="[toolchain.fake]")
        self._permit_parts(self._parts())

    @rule(salt=st.sampled_from(["", "a"]))
    def change_salt(self, salt):
        self._replace(r'salt = "[^"]*"', f'salt = "{salt}"', after="[workspace]")
        self._permit_parts(self._parts())

    @rule()
    def touch_everything(self):
        for file in self.root.rglob("*"):
            file.touch()

    def _replace(self, pattern: str, line: str, *, after: str) -> None:
        file = self.root / "BUILD.toml"
        text = file.read_text()
        found = re.search(rf"^{pattern}$", text, re.MULTILINE)
        text = text[: found.start()] + line + text[found.end() :] if found else text.replace(after, f"{after}\n{line}")
        file.write_text(text)

    # -- builds ------------------------------------------------------------------------------------------------

    @rule(reader=st.sampled_from(READERS), whole=st.booleans())
    def build(self, reader, whole):
        pattern = f"//dossier:{DOSSIER}/..." if whole else f"//dossier:{DOSSIER}"
        executor = FakeExecutor()
        built = run_build(self.root, self.store, pattern, executor=executor, principal=reader)
        assert built.report.exit_code == 0
        self._compare_with_clean(built, pattern, reader)
        permitted = self.permitted[reader]
        if permitted is not None:
            assert set(built.ran()) <= permitted
        assert len(executor.calls) == len(built.report.generated)
        assert built.report.targets == len(self._parts())
        again = FakeExecutor()
        second = run_build(self.root, self.store, pattern, executor=again, principal=reader)
        assert second.ran() == ()
        assert again.calls == []
        if permitted is None or whole:
            self.permitted[reader] = set()
        else:  # parts that the root did not need may still be to run when asked for
            self.permitted[reader] = permitted - set(built.ran())

    @rule(reader=st.sampled_from(READERS))
    def show(self, reader):
        label = f"{LABEL}root"
        universe = load_universe(self.root, [label], principal=reader)
        documents = WorkspaceDocuments(universe.workspace)
        try:
            served = serve(universe, self.store, documents, label)
        except NotServed as refused:
            assert refused.target.state in (State.STALE, State.NOT_BUILT)
            assert self.permitted[reader] != set(), "nothing changed for this reader since the last build"
            return
        clean_store = self._clean_store()
        try:
            clean = run_build(self.root, clean_store, label, principal=reader)
            assert served.result == results(clean, clean_store)[label]
        finally:
            clean_store.close()

    def _clean_store(self) -> LocalStore:
        return open_store(self.scratch / f"clean-{self.counter}-{len(list(self.scratch.iterdir()))}")

    def _compare_with_clean(self, built: Built, pattern: str, reader: str) -> None:
        clean_store = self._clean_store()
        try:
            clean = run_build(self.root, clean_store, pattern, principal=reader)
            ours, theirs = results(built, self.store), results(clean, clean_store)
        finally:
            clean_store.close()
        keys = {label: keyed.key for label, keyed in built.universe.keys.actions.items()}
        assert keys == {label: keyed.key for label, keyed in clean.universe.keys.actions.items()}
        assert ours[f"{LABEL}root"] == theirs[f"{LABEL}root"]
        assert set(theirs) == set(keys)
        for label, result in ours.items():
            assert result == theirs[label]

    @invariant()
    def text_of_unreadable_documents_is_not_in_keys(self):
        """The keys of a stranger are those of a world in which no document file exists."""
        if not self.root.exists():
            return
        before = load_universe(self.root, [f"//dossier:{DOSSIER}/..."], principal="stranger")
        documents = self.root / f"corpus/dossiers/{DOSSIER}/documents"
        documents.rename(documents.with_name("gone"))
        try:
            after = load_universe(self.root, [f"//dossier:{DOSSIER}/..."], principal="stranger")
        finally:
            documents.with_name("gone").rename(documents)
        assert before.keys.actions == after.keys.actions


TestInvalidation = Invalidation.TestCase
TestInvalidation.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
