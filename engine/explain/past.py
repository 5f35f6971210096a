"""Why targets ran in a past build: from its events and the preimages kept, with no log switched on. Reads the store.

Rights are those of now: of a document that the reader may not read today, nothing about version and text is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gsum.engine.events import ActionCached, ActionFailed, ActionFinished, ActionSkipped, AnyEvent, decode_event
from gsum.engine.explain.causes import Reader
from gsum.engine.explain.compare import Comparison
from gsum.engine.explain.model import Cause, CauseKind, Explanation, Verdict
from gsum.engine.explain.reading import stored_record
from gsum.engine.explain.records import Records
from gsum.rules.labels import nearest
from gsum.store.api import Store
from gsum.store.digests import Key
from gsum.store.errors import ExitCode, GsumError
from gsum.store.records import InvocationRecord

_FIRST_PAGE = 64


class NoInvocation(GsumError):
    """A past build, or a target in one, that is not there."""

    exit_code = ExitCode.USAGE


def explain_invocation(
    store: Store, reader: Reader, principal: str, invocation: str | None, label: str | None
) -> Explanation:
    """Explain why targets ran in an invocation of a principal (null: the last one): all, or `label` and those below it.

    Raises:
        NoInvocation: if there is none of that id, or it did not visit `label`.
    """
    record = find_invocation(store, principal, invocation)
    past = _Past(record, _events(store, record.id) if label is None else group_events(store, record.id, _group(label)))
    if label is not None and label not in past.keys:
        raise _not_visited(record, label, _Past(record, _events(store, record.id)))
    if not past.runs or (label is not None and label not in past.runs):
        return Explanation(label, Verdict.SERVED, record.principal, record.toolchain, invocation=record.id)
    records = Records(lambda key: stored_record(store, key))
    past.name_children(records)
    wanted = past.tops() if label is None else [label]
    runs = [other for other in past.runs if label is None or other in past.below(label)]
    comparison = Comparison(past, records, reader, runs)
    for top in wanted:
        comparison.explain(top, past.latest(top))
    causes, nodes = comparison.result()
    return Explanation(
        label, Verdict.RAN, record.principal, record.toolchain, tuple(runs), causes, nodes, invocation=record.id
    )


def find_invocation(store: Store, principal: str, invocation: str | None) -> InvocationRecord:
    """Return an invocation of a principal, by its id or an unambiguous beginning of it; null: the last one.

    Raises:
        NoInvocation: if there is none, or more than one.
    """
    own = own_invocations(store, principal)
    if invocation is None:
        last = next(own, None)
        if last is None:
            raise NoInvocation(f"nothing was built for principal `{principal}` yet", hint="gsum build PATTERN")
        return last
    return pick_invocation(list(own), principal, invocation)


def pick_invocation(known: Sequence[InvocationRecord], principal: str, invocation: str) -> InvocationRecord:
    """Return the one of a principal's invocations that an id, or an unambiguous beginning of one, names.

    Raises:
        NoInvocation: if there is none, or more than one.
    """
    found = [record for record in known if record.id.startswith(invocation)]
    exact = [record for record in found if record.id == invocation]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if found:
        facts = {"among them": "\n".join(record.id for record in found[:5])}
        raise NoInvocation(f"{len(found)} invocations start with `{invocation}`", facts=facts, hint="write more of it")
    close = nearest(invocation, [record.id for record in known])
    hint = f"did you mean `{close}`?" if close else "`gsum log` lists the invocations"
    raise NoInvocation(f"principal `{principal}` has no invocation `{invocation}`", hint=hint)


def own_invocations(store: Store, principal: str) -> Iterator[InvocationRecord]:
    """Yield the invocations of a principal, newest first; other principals' are none of its business."""
    limit, seen = _FIRST_PAGE, 0
    while True:
        page = store.invocations(limit)
        yield from (record for record in page[seen:] if record.principal == principal)
        if len(page) < limit:
            return
        limit, seen = limit * 4, len(page)


def group_events(store: Store, invocation: str, group: str) -> list[AnyEvent]:
    """Return the events of an invocation that name targets of a dossier: of 100,000 others, none is decoded."""
    named = msgspec.json.encode(f"{group}/")[:-1]  # as it stands at the start of a label in an encoded event
    return [decode_event(event) for event in store.events_holding(invocation, named)]


def _events(store: Store, invocation: str) -> list[AnyEvent]:
    return [decode_event(event) for event in store.events(invocation)]


class _Past:
    """The side of a comparison that a past build's events give (a `gsum.engine.explain.compare.Side`)."""

    def __init__(self, record: InvocationRecord, events: Sequence[AnyEvent]) -> None:
        self._record = record
        self.keys: dict[str, Key] = {}
        self._previous: dict[str, Key | None] = {}
        self._failed: set[str] = set()
        self._children: dict[str, tuple[str, ...]] = {}
        for event in events:
            if isinstance(event, ActionCached | ActionSkipped | ActionFinished | ActionFailed):
                self.keys[event.label] = event.key
            if isinstance(event, ActionFinished | ActionFailed):
                self._previous[event.label] = event.previous
            if isinstance(event, ActionFailed):
                self._failed.add(event.label)

    @property
    def runs(self) -> Mapping[str, Key | None]:
        """What ran, in order, each with the key before it."""
        return self._previous

    def name_children(self, records: Records) -> None:
        """Find the labels of children: keys hold none, the events of the same build do."""
        labels: dict[tuple[str, Key], str] = {}
        for label, key in self.keys.items():
            labels.setdefault((_group(label), key), label)
        for label, key in tuple(self.keys.items()):
            group = _group(label)
            found = [labels.get((group, child), f"{group}/{child[:12]}") for child in records.children(key)]
            self.keys |= dict(zip(found, records.children(key), strict=True))
            self._children[label] = tuple(found)

    def tops(self) -> list[str]:
        """Return what ran and is below nothing else that ran."""
        below = {child for label in self._previous for child in self._children.get(label, ())}
        return [label for label in self._previous if label not in below]

    def below(self, label: str) -> frozenset[str]:
        """Return a label and all below it that was visited."""
        seen, rest = {label}, [label]
        while rest:
            new = [child for child in self._children.get(rest.pop(), ()) if child not in seen]
            seen.update(new)
            rest += new
        return frozenset(seen)

    def key(self, label: str) -> Key:
        """Return a target's key."""
        return self.keys[label]

    def children(self, label: str) -> tuple[str, ...]:
        """Return the labels below a target, in slot order."""
        return self._children.get(label, ())

    def latest(self, label: str) -> Key | None:
        """Return what a label had been built as before; of one that did not run, its key."""
        return self._previous.get(label, self.keys[label])

    def unbuilt(self, label: str) -> Cause:  # noqa: ARG002 - the protocol's
        """Return the cause of a target that was never built before."""
        text = f"never built before for principal `{self._record.principal}`"
        return Cause(CauseKind.NEVER_BUILT, self._record.principal, text)

    def unchanged(self, label: str) -> Cause:
        """Return why a target ran although its key did not change."""
        if self._record.full:
            return Cause(CauseKind.FORCED, self._record.id, "a full build: no entry was read")
        return Cause(CauseKind.INCOMPLETE, label, f"entry of `{label}` incomplete: a part of it was missing")

    def unknown(self, label: str) -> Cause:
        """Return the cause of a target that can't be compared."""
        if label in self._failed:
            text = f"`{label}` failed, so that its preimage was not kept; as declared now: `gsum explain-miss {label}`"
            return Cause(CauseKind.UNKNOWN, label, text)
        return Cause(CauseKind.UNKNOWN, label, f"a preimage of `{label}` is lost: what changed can't be told")


def _group(label: str) -> str:
    return label.rpartition("/")[0]


def _not_visited(record: InvocationRecord, label: str, past: _Past) -> NoInvocation:
    close = nearest(label, past.keys)
    hint = f"did you mean `{close}`?" if close else f"`gsum log --invocation {record.id}` lists what ran"
    facts = {"invocation": record.id, "asked for": " ".join(record.patterns)}
    return NoInvocation(f"`{label}` was not visited by that build", facts=facts, hint=hint)
