"""Evaluates a query's syntax tree on a target graph. Pure. Knows the operators; the functions are rows of a table."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import Any

import msgspec

from gsum.engine.query.facts import Facts, Passage, Table, parse_passage
from gsum.engine.query.functions import FUNCTIONS, STATES, Arguments, Function, Parameter
from gsum.engine.query.graph import ATTRIBUTES, DOCUMENT, TargetGraph
from gsum.engine.query.lexer import QueryError, error_at
from gsum.engine.query.parser import EVERYTHING, parse
from gsum.engine.query.resolve import resolve
from gsum.engine.query.syntax import Call, Chain, Expression, Let, Operator, SetOf, Variable, Word
from gsum.rules.labels import nearest

MAX_DEPTH_DIGITS = 9

Nodes = frozenset[int]


class Selection(msgspec.Struct, frozen=True):
    """The result of a query: labels, sorted unless the query's outermost function gives an order (a path's)."""

    labels: tuple[str, ...]
    ordered: bool = False


def run_query(graph: TargetGraph, text: str, facts: Facts | None = None) -> Selection | Table:
    """Parse and evaluate a query; `facts` answers what the graph alone can't.

    Raises:
        QueryError: with a caret under the place that is malformed or names nothing.
    """
    return evaluate(graph, text, parse(text), facts)


def evaluate(graph: TargetGraph, text: str, expression: Expression, facts: Facts | None = None) -> Selection | Table:
    """Evaluate the expression that a text was parsed to."""
    evaluator = _Evaluator(graph, text, facts)
    if isinstance(expression, Call) and expression.name in FUNCTIONS:
        function = FUNCTIONS[expression.name]
        if function.table is not None:
            return function.table(graph, evaluator.arguments(function, expression, {}))
        if function.ordered:
            path = evaluator.call(expression, {})
            return Selection(tuple(graph.labels[node] for node in path), ordered=True)
    return Selection(tuple(graph.labels[node] for node in sorted(evaluator.nodes(expression, {}))))


def needs_store(expression: Expression) -> bool:
    """Whether a query asks for something that only a store can tell."""
    match expression:
        case Call():
            function = FUNCTIONS.get(expression.name)
            return (function is not None and function.stored) or any(map(needs_store, expression.arguments))
        case Let():
            return needs_store(expression.value) or needs_store(expression.body)
        case Chain():
            return any(map(needs_store, (expression.first, *(other for _, other in expression.rest))))
        case _:
            return False


class _Evaluator:
    """Evaluates the parts of one query."""

    def __init__(self, graph: TargetGraph, text: str, facts: Facts | None) -> None:
        self._graph, self._text, self._facts = graph, text, facts

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
        if function.apply is None:
            message = f"`{call.name}` gives rows, not nodes: it can only stand outermost"
            raise error_at(self._text, call.name_span, message, f"write `{function.usage}` alone")
        found = function.apply(self._graph, self.arguments(function, call, variables))
        return tuple(found) if function.ordered else frozenset(found)

    def arguments(self, function: Function, call: Call, variables: dict[str, Nodes]) -> Arguments:
        """Evaluate the arguments of a call."""
        self._function(call)
        if function.stored and self._facts is None:
            raise error_at(self._text, call.name_span, f"`{call.name}` needs a store", "ask it of a workspace")
        sets: list[Nodes] = []
        given: dict[str, Any] = {"facts": self._facts}
        for parameter, argument in zip_longest(function.parameters, call.arguments):
            match parameter:
                case Parameter.NODES:
                    whole = Word(EVERYTHING, call.span)
                    sets.append(self.nodes(whole if argument is None else argument, variables))
                case _ if argument is None:
                    pass
                case Parameter.REGEX:
                    given["regex"] = self._regex(argument)
                case Parameter.DEPTH:
                    given["depth"] = self._depth(argument)
                case Parameter.ATTRIBUTE:
                    given["attribute"] = self._attribute(argument)
                case Parameter.STATES:
                    given["states"] = self._states(argument)
                case Parameter.PASSAGE:
                    node, given["passage"] = self._passage(argument)
                    sets.append(frozenset((node,)))
        return Arguments(tuple(sets), **given)

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

    def _attribute(self, argument: Expression) -> str:
        if not isinstance(argument, Word) or argument.text not in ATTRIBUTES:
            close = nearest(argument.text, ATTRIBUTES) if isinstance(argument, Word) else None
            hint = f"did you mean `{close}`?" if close else "they are " + ", ".join(f"`{name}`" for name in ATTRIBUTES)
            raise self._wrong(argument, Parameter.ATTRIBUTE, hint)
        return argument.text

    def _states(self, argument: Expression) -> frozenset[str]:
        asked = argument.text.split("|") if isinstance(argument, Word) else [""]
        if not set(asked) <= set(STATES):
            raise self._wrong(argument, Parameter.STATES, "they are " + ", ".join(f"`{name}`" for name in STATES))
        return frozenset(asked)

    def _passage(self, argument: Expression) -> tuple[int, Passage]:
        """Return a document's node and the passage of it that a word names."""
        if not isinstance(argument, Word):
            raise self._wrong(argument, Parameter.PASSAGE, "write its label")
        passage = Passage(argument.text) if argument.text in self._graph.numbers else parse_passage(argument.text)
        if passage.end is not None and passage.end <= passage.start:
            raise error_at(self._text, argument.span, "the interval is empty", "write `[start:end]`, end after start")
        (node, *more) = sorted(resolve(self._graph, self._text, Word(passage.label, argument.span)))
        if more or self._graph.kinds[node] != DOCUMENT:
            raise self._wrong(argument, Parameter.PASSAGE, f"`kind({DOCUMENT}, deps(…))` lists documents")
        return node, Passage(self._graph.labels[node], passage.start, passage.end)

    def _wrong(self, argument: Expression, wanted: Parameter, hint: str) -> QueryError:
        return error_at(self._text, argument.span, f"{wanted.value} is needed here", hint)
