"""Words of a query to nodes: a label names one, a pattern all that it covers. Pure.

`//p:n` and `//p:all` mean roots, as in a build; packages of documents, prompts, schemas and toolchains have no roots,
and there they mean every node. `//...` and `//folder/...` cover targets alone, `//package:...` every node of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from gsum.engine.query.graph import TargetGraph
from gsum.engine.query.lexer import QueryError, error_at
from gsum.engine.query.syntax import Word
from gsum.rules.labels import Extent, LabelError, Pattern, nearest, parse_pattern

_ROOT = "/root"


def resolve(graph: TargetGraph, query: str, word: Word) -> frozenset[int]:
    """Return the nodes a word names.

    Raises:
        QueryError: if it is malformed or names nothing, with the nearest label.
    """
    exact = graph.numbers.get(word.text)
    if exact is not None:
        return frozenset((exact,))
    try:
        pattern = parse_pattern(word.text)
    except LabelError as error:
        raise error_at(query, word.span, error.message, error.hint or "write `//package:name/part`") from None
    found = frozenset(_covered(graph, pattern))
    if not found and not graph.unread(pattern):
        raise _nothing(graph, query, word, pattern)
    return found


def _covered(graph: TargetGraph, pattern: Pattern) -> Iterable[int]:
    package = f"//{pattern.package}:"
    match pattern.extent:
        case Extent.TARGET:
            return ()
        case Extent.ROOT:
            root = graph.numbers.get(f"{package}{pattern.name}{_ROOT}")
            inputs = _inputs(graph, graph.starting_with(f"{package}{pattern.name}/"))
            return inputs if root is None else (root, *inputs)
        case Extent.PARTS:
            return graph.starting_with(f"{package}{pattern.name}/")
        case Extent.ROOTS:
            nodes = graph.starting_with(package)
            return [node for node in nodes if not graph.is_action(node) or graph.labels[node].endswith(_ROOT)]
        case Extent.PACKAGE:
            return graph.starting_with(package)
        case Extent.TREE:
            if not pattern.package:
                return graph.actions
            below = (*graph.starting_with(package), *graph.starting_with(f"//{pattern.package}/"))
            return graph.actions.intersection(below)


def _inputs(graph: TargetGraph, nodes: Iterable[int]) -> list[int]:
    return [node for node in nodes if not graph.is_action(node)]


def _nothing(graph: TargetGraph, query: str, word: Word, pattern: Pattern) -> QueryError:
    """Say which step of a label names nothing, and what is nearest there."""
    package, name = f"//{pattern.package}:", f"//{pattern.package}:{pattern.name}/"
    if pattern.extent is Extent.TREE:
        hint = "`gsum query //...` lists all targets"
        return error_at(query, word.span, f"`{word.text}` matches nothing", hint)
    if not graph.starting_with(package):
        packages = {label[2:].partition(":")[0] for label in graph.labels}
        close = nearest(pattern.package, packages)
        message = f"nothing is named `{package}…`"
        return error_at(
            query, word.span, message, _hint(word.text.replace(pattern.package, close, 1) if close else None)
        )
    siblings = [graph.labels[node] for node in graph.starting_with(name)] if pattern.name else []
    if not siblings:
        heads = {_head(graph.labels[node]) for node in graph.starting_with(package)}
        close = nearest(_head(word.text), heads)
        suffix = f"/{pattern.part}" if pattern.part else ""
        return error_at(query, word.span, f"`{word.text}` does not exist", _hint(close + suffix if close else None))
    return error_at(query, word.span, f"`{word.text}` does not exist", _hint(nearest(word.text, siblings)))


def _head(label: str) -> str:
    """Return a label without its part."""
    package, colon, rest = label.partition(":")
    return package + colon + rest.partition("/")[0]


def _hint(label: str | None) -> str:
    return f"did you mean `{label}`?" if label else "`gsum query //...` lists all targets"
