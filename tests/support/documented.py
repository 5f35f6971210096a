"""Holds JSON documents to cli/JSON.md: what is printed is what is documented, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

DOCUMENTATION = Path(__file__).parents[2] / "cli/JSON.md"


def documented():
    """Paths by section, without what all documents hold."""
    sections = re.split(r"^## (.+)$", DOCUMENTATION.read_text(), flags=re.MULTILINE)[1:]
    found = {}
    for name, body in zip(sections[::2], sections[1::2], strict=True):
        keys = "".join(
            re.sub(r"(?<=[`\]]): [^;\n]*", "", line) for line in re.findall(r"^(?:- |  ).*\n", body, re.MULTILINE)
        )
        found[name] = set(re.findall(r"`([a-z_\[\].*0-9]+)`", keys))
    return found


def paths(value, maps, prefix=""):
    """The paths of a document; `maps` are those whose names are data. An empty list or map counts as its elements."""
    if isinstance(value, dict) and prefix in maps:
        return {f"{prefix}.*"}
    if isinstance(value, dict):
        return set().union(*(paths(item, maps, f"{prefix}.{name}" if prefix else name) for name, item in value.items()))
    if isinstance(value, list):
        return set().union(*(paths(item, maps, f"{prefix}[]") for item in value)) if value else {f"{prefix}[]"}
    return {prefix}


def check(section, *documents):
    wanted = documented()[section]
    maps = {path.removesuffix(".*") for path in wanted if path.endswith(".*")}
    printed = set().union(*(paths(document, maps) for document in documents)) - {"schema", "command"}
    # A list that was empty in one document and is not in another is known by its elements' keys.
    printed -= {
        path for path in printed if path.endswith("[]") and any(other.startswith(f"{path}.") for other in printed)
    }
    assert printed == wanted
    for document in documents:
        assert document["schema"] == 1
