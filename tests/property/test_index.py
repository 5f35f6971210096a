"""The stat index may only err towards looking again: after a build on it, everything asked for is current.

Edits include those that indexes miss: same size, restored mtime, the same clock tick, swapped files, changed links.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from support import workspaces
from support.engine import first_look, labels_of, run_build
from support.ticks import age, wait_a_tick

from gsum.engine.index.quick import NothingToDo
from gsum.engine.states import target_states
from gsum.engine.universe import load_universe
from gsum.store.local import open_store


class OnAnIndex(RuleBasedStateMachine):
    """Random edits of three dossiers, one of them a plain folder, built on an index."""

    def __init__(self) -> None:
        super().__init__()
        self.scratch = Path(tempfile.mkdtemp(prefix="gsum-index-"))
        self.root, self.index = self.scratch / "ws", self.scratch / "index"
        self.store = open_store(self.scratch / "store")
        self.counter = 0

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.scratch)

    @initialize()
    def start(self):
        workspaces.make_workspace(self.root, {"S-1": 3, "S-2": 2}, fan_in=2)
        self.plain = self.root / "corpus/dossiers/S-3"
        self.plain.mkdir()
        (self.plain / "a.txt").write_text("Product P-3-00 site: Hall 1.\n")

    def _document(self, data) -> Path:
        documents = sorted((self.root / "corpus/dossiers").glob("*/documents/*.txt")) + sorted(self.plain.glob("*.txt"))
        return data.draw(st.sampled_from(documents))

    @rule(data=st.data(), same_size=st.booleans(), restore_mtime=st.booleans(), replace=st.booleans())
    def edit(self, data, same_size, restore_mtime, replace):
        file = self._document(data)
        before, text = file.stat(), file.read_text()
        self.counter += 1
        changed = text[:-3] + f"{self.counter % 10}.\n" if same_size else text + f"Note {self.counter}.\n"
        if replace:
            temporary = file.with_name(".new")
            temporary.write_text(changed)
            temporary.replace(file)
        else:
            file.write_text(changed)
        if restore_mtime:
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    @rule(data=st.data())
    def swap(self, data):
        first, second = self._document(data), self._document(data)
        if first != second:
            spare = first.with_name(".spare")
            first.rename(spare)
            second.rename(first)
            spare.rename(second)

    @rule(data=st.data(), version=st.sampled_from(["1", "2"]))
    def activate(self, data, version):
        dossier, count = data.draw(st.sampled_from([("S-1", 3), ("S-2", 2)]))
        slot = data.draw(st.integers(0, count - 1))
        workspaces.activate(self.root, dossier, f"D-{slot:02}", version)

    @rule(name=st.sampled_from(["b.txt", "c.txt"]))
    def add_or_remove_a_plain_file(self, name):
        file = self.plain / name
        if file.exists():
            file.unlink()
        else:
            file.write_text(f"Product P-3-01 status: {name[0]}.\n")

    @rule()
    def add_or_remove_a_dossier(self):
        folder = self.root / "corpus/dossiers/S-4"
        if folder.exists():
            shutil.rmtree(folder)
        else:
            workspaces.make_dossier(self.root, "S-4", 1)

    @rule(prompt=st.sampled_from(["map-v1", "reduce-v1"]), number=st.integers(0, 2))
    def change_a_prompt(self, prompt, number):
        workspaces.set_prompt(self.root, prompt, f"Instruction {number}.")

    @rule()
    def touch(self):
        for file in self.root.rglob("*"):
            file.touch()

    @rule(data=st.data())
    def touch_one(self, data):
        self._document(data).touch()

    @rule(data=st.data())
    def write_the_same_again(self, data):
        file = self._document(data)
        temporary = file.with_name(".new")
        temporary.write_bytes(file.read_bytes())
        temporary.replace(file)

    @rule(data=st.data(), hard=st.booleans())
    def link(self, data, hard):
        """Give a document another name, or put a link to its bytes in its place."""
        file = self._document(data)
        self.counter += 1
        other = self.scratch / "ws" / f"kept-{self.counter}"
        if hard:
            other.hardlink_to(file)
        else:
            other.write_bytes(file.read_bytes())
            file.unlink()
            file.symlink_to(other)

    @rule(data=st.data())
    def give_other_rights(self, data):
        file = self._document(data)
        file.chmod(0o644 if file.stat().st_mode & 0o777 == 0o600 else 0o600)

    @rule()
    def wait(self):
        age(self.root)

    @rule(
        pattern=st.sampled_from(
            ["//...", "//dossier:...", "//dossier:all", "//baseline:all", "//dossier:S-1", "//dossier:S-3/..."]
        ),
        principal=st.sampled_from([workspaces.READER, "other"]),
    )
    def build(self, pattern, principal):
        looked = self._look_quickly(pattern, principal)
        built = run_build(self.root, self.store, pattern, principal=principal, index=self.index, looked=looked)
        universe = load_universe(self.root, [pattern], principal=principal)
        states = target_states(universe, self.store, universe.graph.requested)
        assert {label for label, found in states.items() if not found.state.current} == set()
        assert built.report.targets == len(universe.graph.actions)
        assert set(built.report.cached) | set(built.report.recomputed) == set(universe.graph.actions)
        assert len(built.report.cached) + len(built.report.recomputed) == built.report.targets
        # Once more, a tick later: what was looked at is trusted from now on, and later edits must be seen all the same.
        wait_a_tick()
        run_build(self.root, self.store, pattern, principal=principal, index=self.index)
        self._look_quickly(pattern, principal)

    @rule(
        pattern=st.sampled_from(
            ["//dossier:...", "//dossier:all", "//baseline:all", "//dossier:S-1", "//dossier:S-3/..."]
        ),
        principal=st.sampled_from([workspaces.READER, "other"]),
    )
    def look_quickly(self, pattern, principal):
        self._look_quickly(pattern, principal)

    def _look_quickly(self, pattern, principal):
        """What the index alone calls done is done."""
        found = first_look(self.root, self.store, self.index, pattern, principal=principal)
        if not isinstance(found, NothingToDo):
            return found
        universe = load_universe(self.root, [pattern], principal=principal)
        states = target_states(universe, self.store, universe.graph.requested)
        assert all(state.state.current for state in states.values())
        assert sorted(labels_of(found)) == sorted(universe.graph.actions)
        return None


TestOnAnIndex = OnAnIndex.TestCase
TestOnAnIndex.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
