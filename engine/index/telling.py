"""What an index says after a build, from what it said before and what was looked at. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gsum.engine.index.records import ROOT, Served, Standing
from gsum.rules.graph import ActionGraph


def kept_slots(slots: Mapping[str, Served], changed: Mapping[str, set[str]]) -> dict[str, Served]:
    """Return slots without the dossiers that changed; `changed` is by package, one that is gone is not in it."""
    kept = {}
    for slot, served in slots.items():
        package = slot.partition(" ")[0]
        if package in changed:
            gone = changed[package]
            dossiers = {name: one for name, one in served.dossiers.items() if name not in gone}
            kept[slot] = msgspec.structs.replace(served, dossiers=dossiers)
    return kept


def told_slots(
    slots: dict[str, Served],
    names: Mapping[str, str],
    declared: Mapping[str, bytes],
    graph: ActionGraph,
    served: set[str],
) -> dict[str, Served]:
    """Return slots with what a build found of the dossiers in its graph.

    `names` gives the slot of each package that is indexed; `served` the labels asked for that the store serves.
    """
    parts: dict[tuple[str, str], list[str]] = {}
    for label, action in graph.actions.items():
        if action.package in names:
            parts.setdefault((action.package, action.dossier), []).append(label)
    dossiers: dict[str, dict[str, Standing]] = {}
    shapes: dict[str, dict[tuple[str, ...], int]] = {}
    for (package, dossier), labels in parts.items():
        slot = names[package]
        if slot not in dossiers:
            before = slots.get(slot)
            same = before is not None and before.declared == declared[slot]
            dossiers[slot] = dict(before.dossiers) if before is not None and same else {}
            known = before.shapes if before is not None and same else ()
            shapes[slot] = {shape: place for place, shape in enumerate(known)}
        dossiers[slot].pop(dossier, None)
        if f"//{package}:{dossier}/{ROOT}" in served:
            shape = tuple(label.rpartition("/")[2] for label in labels)
            place = shapes[slot].setdefault(shape, len(shapes[slot]))
            dossiers[slot][dossier] = Standing(served.issuperset(labels), place)
    return slots | {slot: Served(declared[slot], tuple(shapes[slot]), found) for slot, found in dossiers.items()}
