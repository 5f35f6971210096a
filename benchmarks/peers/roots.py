"""Print the bytes (as hex) of every root that a peers workspace was last built as: `python roots.py DIR`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gsum.engine.universe import load_universe
from gsum.store.local import open_store


def main() -> None:
    """Read the current root results of a workspace from its store."""
    folder = Path(sys.argv[1])
    universe = load_universe(folder, ["//bench:all"])
    keys = {label: universe.keys.actions[label].key for label in universe.graph.requested}
    roots = {}
    with open_store(folder / ".gsum", create=False, read_only=True) as store:
        entries = store.entries(list(keys.values()))
        for label, key in keys.items():
            if key in entries:
                result = json.loads(store.get_blob(entries[key].result))
                roots[label] = result["claims"][0]["values"]["out"]
    print(json.dumps(roots))


if __name__ == "__main__":
    main()
