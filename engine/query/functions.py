"""The functions of the query language: what each takes, and what it makes of it. Pure. A new function is a new row."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection

import msgspec

from gsum.engine.query.facts import Facts, Passage, Table
from gsum.engine.query.graph import TargetGraph
from gsum.engine.query.walk import all_paths, descend, reach, some_path

STATES = ("VALID", "PARTIAL", "INVALID", "INELIGIBLE", "STALE", "NOT_BUILT")
"""What `status` takes, joined with `|`."""


class Parameter(enum.Enum):
    """What an argument must be."""

    NODES = "an expression"
    REGEX = "a regular expression"
    DEPTH = "a number"
    ATTRIBUTE = "the name of an attribute"
    STATES = "states, as `VALID|PARTIAL`,"
    PASSAGE = "a document, as `//source:dossier/DOC[0:80]`,"


NODE_PARAMETERS = (Parameter.NODES, Parameter.PASSAGE)
"""Arguments that name nodes."""


class Reach(enum.Enum):
    """How the dossiers of a result follow from those of the arguments."""

    SAME = "same"
    DOWN = "down"
    """Those of the argument, and what all dossiers share."""
    UP = "up"
    """Those of both arguments; of the first alone where the second has what all share."""
    WHOLE = "whole"
    """As `UP`, and no part of the result can be told without the rest."""


class Arguments(msgspec.Struct, frozen=True):
    """The evaluated arguments of one call; `facts` is there for functions that need the store."""

    nodes: tuple[frozenset[int], ...] = ()
    regex: re.Pattern[str] | None = None
    depth: int | None = None
    attribute: str = ""
    states: frozenset[str] = frozenset()
    passage: Passage | None = None
    facts: Facts | None = None

    @property
    def stored(self) -> Facts:
        """The facts, which the evaluator has seen to."""
        assert self.facts is not None
        return self.facts


class Function(msgspec.Struct, frozen=True):
    """A function. The last `optional` of its parameters may be left out; a set that is left out is of all targets.

    `ordered`: its result has an order. `stored`: it needs facts. `table`: it gives rows, so that it can only stand
    outermost.
    """

    usage: str
    parameters: tuple[Parameter, ...]
    apply: Callable[[TargetGraph, Arguments], Collection[int]] | None = None
    optional: int = 0
    reach: Reach = Reach.SAME
    ordered: bool = False
    stored: bool = False
    table: Callable[[TargetGraph, Arguments], Table] | None = None


def _deps(graph: TargetGraph, given: Arguments) -> frozenset[int]:
    return reach(graph.deps, given.nodes[0], given.depth)


def _rdeps(graph: TargetGraph, given: Arguments) -> frozenset[int]:
    above = reach(graph.rdeps, given.nodes[1])  # what the universe holds elsewhere need not be walked
    universe = descend(graph.deps, graph.rdeps, given.nodes[0] & above, above)
    if given.depth is None:
        return universe  # what leads down to x does so by nodes that are below itself, and so in the universe
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


def _attr(graph: TargetGraph, given: Arguments) -> frozenset[int]:
    assert given.regex is not None
    values = ((node, graph.attributes(node).get(given.attribute)) for node in given.nodes[0])
    return frozenset(node for node, value in values if value is not None and given.regex.search(value))


def _siblings(graph: TargetGraph, given: Arguments) -> frozenset[int]:
    groups = {group_of(graph.labels[node]) for node in given.nodes[0]}
    return frozenset(node for group in groups for node in graph.starting_with(group))


def group_of(label: str) -> str:
    """Return what a label has in common with its siblings: up to its part, or where it has none, its package."""
    package, colon, rest = label.partition(":")
    name, slash, _ = rest.partition("/")
    if f"{package}{colon}" in ("//prompt:", "//schema:", "//toolchain:"):
        return package + colon
    return package + colon + name + slash


def _labels(graph: TargetGraph, nodes: Collection[int]) -> list[str]:
    """Return the labels of those nodes that are actions, sorted."""
    return [graph.labels[node] for node in sorted(graph.actions.intersection(nodes))]


def _in_states(graph: TargetGraph, nodes: frozenset[int], facts: Facts, wanted: Collection[str]) -> frozenset[int]:
    states = facts.states(_labels(graph, nodes))
    return frozenset(graph.numbers[label] for label, state in states.items() if state in wanted)


def _stale(graph: TargetGraph, given: Arguments) -> frozenset[int]:
    return _in_states(graph, given.nodes[0], given.stored, ("STALE",))


def _cached(graph: TargetGraph, given: Arguments) -> frozenset[int]:
    return _in_states(graph, given.nodes[0], given.stored, STATES[:4])


def _status(graph: TargetGraph, given: Arguments) -> frozenset[int]:
    return _in_states(graph, given.nodes[0], given.stored, given.states)


def _cites(graph: TargetGraph, given: Arguments) -> frozenset[int]:
    assert given.passage is not None
    above = _labels(graph, reach(graph.rdeps, given.nodes[0]))
    return frozenset(graph.numbers[label] for label in given.stored.citing(given.passage, above))


def _uncited(graph: TargetGraph, given: Arguments) -> Table:
    assert given.passage is not None
    above = reach(graph.rdeps, given.nodes[0])
    return given.stored.uncited(given.passage, _labels(graph, above & given.nodes[1]))


def _generations(graph: TargetGraph, given: Arguments) -> Table:
    return given.stored.generations(_labels(graph, given.nodes[0]))


def _cost(graph: TargetGraph, given: Arguments) -> Table:
    return given.stored.cost(_labels(graph, given.nodes[0]))


_N, _R, _D, _A, _S, _P = Parameter
_UP, _DOWN, _WHOLE = Reach.UP, Reach.DOWN, Reach.WHOLE

FUNCTIONS: dict[str, Function] = {
    "deps": Function("deps(x[, depth])", (_N, _D), _deps, optional=1, reach=_DOWN),
    "rdeps": Function("rdeps(universe, x[, depth])", (_N, _N, _D), _rdeps, optional=1, reach=_UP),
    "allpaths": Function("allpaths(from, to)", (_N, _N), _allpaths, reach=_UP),
    "somepath": Function("somepath(from, to)", (_N, _N), _somepath, reach=_WHOLE, ordered=True),
    "kind": Function("kind(regex, x)", (_R, _N), _kind),
    "filter": Function("filter(regex, x)", (_R, _N), _filter),
    "attr": Function("attr(name, regex, x)", (_A, _R, _N), _attr),
    "siblings": Function("siblings(x)", (_N,), _siblings),
    "stale": Function("stale([x])", (_N,), _stale, optional=1, stored=True),
    "cached": Function("cached([x])", (_N,), _cached, optional=1, stored=True),
    "status": Function("status(VALID|PARTIAL, x)", (_S, _N), _status, stored=True),
    "cites": Function("cites(DOC[start:end])", (_P,), _cites, stored=True),
    "uncited": Function("uncited(DOC[, x])", (_P, _N), optional=1, reach=_WHOLE, stored=True, table=_uncited),
    "generations": Function("generations(x)", (_N,), stored=True, table=_generations),
    "cost": Function("cost(x)", (_N,), stored=True, table=_cost),
}
