"""The syntax tree of a query. Pure values, each with its place in the text."""

from __future__ import annotations

import enum

import msgspec

from gsum.engine.query.lexer import Span


class Operator(enum.Enum):
    """A set operation: all of one precedence, left-associative."""

    UNION = "+"
    EXCEPT = "-"
    INTERSECT = "^"


class Word(msgspec.Struct, frozen=True):
    """A label, a pattern, or an argument that is text or a number."""

    text: str
    span: Span


class Variable(msgspec.Struct, frozen=True):
    """`$name`."""

    name: str
    span: Span


class Let(msgspec.Struct, frozen=True):
    """`let name = value in body`."""

    name: str
    value: Expression
    body: Expression
    span: Span


class SetOf(msgspec.Struct, frozen=True):
    """`set(a b c)`."""

    items: tuple[Word | Variable, ...]
    span: Span


class Chain(msgspec.Struct, frozen=True):
    """`first op a op b …`, evaluated from the left."""

    first: Expression
    rest: tuple[tuple[Operator, Expression], ...]
    span: Span


class Call(msgspec.Struct, frozen=True):
    """`name(argument, …)`."""

    name: str
    arguments: tuple[Expression, ...]
    span: Span
    name_span: Span


Expression = Word | Variable | Let | SetOf | Chain | Call
