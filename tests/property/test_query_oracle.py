"""Queries on random graphs against networkx and Python's own sets."""

from __future__ import annotations

import itertools
import random
import re

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from gsum.engine.query import Selection, TargetGraph, run_query
from gsum.engine.query.output import dot_lines, tree_lines

KINDS = ("map", "reduce", "document", "prompt")


class Oracle:
    """A random acyclic graph, as gsum's and as networkx's, and a random query with what it must select."""

    def __init__(self, seed: int, nodes: int) -> None:
        self.random = random.Random(seed)
        self.labels = [f"//{self.random.choice('pqr')}:n/{number:02}" for number in range(nodes)]
        self.kinds = {label: self.random.choice(KINDS) for label in self.labels}
        density = self.random.choice((0.05, 0.2, 0.6))
        self.edges = {
            label: [other for other in self.labels[place + 1 :] if self.random.random() < density]
            for place, label in enumerate(self.labels)
        }
        self.graph = TargetGraph(self.kinds, self.edges)
        self.oracle = nx.DiGraph()
        self.oracle.add_nodes_from(self.labels)
        self.oracle.add_edges_from((label, other) for label, below in self.edges.items() for other in below)

    def expression(self, depth: int) -> tuple[str, set[str]]:
        """Return a query in full parentheses and the labels it selects."""
        if depth == 0:
            label = self.random.choice(self.labels)
            return label, {label}
        left, a = self.expression(depth - 1)
        right, b = self.expression(depth - 1)
        bound = self.random.choice((None, 0, 1, 2, 3))
        suffix = "" if bound is None else f", {bound}"
        pattern = self.random.choice(("map", "m|d", "^r", "//p", "n/.[135]$", "prompt"))
        match self.random.randrange(10):
            case 0:
                return f"({left} + {right})", a | b
            case 1:
                return f"({left} - {right})", a - b
            case 2:
                return f"({left} intersect {right})", a & b
            case 3:
                return f"deps({left}{suffix})", self.within(self.oracle, a, bound)
            case 4:
                universe = self.oracle.subgraph(self.within(self.oracle, a, None))
                return f"rdeps({left}, {right}{suffix})", self.within(universe.reverse(), b & set(universe), bound)
            case 5:
                return f"allpaths({left}, {right})", self.between(a, b)
            case 6:
                return f"kind('{pattern}', {left})", {x for x in a if re.search(pattern, self.kinds[x])}
            case 7:
                return f"filter('{pattern}', {left})", {x for x in a if re.search(pattern, x)}
            case 8:
                return f"(let v = {left} in $v ^ ({right} + $v))", a
            case _:
                words = self.random.sample(self.labels, min(3, len(self.labels)))
                return f"(set({' '.join(words)}) ^ {left})", a & set(words)

    @staticmethod
    def within(graph: nx.DiGraph, start: set[str], depth: int | None) -> set[str]:
        found: set[str] = set()
        for label in start:
            found |= nx.single_source_shortest_path_length(graph, label, cutoff=depth).keys()
        return found

    def between(self, start: set[str], end: set[str]) -> set[str]:
        below = set().union(*({x} | nx.descendants(self.oracle, x) for x in start)) if start else set()
        above = set().union(*({x} | nx.ancestors(self.oracle, x) for x in end)) if end else set()
        return below & above


oracles = st.builds(Oracle, st.integers(0, 2**32), st.integers(1, 14))


@given(oracles, st.integers(1, 4))
@settings(max_examples=300, deadline=None)
def test_every_expression_selects_what_networkx_does(oracle: Oracle, depth: int) -> None:
    text, expected = oracle.expression(depth)
    assert list(run_query(oracle.graph, text).labels) == sorted(expected), text


@given(oracles)
@settings(max_examples=200, deadline=None)
def test_somepath_is_a_shortest_path_where_there_is_one(oracle: Oracle) -> None:
    left, starts = oracle.expression(1)
    right, ends = oracle.expression(1)
    path = run_query(oracle.graph, f"somepath({left}, {right})").labels
    lengths = [
        nx.shortest_path_length(oracle.oracle, a, b) for a in starts for b in ends if nx.has_path(oracle.oracle, a, b)
    ]
    if not lengths:
        assert path == ()
        return
    assert len(path) == min(lengths) + 1
    assert path[0] in starts
    assert path[-1] in ends
    assert all(below in oracle.edges[above] for above, below in itertools.pairwise(path))


@given(st.integers(0, 2**32), st.lists(st.sampled_from(["+", "-", "^"]), min_size=1, max_size=6))
@settings(max_examples=200, deadline=None)
def test_operators_fold_from_the_left_with_equal_precedence(seed: int, operators: list[str]) -> None:
    oracle = Oracle(seed, 8)
    sets = [set(oracle.random.sample(oracle.labels, 4)) for _ in range(len(operators) + 1)]
    words = [f"set({' '.join(sorted(chosen))})" for chosen in sets]
    text, expected = words[0], sets[0]
    for operator, word, chosen in zip(operators, words[1:], sets[1:], strict=True):
        text += f" {operator} {word}"
        expected = {"+": expected | chosen, "-": expected - chosen, "^": expected & chosen}[operator]
    assert list(run_query(oracle.graph, text).labels) == sorted(expected)


@given(oracles)
@settings(max_examples=100, deadline=None)
def test_tree_and_dot_show_every_result_and_every_edge_among_them(oracle: Oracle) -> None:
    chosen = tuple(sorted(oracle.random.sample(oracle.labels, oracle.random.randint(1, len(oracle.labels)))))
    kept = nx.DiGraph(oracle.oracle.subgraph(chosen))
    selection = Selection(chosen)
    dot = nx.DiGraph()
    for line in list(dot_lines(oracle.graph, selection))[2:-1]:
        names = re.findall(r'"([^"]*)"', line)
        dot.add_node(names[0]) if len(names) == 1 else dot.add_edge(*names)
    assert set(dot.nodes) == set(kept.nodes)
    assert set(dot.edges) == set(kept.edges)
    shown = nx.DiGraph()
    above: list[str] = []
    for line in tree_lines(oracle.graph, selection):
        depth, label = line.index("//") // 3, line[line.index("//") :].split(" ")[0]
        above[depth:] = [label]
        shown.add_node(label)
        if depth:
            shown.add_edge(above[depth - 1], label)
    assert set(shown.nodes) == set(kept.nodes)
    assert set(shown.edges) == set(kept.edges)
