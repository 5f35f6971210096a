"""What an index says after a build, from what it said before and what was looked at. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from gsum.engine.index.records import ROOT, Index, Served, Source, empty_source, mark_of
from gsum.rules.graph import ActionGraph


def kept_slots(
    index: Index, packages: Mapping[str, str], sources: Mapping[str, Source], changed: Mapping[str, set[str]]
) -> dict[str, Served]:
    """Return the slots of `index` for `sources` as they are now, without the dossiers that changed.

    `packages` gives the source of each package that there is; `changed` is by source.
    """
    kept = {}
    for slot, served in index.served.items():
        source = packages.get(slot.partition(" ")[0], "")
        if source in sources and source in index.sources:
            marks = _realigned(served.marks, index.sources[source], sources[source], changed.get(source, set()))
            kept[slot] = Served(served.declared, served.shapes, marks)
    return kept


def told_slots(
    slots: Mapping[str, Served],
    names: Mapping[str, str],
    declared: Mapping[str, bytes],
    sources: Mapping[str, Source],
    graph: ActionGraph,
    served: set[str],
) -> dict[str, Served]:
    """Return slots with what a build found of the dossiers in its graph.

    `names` gives the slot of each package that is indexed, `sources` the source of each; `served` the labels asked for
    that the store serves.
    """
    parts: dict[tuple[str, str], list[str]] = {}
    for label, action in graph.actions.items():
        if action.package in names:
            parts.setdefault((action.package, action.dossier), []).append(label)
    requested = set(graph.requested)
    told = dict(slots)
    shapes: dict[str, dict[tuple[str, ...], int]] = {}
    for (package, dossier), labels in parts.items():
        slot, source = names[package], sources.get(package, _NOTHING)
        place = source.place(dossier)
        if place is None:
            continue
        if slot not in shapes:
            before = told.get(slot)
            known = before is not None and before.declared == declared[slot]
            shapes[slot] = {shape: number for number, shape in enumerate(before.shapes)} if before and known else {}
            if not known:
                told[slot] = Served(declared[slot], (), array("I", [0]) * len(source.names))
        root = f"//{package}:{dossier}/{ROOT}"
        if root not in requested:  # what is known of it holds as long as its dossier is as it was
            continue
        mark = 0
        if root in served:
            shape = tuple(label.rpartition("/")[2] for label in labels)
            number = shapes[slot].setdefault(shape, len(shapes[slot]))
            mark = mark_of(number, every_part=served.issuperset(labels))
        told[slot].marks[place] = mark
    return told | {slot: Served(told[slot].declared, tuple(found), told[slot].marks) for slot, found in shapes.items()}


_NOTHING = empty_source()


def _realigned(marks: Sequence[int], before: Source, now: Source, changed: set[str]) -> array[int]:
    """Return marks for the dossiers of `now`: as before where one is known and has not changed, else 0."""
    if now.names == before.names:
        result = array("I", marks)
    else:
        places = [before.place(name) for name in now.names]
        result = array("I", [0 if place is None else marks[place] for place in places])
    for place in map(now.place, changed):
        if place is not None:
            result[place] = 0
    return result
