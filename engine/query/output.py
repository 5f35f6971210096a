"""Results of queries as text and as data: labels, tree, records, dot. Pure; edges are those among the results."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from gsum.engine.query.evaluate import Selection
from gsum.engine.query.facts import Cell, Table
from gsum.engine.query.graph import TargetGraph

SEEN = " (see above)"


class Output(enum.Enum):
    """The forms a result can be printed in."""

    LABEL = "label"
    LABEL_KIND = "label_kind"
    TREE = "tree"
    JSON = "json"
    JSONL = "jsonl"
    DOT = "dot"
    GRAPHML = "graphml"


TABLE_OUTPUTS = (Output.LABEL, Output.JSON, Output.JSONL)
"""The forms in which rows can be printed."""


def label_lines(selection: Selection) -> tuple[str, ...]:
    """Return one label a line."""
    return selection.labels


def label_kind_lines(graph: TargetGraph, selection: Selection) -> tuple[str, ...]:
    """Return one kind and label a line."""
    return tuple(f"{graph.kinds[graph.numbers[label]]} {label}" for label in selection.labels)


def row_records(table: Table) -> list[dict[str, Cell]]:
    """Return each row by the names of its columns."""
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def edge_pairs(graph: TargetGraph, selection: Selection) -> list[tuple[str, str]]:
    """Return the edges among the results, from what depends to what it depends on."""
    return [(label, other) for label, below in _edges(graph, selection).items() for other in below]


def node_records(graph: TargetGraph, selection: Selection) -> list[dict[str, object]]:
    """Return each result with its kind and those results that it depends on directly."""
    edges = _edges(graph, selection)
    return [
        {"label": label, "kind": graph.kinds[graph.numbers[label]], "deps": edges[label]} for label in selection.labels
    ]


def dot_lines(graph: TargetGraph, selection: Selection) -> Iterator[str]:
    """Yield a Graphviz digraph."""
    yield "digraph gsum {"
    yield "  node [shape=box];"
    for label in selection.labels:
        yield f"  {_quoted(label)};"
    for label, other in edge_pairs(graph, selection):
        yield f"  {_quoted(label)} -> {_quoted(other)};"
    yield "}"


def tree_lines(graph: TargetGraph, selection: Selection) -> Iterator[str]:
    """Yield the results as trees, each below what depends on it; what was printed in full before is marked."""
    edges = _edges(graph, selection)
    children = {other for below in edges.values() for other in below}
    printed: set[str] = set()
    for root in selection.labels:
        if root in children:
            continue
        stack: list[tuple[str, str, str]] = [(root, "", "")]
        while stack:
            label, lead, follow = stack.pop()
            again = label in printed and bool(edges[label])
            yield lead + label + (SEEN if again else "")
            if again:
                continue
            printed.add(label)
            below = edges[label]
            last = len(below) - 1
            for place, other in reversed(list(enumerate(below))):
                branch, rest = ("└─ ", "   ") if place == last else ("├─ ", "│  ")
                stack.append((other, follow + branch, follow + rest))


def _edges(graph: TargetGraph, selection: Selection) -> dict[str, list[str]]:
    chosen = {graph.numbers[label] for label in selection.labels}
    return {
        label: [graph.labels[other] for other in graph.deps[graph.numbers[label]] if other in chosen]
        for label in selection.labels
    }


def _quoted(label: str) -> str:
    return '"' + label.replace("\\", "\\\\").replace('"', '\\"') + '"'
