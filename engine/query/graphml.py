"""Results of queries as GraphML, by networkx: the one module of queries that imports it, when it is asked for. Pure."""

from __future__ import annotations

import networkx as nx

from gsum.engine.query.evaluate import Selection
from gsum.engine.query.graph import TargetGraph
from gsum.engine.query.output import edge_pairs


def graphml_lines(graph: TargetGraph, selection: Selection) -> tuple[str, ...]:
    """Return a directed graph: nodes with their kind and attributes, edges to what a node depends on."""
    drawn: nx.DiGraph[str] = nx.DiGraph()
    for label in selection.labels:
        drawn.add_node(label, **graph.attributes(graph.numbers[label]))
    drawn.add_edges_from(edge_pairs(graph, selection))
    return tuple(nx.generate_graphml(drawn))
