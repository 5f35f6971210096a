"""What stands after a build, taken from a store: nodes, counters, audits, and two trees held against each other.

Reads stores, builds nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from gsum.engine.experiment.records import CACHED, Counters, Node, NodeDifference, Pair, Side, SideTimes
from gsum.engine.inputs import decode_result
from gsum.engine.universe import Universe
from gsum.rules.audit import Audit
from gsum.rules.claims import Claim
from gsum.store.api import Store
from gsum.store.digests import Digest, Key
from gsum.store.records import Generation, How, InvocationRecord, Observation

_GENERATIONS = msgspec.json.Decoder(Generation)
_OBSERVATIONS = msgspec.json.Decoder(Observation)
_ALL_INVOCATIONS = 1_000_000


def nodes_of(universe: Universe, store: Store, to_run: Collection[str]) -> tuple[Node, ...]:
    """Return every target of a universe as it stands in a store, all of them built."""
    keys = {label: keyed.key for label, keyed in universe.keys.actions.items()}
    entries = store.entries(list(dict.fromkeys(keys.values())))
    nodes = []
    for label, key in keys.items():
        entry = entries[key]
        tokens = 0 if entry.generation is None else len(token_ids(store, entry.generation))
        how = entry.how.value if label in to_run else CACHED
        nodes.append(Node(label, key, how, entry.status, entry.result, entry.request, entry.generation, tokens))
    return tuple(nodes)


def counters_of(nodes: Sequence[Node]) -> Counters:
    """Count nodes by how they came about."""
    how = [node.how for node in nodes]
    calls = [node for node in nodes if node.how == How.GENERATED.value]
    return Counters(
        targets=len(nodes),
        hits=how.count(CACHED),
        recomputed=len(nodes) - how.count(CACHED),
        model_calls=len(calls),
        cut_off=how.count(How.CUT_OFF.value),
        ineligible=how.count(How.INELIGIBLE.value),
        pure=how.count(How.PURE.value),
        new_tokens=sum(node.tokens for node in calls),
    )


def audits_of(universe: Universe, store: Store, package: str) -> tuple[dict[str, Audit], dict[str, str]]:
    """Return the audits of a package by label, all of them built, and their keys."""
    labels = [label for label, action in universe.graph.actions.items() if action.package == package]
    keys = {label: universe.keys.actions[label].key for label in labels}
    entries = store.entries(list(keys.values()))
    found: dict[str, Audit] = {}
    for label, key in keys.items():
        audit = decode_result(store.get_blob(entries[key].result)).audit
        assert isinstance(audit, Audit)
        found[label] = audit
    return found, dict(keys)


def compare(
    one: Side, one_store: Store, other: Side, other_store: Store
) -> tuple[tuple[Pair, ...], tuple[NodeDifference, ...]]:
    """Hold two trees against each other, node by node, by dossier: keys, statuses, claims, token ids."""
    beside = {node.label: node for node in other.nodes}
    marks: dict[str, list[tuple[Node, dict[str, bool]]]] = {}
    for node in one.nodes:
        marks.setdefault(_dossier(node.label), []).append(
            (node, _marks(node, one_store, beside[node.label], other_store))
        )
    pairs = tuple(_pair(dossier, [mark for _, mark in found]) for dossier, found in marks.items())
    differences = tuple(
        NodeDifference(node.label, tuple(name for name, equal in mark.items() if not equal))
        for found in marks.values()
        for node, mark in found
        if not all(mark.values())
    )
    return pairs, differences


def times_of(store: Store, invocations: Iterable[str], nodes: Sequence[Node]) -> SideTimes:
    """Return what invocations took, and what was observed of the executions that made the generated nodes."""
    wanted = list(dict.fromkeys(invocations))
    by_id = {record.id: record for record in store.invocations(_ALL_INVOCATIONS)}
    records: list[InvocationRecord] = [by_id[one] for one in wanted if one in by_id]
    requests = [node.request for node in nodes if node.how == How.GENERATED.value and node.request is not None]
    seen = [
        observed
        for request in requests
        for observed in map(_OBSERVATIONS.decode, store.observations(Key(request)))
        if observed.invocation in wanted
    ]
    versions: dict[str, str] = {}
    for observed in seen:
        versions |= observed.versions
    return SideTimes(
        attempts=len(wanted),
        unfinished=len(wanted) - sum(record.seconds is not None for record in records),
        seconds=round(sum(record.seconds or 0.0 for record in records), 3),
        executions=len(seen),
        model_seconds=round(sum(observed.seconds for observed in seen), 3),
        prompt_tokens=sum(observed.prompt_tokens for observed in seen),
        prefilled=sum(observed.prefilled for observed in seen),
        reused=sum(observed.reused for observed in seen),
        forced=sum(observed.forced for observed in seen),
        sampled=sum(observed.sampled for observed in seen),
        devices=tuple(sorted({observed.device for observed in seen})),
        versions=dict(sorted(versions.items())),
    )


def claims_of(store: Store, node: Node) -> tuple[Claim, ...]:
    """Return the claims of a node's result."""
    return decode_result(store.get_blob(Digest(node.result))).claims


def token_ids(store: Store, generation: str) -> tuple[int, ...]:
    """Return the token ids of a generation."""
    return _GENERATIONS.decode(store.get_blob(Digest(generation))).token_ids


def _marks(one: Node, one_store: Store, other: Node, other_store: Store) -> dict[str, bool]:
    marks = {"key": one.key == other.key, "status": one.status == other.status}
    marks["claims"] = claims_of(one_store, one) == claims_of(other_store, other)
    if one.generation is not None and other.generation is not None:
        marks["tokens"] = token_ids(one_store, one.generation) == token_ids(other_store, other.generation)
    return marks


def _pair(dossier: str, marks: Sequence[dict[str, bool]]) -> Pair:
    def equal(name: str) -> int:
        return sum(mark.get(name, False) for mark in marks)

    compared = sum("tokens" in mark for mark in marks)
    return Pair(dossier, len(marks), equal("key"), equal("status"), equal("claims"), compared, equal("tokens"))


def _dossier(label: str) -> str:
    return label.rpartition("/")[0].rpartition(":")[2]
