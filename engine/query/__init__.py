"""Queries over the target graph, in Bazel's query language: parse, evaluate, render. Pure; opens no store."""

from gsum.engine.query.evaluate import Selection, run_query
from gsum.engine.query.graph import TargetGraph, target_graph
from gsum.engine.query.lexer import QueryError

__all__ = ["QueryError", "Selection", "TargetGraph", "run_query", "target_graph"]
