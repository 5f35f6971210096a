"""What a store holds for the keys of this moment: the facts that queries ask. Reads the store and, where a passage is
asked for, documents that the principal may read now; every citation is verified before it counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from gsum.engine.build import look_up
from gsum.engine.documents import Documents
from gsum.engine.forecast.model import Estimate
from gsum.engine.forecast.now import plan_forecast
from gsum.engine.inputs import InputReader
from gsum.engine.plan import Plan
from gsum.engine.query.facts import Passage, Table
from gsum.engine.query.graph import document_of
from gsum.engine.states import State, target_states
from gsum.engine.universe import Universe
from gsum.rules.documents import Evidence, lines
from gsum.rules.graph import Action, ActionGraph
from gsum.store.api import Store
from gsum.store.errors import ExitCode, GsumError
from gsum.store.records import ActionEntry

_CLAIMING = (State.VALID, State.PARTIAL)


class NotAnswered(GsumError):
    """A query whose answer would mislead: of a document that may not be read, or where nothing is current."""

    exit_code = ExitCode.STALE


class StoredFacts:
    """The `gsum.engine.query.facts.Facts` of a universe and a store."""

    def __init__(self, universe: Universe, store: Store, documents: Documents) -> None:
        self._universe, self._store, self._documents = universe, store, documents
        self._reader = InputReader(universe.workspace, universe.graph, universe.keys, store, documents)

    def states(self, labels: Collection[str]) -> Mapping[str, str]:
        """Return the state of each target."""
        found = target_states(self._universe, self._store, labels)
        return {label: target.state.name for label, target in found.items()}

    def citing(self, passage: Passage, labels: Collection[str]) -> Collection[str]:
        """Return those of `labels` of whose current claims one cites the passage; of a document that may not be read
        there is none.
        """
        leaf = self._leaf(passage.label)
        if leaf is None or leaf.scope is None:
            return ()
        return [
            label
            for label, cited in self._cited(labels)
            if any(passage.overlaps(record.start, record.end) for record in cited if record.doc_id == leaf.scope.id)
        ]

    def uncited(self, passage: Passage, labels: Sequence[str]) -> Table:
        """Return the lines of a document in the passage that no current claim of `labels` cites.

        Raises:
            NotAnswered: if the document may not be read, or no target has current claims.
        """
        leaf = self._leaf(passage.label)
        if leaf is None or leaf.scope is None:
            hint = "`gsum query 'attr(active, true, …) ^ attr(eligible, true, …)'` lists what is"
            raise NotAnswered(f"`{passage.label}` may not be read by `{self._universe.principal}`", hint=hint)
        cited = list(self._cited(labels))
        if not cited:
            hint = "build what depends on it: `gsum query 'rdeps(//..., DOC)'` lists that"
            raise NotAnswered(f"no target that depends on `{passage.label}` has current claims", hint=hint)
        taken = [record for _, records in cited for record in records if record.doc_id == leaf.scope.id]
        rows = [
            (passage.label, line.start, line.end, line.text)
            for line in lines(self._reader.text(leaf).text)
            if passage.overlaps(line.start, line.end)
            and not any(record.start < line.end and line.start < record.end for record in taken)
        ]
        return Table(("document", "start", "end", "text"), tuple(rows))

    def generations(self, labels: Sequence[str]) -> Table:
        """Return the output behind each current result that has one, its request, the build that served it first, and
        how many different outputs the request has.
        """
        rows = []
        for label, entry in self._entries(labels):
            if entry.generation is not None and entry.request is not None:
                outputs = len(self._store.generations(entry.request))
                rows.append((label, entry.generation, entry.request, entry.invocation, outputs))
        return Table(("target", "generation", "request", "invocation", "outputs"), tuple(rows))

    def cost(self, labels: Sequence[str]) -> Table:
        """Return what building the targets would take: medians and bounds from this principal's earlier builds."""
        self._universe.require(labels)
        plan: Plan[ActionEntry] = Plan(ActionGraph(self._universe.graph.actions, tuple(labels)))
        look_up(plan, self._universe.keys, self._store)
        found = plan_forecast(self._universe, self._store, plan.to_run)
        rows = [
            ("actions", found.actions, found.actions, found.actions),
            _row("generations", found.generations),
            _row("tokens", found.tokens),
            _row("seconds", found.seconds),
            ("without history", found.unknown, found.unknown, found.unknown),
        ]
        return Table(("measure", "low", "median", "high"), tuple(rows))

    def _leaf(self, document: str) -> Action | None:
        """Return a leaf over a document that may be read; an audit's gold is no such document."""
        for action in self._universe.graph.actions.values():
            readable = action.scope is not None and action.scope.readable and not action.children
            if readable and document_of(action) == document:
                return action
        return None

    def _entries(self, labels: Collection[str]) -> Iterator[tuple[str, ActionEntry]]:
        for label, target in target_states(self._universe, self._store, labels).items():
            if target.entry is not None:
                yield label, target.entry

    def _cited(self, labels: Collection[str]) -> Iterator[tuple[str, list[Evidence]]]:
        """Yield the targets whose current results hold claims, each with the evidence that these cite, verified.

        An audit cites nothing, so whether its gold can be used is not asked.
        """
        known = [label for label in labels if label not in self._universe.unusable]
        for label, target in target_states(self._universe, self._store, known).items():
            if target.entry is None or target.state not in _CLAIMING:
                continue
            result = self._reader.load_result(label, target.entry.result)
            used = {cited for claim in result.claims for cited in claim.evidence}
            if result.audit:
                continue
            yield label, [record for record in result.evidence if record.id in used]


def _row(name: str, estimate: Estimate) -> tuple[str, float, float | None, float | None]:
    return (name, estimate.low, estimate.median, estimate.high)
