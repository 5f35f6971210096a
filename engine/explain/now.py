"""Why a target would run now. Reads the store and, for what changed, documents that the principal may read."""

from __future__ import annotations

from gsum.engine.build import look_up
from gsum.engine.documents import Documents
from gsum.engine.explain.compare import Comparison
from gsum.engine.explain.counterfactual import MOST_CANDIDATES, smallest_way_back
from gsum.engine.explain.model import Cause, CauseKind, Explanation, Node, Verdict
from gsum.engine.explain.reading import WorkspaceReader, stored_record
from gsum.engine.explain.records import Records
from gsum.engine.plan import Plan
from gsum.engine.universe import Universe
from gsum.rules.graph import Action, ActionGraph
from gsum.store.api import Store
from gsum.store.digests import Key
from gsum.store.records import ActionEntry, TargetRef


def explain(
    universe: Universe, store: Store, documents: Documents, label: str, *, way_back: bool = True
) -> Explanation:
    """Explain why `label`, which must be in the universe's graph, would run now, or say that nothing would;
    with the smallest way back to a hit, unless that is not wanted.

    Raises:
        SourceChanged: if a document changed since the universe was loaded.
    """
    graph = ActionGraph(universe.graph.actions, (label,))
    plan: Plan[ActionEntry] = Plan(graph)
    look_up(plan, universe.keys, store)
    action = graph.actions[label]
    if not plan.to_run:
        return Explanation(label, Verdict.CURRENT, action.principal, action.toolchain)
    side = _Now(universe, store)
    records = Records(side.record)
    reader = WorkspaceReader(universe.workspace, universe.graph, store, documents)

    def since(earlier: Key | None) -> tuple[tuple[Cause, ...], tuple[Node, ...]]:
        comparison = Comparison(side, records, reader, plan.to_run)
        comparison.explain(label, earlier)
        return comparison.result()

    previous = side.latest(label)
    causes, nodes = since(previous)
    back = None
    if way_back:
        earlier = _served_before(store, action)
        back = smallest_way_back(records, reader, label, side.key(label), earlier, lambda key: since(key)[0])
    verdict = Verdict.STALE
    if previous is None:
        verdict = Verdict.NOT_BUILT
    elif previous == side.key(label):
        verdict = Verdict.INCOMPLETE
    return Explanation(label, verdict, action.principal, action.toolchain, plan.to_run, causes, nodes, way_back=back)


def _served_before(store: Store, action: Action) -> list[TargetRef]:
    """Return what a label was built as, newest first, as far as all of its entry is kept."""
    refs = store.target_history(action.label, action.principal)[:MOST_CANDIDATES]
    kept = store.entries([ref.key for ref in refs])
    return [ref for ref in refs if ref.key in kept]


class _Now:
    """The present side of a comparison (a `gsum.engine.explain.compare.Side`): keys as declared now."""

    def __init__(self, universe: Universe, store: Store) -> None:
        self._universe = universe
        self._store = store
        self._present = {keyed.key: keyed.action.data for keyed in universe.keys.actions.values()}

    def record(self, key: Key) -> bytes | None:
        """Return a preimage's bytes: of a present key without the store."""
        if key in self._present:
            return self._present[key]
        if key in self._universe.keys.records:
            return self._universe.keys.records[key].data
        return stored_record(self._store, key)

    def key(self, label: str) -> Key:
        """Return a target's key."""
        return self._universe.keys.actions[label].key

    def children(self, label: str) -> tuple[str, ...]:
        """Return the labels below a target, in slot order."""
        return self._action(label).children

    def latest(self, label: str) -> Key | None:
        """Return what a label was last built as, for its principal and toolchain."""
        action = self._action(label)
        ref = self._store.latest(label, action.principal, action.toolchain or "")
        return None if ref is None else ref.key

    def unbuilt(self, label: str) -> Cause:
        """Return the cause of a target that was never built."""
        action = self._action(label)
        toolchain = "" if action.toolchain is None else f" and toolchain `{action.toolchain}`"
        text = f"never built for principal `{action.principal}`{toolchain}"
        return Cause(CauseKind.NEVER_BUILT, action.toolchain or action.principal, text)

    def unchanged(self, label: str) -> Cause:
        """Return what is lost of a target that was built as its present key."""
        return Cause(CauseKind.INCOMPLETE, label, f"entry of `{label}` incomplete: {self._lost(label)}")

    def unknown(self, label: str) -> Cause:
        """Return the cause of a target whose former preimage is lost."""
        return Cause(CauseKind.UNKNOWN, label, f"what `{label}` was built from is not kept: its preimage is lost")

    def _lost(self, label: str) -> str:
        key, scope = self.key(label), self._action(label).scope
        if stored_record(self._store, key) is None:
            return "preimage missing"
        if scope is not None and scope.text is not None and self._store.missing_blobs([scope.text]):
            return "source blob missing"
        return "result blob, request or generation missing"

    def _action(self, label: str) -> Action:
        return self._universe.graph.actions[label]
