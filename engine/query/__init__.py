"""Queries over the target graph, in Bazel's query language: parse, evaluate, render. Pure; opens no store."""

from gsum.engine.query.evaluate import Selection, evaluate, needs_store, run_query
from gsum.engine.query.facts import Facts, Table
from gsum.engine.query.graph import TargetGraph, target_graph
from gsum.engine.query.lexer import QueryError
from gsum.engine.query.parser import parse

__all__ = [
    "Facts",
    "QueryError",
    "Selection",
    "Table",
    "TargetGraph",
    "evaluate",
    "needs_store",
    "parse",
    "run_query",
    "target_graph",
]
