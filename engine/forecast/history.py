"""What actions took in earlier builds of a principal: read from the newest builds' own accounts. Reads the store.

Each build ends its journal with an account of itself, so that history costs one row a build, whatever it ran.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gsum.engine.events import Accounted, decode_event
from gsum.engine.forecast.model import Group, Pace, Sample
from gsum.rules.graph import Action
from gsum.store.api import Store
from gsum.store.records import InvocationRecord, InvocationStatus

MOST_BUILDS = 64
"""How many of the newest builds are looked at."""


class Work(msgspec.Struct, frozen=True):
    """Actions that may ask a model, counted by group, and all that would run. `forced`: nothing is cut off."""

    groups: dict[Group, int]
    actions: int
    forced: bool = False


class Past(msgspec.Struct, frozen=True):
    """What a group's actions did in earlier builds."""

    generated: int = 0
    cut_off: int = 0
    samples: tuple[Sample, ...] = ()


class History(msgspec.Struct, frozen=True):
    """Earlier builds by group, and how the clock ran in those that finished, the newest first."""

    groups: dict[Group, Past]
    paces: tuple[Pace, ...] = ()

    def past(self, group: Group) -> Past | None:
        """Return the past of a group: its own, else that of its like in other packages, else the costs, without the
        rate of cut-offs, of the other age; null where there is none.
        """
        for candidate in (group, msgspec.structs.replace(group, package="")):
            found = self._merged(candidate)
            if found.samples or found.cut_off:
                return found
        other = msgspec.structs.replace(group, rebuild=not group.rebuild)
        for candidate in (other, msgspec.structs.replace(other, package="")):
            found = self._merged(candidate)
            if found.samples:
                return Past(samples=found.samples)
        return None

    def _merged(self, wanted: Group) -> Past:
        """Return the past of a group, or with an empty package of those in all packages."""
        if wanted.package:
            return self.groups.get(wanted, Past())
        alike = [past for group, past in self.groups.items() if msgspec.structs.replace(group, package="") == wanted]
        return Past(
            sum(past.generated for past in alike),
            sum(past.cut_off for past in alike),
            tuple(sample for past in alike for sample in past.samples),
        )


def work_of(actions: Iterable[Action], previous: Iterable[bool], *, forced: bool = False) -> Work:
    """Count actions by group; `previous` says of each whether its label was built before.

    Actions without a toolchain, and leaves whose document may not be read, ask no model.
    """
    return grouped([group_of(*pair) for pair in zip(actions, previous, strict=True)], forced=forced)


def grouped(groups: Sequence[Group | None], *, forced: bool) -> Work:
    """Count actions of which each is in a group, or asks no model."""
    counts = Counter(groups)
    return Work({group: count for group, count in counts.items() if group is not None}, len(groups), forced)


def group_of(action: Action, rebuild: bool) -> Group | None:
    """Return the group of an action, null where it asks no model."""
    if action.prompt is None or action.toolchain is None:
        return None
    if action.scope is not None and not action.scope.readable:
        return None
    return Group(action.package, action.kind.value, action.toolchain, rebuild)


def read_history(store: Store, principal: str) -> History:
    """Read what the newest builds of a principal say of themselves. Builds that were killed say nothing."""
    found: dict[Group, Past] = {}
    paces: list[Pace] = []
    for record in _builds(store, principal):
        account = account_of(store, record)
        if account is not None and account.complete and account.actual.seconds and record.seconds is not None:
            paces.append(Pace(account.actual.generations, account.actual.seconds, record.seconds))
        for outcomes in () if account is None else account.outcomes:
            past = found.get(outcomes.group, Past())
            counted = 0 if record.full else 1  # a full build cuts nothing off: it tells costs and no rates
            found[outcomes.group] = Past(
                past.generated + counted * outcomes.generated,
                past.cut_off + counted * outcomes.cut_off,
                (*past.samples, *outcomes.samples),
            )
    return History(found, tuple(paces))


def account_of(store: Store, record: InvocationRecord) -> Accounted | None:
    """Return a build's account of itself, null where it has none."""
    last = store.last_events(record.id)
    try:
        events = [decode_event(data) for data in last]
    except msgspec.MsgspecError:
        return None
    return next((event for event in events if isinstance(event, Accounted)), None)


def _builds(store: Store, principal: str) -> Iterator[InvocationRecord]:
    for record in store.invocations(MOST_BUILDS):
        if record.principal == principal and record.status is not InvocationStatus.RUNNING:
            yield record
