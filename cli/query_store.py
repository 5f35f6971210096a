"""Queries that ask what the store holds: loads what plain queries do without. Prints nothing."""

from __future__ import annotations

from gsum.cli.context import Config, reading_store
from gsum.engine.query import Selection, Table, TargetGraph, evaluate, target_graph
from gsum.engine.query.demand import needed_dossiers
from gsum.engine.query.load import Unread, named, patterns_of
from gsum.engine.query.stored import StoredFacts
from gsum.engine.query.syntax import Expression
from gsum.engine.reading import OneReading
from gsum.engine.universe import surrounding_universe
from gsum.rules.loader import load_workspace


def evaluate_stored(config: Config, text: str, expression: Expression) -> tuple[TargetGraph, Selection | Table]:
    """Evaluate a parsed query over the documents, keys and entries of this moment; return it with its graph."""
    root = config.root
    workspace = load_workspace(root)
    needed = needed_dossiers(expression, lambda word: named(workspace, word))
    patterns = patterns_of(workspace, needed)
    documents = OneReading(workspace)
    universe = surrounding_universe(
        workspace, patterns, principal=config.principal, toolchain=config.toolchain, digests=documents
    )
    graph = target_graph(workspace, universe.graph, Unread(workspace, needed))
    with reading_store(config, root) as store:
        facts = StoredFacts(universe, store, documents)
        return graph, evaluate(graph, text, expression, facts)
