"""Evaluates a query's syntax tree on a target graph. Pure. Knows the operators; the functions are rows of a table."""

from __future__ import annotations

import re

import msgspec

from gsum.engine.query.functions import FUNCTIONS, Arguments, Function, Parameter
from gsum.engine.query.graph import TargetGraph
from gsum.engine.query.lexer import QueryError, error_at
from gsum.engine.query.parser import parse
from gsum.engine.query.resolve import resolve
from gsum.engine.query.syntax import Call, Chain, Expression, Let, Operator, SetOf, Variable, Word
from gsum.rules.labels import nearest

MAX_DEPTH_DIGITS = 9

Nodes = frozenset[int]


class Selection(msgspec.Struct, frozen=True):
    """The result of a query: labels, sorted unless the query's outermost function gives an order (a path's)."""

    labels: tuple[str, ...]
    ordered: bool = False


def run_query(graph: TargetGraph, text: str) -> Selection:
    """Parse and evaluate a query.

    Raises:
        QueryError: with a caret under the place that is malformed or names nothing.
    """
    expression = parse(text)
    evaluator = _Evaluator(graph, text)
    if isinstance(expression, Call) and expression.name in FUNCTIONS and FUNCTIONS[expression.name].ordered:
        path = evaluator.call(expression, {})
        return Selection(tuple(graph.labels[node] for node in path), ordered=True)
    return Selection(tuple(graph.labels[node] for node in sorted(evaluator.nodes(expression, {}))))


class _Evaluator:
    """Evaluates the parts of one query."""

    def __init__(self, graph: TargetGraph, text: str) -> None:
        self._graph = graph
        self._text = text

    def nodes(self, expression: Expression, variables: dict[str, Nodes]) -> Nodes:
        match expression:
            case Word():
                return resolve(self._graph, self._text, expression)
            case Variable():
                return self._variable(expression, variables)
            case Let():
                value = self.nodes(expression.value, variables)
                return self.nodes(expression.body, variables | {expression.name: value})
            case SetOf():
                return frozenset().union(*(self.nodes(item, variables) for item in expression.items))
            case Chain():
                return self._chain(expression, variables)
            case Call():
                return frozenset(self.call(expression, variables))

    def call(self, call: Call, variables: dict[str, Nodes]) -> tuple[int, ...] | Nodes:
        """Evaluate a call; where its function gives an order, the result is in it."""
        function = self._function(call)
        sets: list[Nodes] = []
        regex: re.Pattern[str] | None = None
        depth: int | None = None
        for parameter, argument in zip(function.parameters, call.arguments, strict=False):
            match parameter:
                case Parameter.NODES:
                    sets.append(self.nodes(argument, variables))
                case Parameter.REGEX:
                    regex = self._regex(argument)
                case Parameter.DEPTH:
                    depth = self._depth(argument)
        found = function.apply(self._graph, Arguments(tuple(sets), regex, depth))
        return tuple(found) if function.ordered else frozenset(found)

    def _chain(self, chain: Chain, variables: dict[str, Nodes]) -> Nodes:
        left = self.nodes(chain.first, variables)
        for operator, expression in chain.rest:
            right = self.nodes(expression, variables)
            match operator:
                case Operator.UNION:
                    left = left | right
                case Operator.EXCEPT:
                    left = left - right
                case Operator.INTERSECT:
                    left = left & right
        return left

    def _variable(self, variable: Variable, variables: dict[str, Nodes]) -> Nodes:
        if variable.name not in variables:
            hint = f"define it: `let {variable.name} = … in …`"
            raise error_at(self._text, variable.span, f"variable `${variable.name}` is not defined here", hint)
        return variables[variable.name]

    def _function(self, call: Call) -> Function:
        function = FUNCTIONS.get(call.name)
        if function is None:
            close = nearest(call.name, FUNCTIONS)
            hint = (
                f"did you mean `{close}`?" if close else "the functions are " + ", ".join(f"`{n}`" for n in FUNCTIONS)
            )
            raise error_at(self._text, call.name_span, f"there is no function `{call.name}`", hint)
        most = len(function.parameters)
        if not most - function.optional <= len(call.arguments) <= most:
            given = len(call.arguments)
            message = f"`{call.name}` can't take {given} argument{'' if given == 1 else 's'}"
            raise error_at(self._text, call.span, message, f"write `{function.usage}`")
        return function

    def _regex(self, argument: Expression) -> re.Pattern[str]:
        if not isinstance(argument, Word):
            raise self._wrong(argument, Parameter.REGEX, "put it in quotes")
        try:
            return re.compile(argument.text)
        except (re.error, RecursionError, OverflowError) as error:
            message = f"`{argument.text}` is no regular expression: {error}"
            raise error_at(self._text, argument.span, message, "escape what is meant as it stands with `\\`") from None

    def _depth(self, argument: Expression) -> int:
        if not isinstance(argument, Word) or not re.fullmatch(rf"[0-9]{{1,{MAX_DEPTH_DIGITS}}}", argument.text):
            raise self._wrong(argument, Parameter.DEPTH, "write a whole number from 0")
        return int(argument.text)

    def _wrong(self, argument: Expression, wanted: Parameter, hint: str) -> QueryError:
        return error_at(self._text, argument.span, f"{wanted.value} is needed here", hint)
