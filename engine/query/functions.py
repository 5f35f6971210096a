"""The functions of the query language: what each takes, and what it makes of it. Pure. A new function is a new row."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection

import msgspec

from gsum.engine.query.graph import TargetGraph
from gsum.engine.query.walk import all_paths, reach, some_path


class Parameter(enum.Enum):
    """What an argument must be."""

    NODES = "an expression"
    REGEX = "a regular expression"
    DEPTH = "a number"


class Arguments(msgspec.Struct, frozen=True):
    """The evaluated arguments of one call."""

    nodes: tuple[frozenset[int], ...]
    regex: re.Pattern[str] | None = None
    depth: int | None = None


class Function(msgspec.Struct, frozen=True):
    """A function. The last `optional` of its parameters may be left out; `ordered`: its result has an order."""

    usage: str
    parameters: tuple[Parameter, ...]
    apply: Callable[[TargetGraph, Arguments], Collection[int]]
    optional: int = 0
    ordered: bool = False


def _deps(graph: TargetGraph, given: Arguments) -> frozenset[int]:
    return reach(graph.deps, given.nodes[0], given.depth)


def _rdeps(graph: TargetGraph, given: Arguments) -> frozenset[int]:
    above = reach(graph.rdeps, given.nodes[1])  # what the universe holds elsewhere need not be walked
    universe = reach(graph.deps, given.nodes[0] & above, within=above)
    return reach(graph.rdeps, given.nodes[1], given.depth, within=universe)


def _allpaths(graph: TargetGraph, given: Arguments) -> frozenset[int]:
    return all_paths(graph.deps, graph.rdeps, given.nodes[0], given.nodes[1])


def _somepath(graph: TargetGraph, given: Arguments) -> tuple[int, ...]:
    return some_path(graph.deps, sorted(given.nodes[0]), given.nodes[1])


def _kind(graph: TargetGraph, given: Arguments) -> frozenset[int]:
    return _matching(graph.kinds, given)


def _filter(graph: TargetGraph, given: Arguments) -> frozenset[int]:
    return _matching(graph.labels, given)


def _matching(texts: tuple[str, ...], given: Arguments) -> frozenset[int]:
    assert given.regex is not None
    search = given.regex.search
    return frozenset(node for node in given.nodes[0] if search(texts[node]))


_N, _R, _D = Parameter.NODES, Parameter.REGEX, Parameter.DEPTH

FUNCTIONS: dict[str, Function] = {
    "deps": Function("deps(x[, depth])", (_N, _D), _deps, optional=1),
    "rdeps": Function("rdeps(universe, x[, depth])", (_N, _N, _D), _rdeps, optional=1),
    "allpaths": Function("allpaths(from, to)", (_N, _N), _allpaths),
    "somepath": Function("somepath(from, to)", (_N, _N), _somepath, ordered=True),
    "kind": Function("kind(regex, x)", (_R, _N), _kind),
    "filter": Function("filter(regex, x)", (_R, _N), _filter),
}
