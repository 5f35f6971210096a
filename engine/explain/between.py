"""What changed in a target from one past build to another: from their events and the preimages kept. Reads the store.

A build that found nothing to do visits nothing: what a target was then is what the newest build before it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gsum.engine.events import ActionCached, ActionFailed, ActionFinished, ActionSkipped
from gsum.engine.explain.causes import Reader
from gsum.engine.explain.compare import Comparison
from gsum.engine.explain.model import Cause, CauseKind, Explanation, Verdict
from gsum.engine.explain.past import NoInvocation, group_events, own_invocations, pick_invocation
from gsum.engine.explain.reading import stored_record
from gsum.engine.explain.records import Records
from gsum.store.api import Store
from gsum.store.digests import Key
from gsum.store.errors import StoreError
from gsum.store.records import InvocationRecord


def explain_between(store: Store, reader: Reader, principal: str, first: str, second: str, label: str) -> Explanation:
    """Explain why a target's key differs between two builds of a principal, from the first named to the second.

    Raises:
        NoInvocation: if one is not there, or nothing tells what the target was at that time.
    """
    builds = list(own_invocations(store, principal))
    before, after = (pick_invocation(builds, principal, name) for name in (first, second))
    records = Records(lambda key: stored_record(store, key))
    old, new = (_known(store, records, builds, record, label) for record in (before, after))
    was, now = old[label], new[label]
    if was == now:
        return Explanation(label, Verdict.SAME, principal, after.toolchain, invocation=after.id, before=before.id)
    known = frozenset(_below(records, was))
    changed = [key for key in _below(records, now) if key not in known]
    names = _names(store, _until(builds, after), changed, {**_labels(old), **_labels(new)}, label)
    side = _Side(records, label, now, names)
    runs = [other for other, key in side.keys.items() if key not in known]
    comparison = Comparison(side, records, reader, runs)
    comparison.explain(label, was)
    causes, nodes = comparison.result()
    return Explanation(
        label, Verdict.DIFFERS, principal, after.toolchain, tuple(runs), causes, nodes, after.id, before=before.id
    )


def _known(
    store: Store, records: Records, builds: Sequence[InvocationRecord], record: InvocationRecord, label: str
) -> dict[str, Key]:
    """Return the keys of a target and of its dossier as of a build: as the newest build until then says.

    A build that goes back to an earlier state may visit the root alone; then what was below it counts.
    """
    group = label.rpartition("/")[0]
    root = f"{group}/root"
    found: dict[str, Key] = {}
    below: frozenset[Key] | None = None
    for other in _until(builds, record):
        keys = _keys(store, other, group)
        if below is None and label != root and root in keys and label not in keys:
            below = frozenset(_below(records, keys[root]))
        found = keys | found
        if label in keys and (below is None or keys[label] in below):
            return {**found, label: keys[label]}
    if label in found:
        return found
    facts = {"invocation": record.id, "asked for": " ".join(record.patterns)}
    hint = f"`gsum log --invocation {record.id}` lists what ran"
    raise NoInvocation(f"`{label}` was not built until then", facts=facts, hint=hint)


def _names(
    store: Store, builds: Sequence[InvocationRecord], wanted: Sequence[Key], known: dict[Key, str], label: str
) -> dict[Key, str]:
    """Return labels by key: those known, and where that leaves a wanted one without, those of earlier builds."""
    group = label.rpartition("/")[0]
    for build in builds:
        if known.keys() >= set(wanted):
            break
        known = _labels(_keys(store, build, group)) | known
    return known


def _until(builds: Sequence[InvocationRecord], record: InvocationRecord) -> list[InvocationRecord]:
    """Return the builds up to one, newest first, that used its toolchain."""
    start = next(place for place, other in enumerate(builds) if other.id == record.id)
    return [other for other in builds[start:] if other.toolchain == record.toolchain]


def _keys(store: Store, record: InvocationRecord, group: str) -> dict[str, Key]:
    """Return the keys of a dossier's targets as a build's events tell; where they can't be read, none."""
    try:
        events = group_events(store, record.id, group)
    except (StoreError, msgspec.MsgspecError):
        return {}
    kinds = ActionCached | ActionFinished | ActionFailed | ActionSkipped
    keyed = [event for event in events if isinstance(event, kinds)]
    return {event.label: event.key for event in keyed if event.label.rpartition("/")[0] == group}


def _labels(keys: Mapping[str, Key]) -> dict[Key, str]:
    return {key: label for label, key in keys.items()}


def _below(records: Records, top: Key) -> list[Key]:
    """Return the keys of a tree, children before parents."""
    order: list[Key] = []
    seen: set[Key] = set()
    stack = [(top, False)]
    while stack:
        key, leaving = stack.pop()
        if leaving:
            order.append(key)
        elif key not in seen:
            seen.add(key)
            stack.append((key, True))
            stack += [(child, False) for child in reversed(records.children(key))]
    return order


class _Side:
    """The later tree (a `gsum.engine.explain.compare.Side`): labels by what the builds' events tell of keys."""

    def __init__(self, records: Records, label: str, top: Key, labels: Mapping[Key, str]) -> None:
        self._records = records
        group = label.rpartition("/")[0]
        self._names = {key: labels.get(key, f"{group}/{key[:12]}") for key in _below(records, top)}
        self._names[top] = label
        self.keys = {name: key for key, name in self._names.items()}

    def key(self, label: str) -> Key:
        """Return a target's key."""
        return self.keys[label]

    def children(self, label: str) -> tuple[str, ...]:
        """Return the labels below a target, in slot order."""
        return tuple(self._names[child] for child in self._records.children(self.keys[label]))

    def latest(self, label: str) -> Key | None:  # noqa: ARG002 - the protocol's
        """Return nothing: where a parent can't tell, there is no counterpart."""
        return None

    def unbuilt(self, label: str) -> Cause:
        """Return the cause of a target without a counterpart."""
        return Cause(CauseKind.NEVER_BUILT, label, f"`{label}` has no counterpart in the earlier build")

    def unchanged(self, label: str) -> Cause:
        """Return the cause of a target that did not change: it is not asked for one."""
        return self.unknown(label)

    def unknown(self, label: str) -> Cause:
        """Return the cause of a target that can't be compared."""
        return Cause(CauseKind.UNKNOWN, label, f"a preimage of `{label}` is not kept: what changed can't be told")
