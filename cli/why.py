"""Why a target is stale, in a few lines. Prints nothing."""

from __future__ import annotations

from gsum.engine.documents import Documents
from gsum.engine.explain import explain
from gsum.engine.universe import Universe
from gsum.store.api import Store

MOST_CAUSES = 5


def why_stale(universe: Universe, store: Store, documents: Documents, label: str) -> list[str]:
    """Return the root causes for which a stale target would run again, a line each, and how to see more of many."""
    causes = [cause.text for cause in explain(universe, store, documents, label, way_back=False).causes]
    if len(causes) <= MOST_CAUSES:
        return causes or ["its sources or declarations changed since it was built"]
    return [*causes[:MOST_CAUSES], f"and {len(causes) - MOST_CAUSES} more: gsum explain-miss {label}"]
