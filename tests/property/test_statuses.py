"""Honest statuses over random trees in which documents are withdrawn or revoked and generations are broken.

Statuses are held to the README's "Honest statuses", worked out anew from rights and from what the model wrote.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support import workspaces
from support.engine import results, run_build
from support.fake_executor import FakeExecutor
from support.fake_model import generate

from gsum.rules.claims import Status
from gsum.store.digests import blob_digest
from gsum.store.local import open_store

DOSSIER, PATTERN = "S-1", "//dossier:S-1/..."
BROKEN = '{"claims": [NaN]}'


@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(1, 8),
    fan_in=st.integers(2, 4),
    withdrawn=st.sets(st.integers(0, 7)),
    revoked=st.sets(st.integers(0, 7)),
    broken=st.sets(st.integers(0, 7)),
    empty=st.sets(st.integers(0, 7)),
)
def test_statuses_follow_from_rights_and_generations_alone(count, fan_in, withdrawn, revoked, broken, empty):
    def answer(request):
        last = request.messages[-1].content
        which = int(blob_digest(last.encode())[:1], 16) % 8
        if which in broken:
            return BROKEN
        return '{"claims":[]}' if which in empty else generate(last)

    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "store") as store:
        root = workspaces.make_workspace(Path(folder) / "ws", {DOSSIER: count}, fan_in=fan_in)
        for slot in range(count):
            if slot in withdrawn:
                workspaces.withdraw(root, DOSSIER, f"D-{slot:02}")
            if slot in revoked:
                workspaces.set_reader(root, DOSSIER, f"D-{slot:02}", granted=False, revision=2)
        executor = FakeExecutor(answer=answer)
        built = run_build(root, store, PATTERN, executor=executor)
        found = results(built, store)
        keys = {label: keyed.key for label, keyed in built.universe.keys.actions.items()}
        entries = store.entries(list(keys.values()))
        expected: dict[str, Status] = {}
        for label, action in built.universe.graph.actions.items():
            entry, result = entries[keys[label]], found[label]
            wrote = None if entry.generation is None else json.loads(store.get_blob(entry.generation))["text"]
            below = {expected[child] for child in action.children}
            if action.scope is None:
                nothing = below == {Status.INELIGIBLE}
            else:
                nothing = int(label[-2:]) in withdrawn | revoked
            if nothing:
                expected[label] = Status.INELIGIBLE
                assert wrote is None, "nothing is eligible, so nothing is asked"
            elif wrote == BROKEN:
                expected[label] = Status.INVALID
                assert result.diagnostic
            else:
                expected[label] = Status.PARTIAL if below & {Status.INVALID, Status.PARTIAL} else Status.VALID
            if expected[label] in (Status.INELIGIBLE, Status.INVALID):
                assert (result.claims, result.evidence) == ((), ())
        assert {label: result.status for label, result in found.items()} == expected
        assert len(executor.calls) == sum(entry.generation is not None for entry in entries.values())
        invalid = {label for label, status in expected.items() if status is Status.INVALID}
        assert set(built.report.invalid) == invalid
        assert built.report.exit_code == (7 if invalid else 0)
