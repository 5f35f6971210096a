"""Query text to tokens, each with its place, and the error that points at a place. Pure.

A word is a run of characters other than white space, quotes, `(`, `)`, `,`, `+` and `^`; a `-` that starts one is an
operator, a `-` inside one is not. What a word may not hold can be quoted, with `'` or `"`.
"""

from __future__ import annotations

import enum
import re

import msgspec

from gsum.store.errors import ExitCode, GsumError

HINT = "`gsum query --help` shows the language"


class QueryError(GsumError):
    """A query that can't be understood or names nothing."""

    exit_code = ExitCode.USAGE


class Span(msgspec.Struct, frozen=True):
    """A place in the query's text: [start, end)."""

    start: int
    end: int


def error_at(text: str, span: Span, message: str, hint: str = HINT) -> QueryError:
    """Return an error with a caret under a place of the query."""
    shown = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    caret = " " * span.start + "^" * max(1, span.end - span.start)
    return QueryError(message, hint=hint, excerpt=f"{shown}\n{caret}")


class TokenKind(enum.Enum):
    """What a token is; keywords and operators are kinds of their own."""

    WORD = "a word"
    QUOTED = "a quoted word"
    OPEN = "`(`"
    CLOSE = "`)`"
    COMMA = "`,`"
    UNION = "`+`"
    EXCEPT = "`-`"
    INTERSECT = "`^`"
    EQUALS = "`=`"
    LET = "`let`"
    IN = "`in`"
    SET = "`set`"
    END = "the end of the query"


OPERATORS = (TokenKind.UNION, TokenKind.EXCEPT, TokenKind.INTERSECT)

_MARKS = {
    "(": TokenKind.OPEN,
    ")": TokenKind.CLOSE,
    ",": TokenKind.COMMA,
    "+": TokenKind.UNION,
    "-": TokenKind.EXCEPT,
    "^": TokenKind.INTERSECT,
    "=": TokenKind.EQUALS,
}
_KEYWORDS = {
    "let": TokenKind.LET,
    "in": TokenKind.IN,
    "set": TokenKind.SET,
    "union": TokenKind.UNION,
    "except": TokenKind.EXCEPT,
    "intersect": TokenKind.INTERSECT,
}
_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"""[^\s'"(),+^=-][^\s'"(),+^]*""")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Token(msgspec.Struct, frozen=True):
    """A token; `text` is a word's content, without quotes."""

    kind: TokenKind
    text: str
    span: Span


def tokenize(text: str) -> tuple[Token, ...]:
    """Return the tokens of a query, the last one of kind END.

    Raises:
        QueryError: on a quote without its end.
    """
    tokens: list[Token] = []
    position = 0
    while True:
        space = _SPACE.match(text, position)
        position = space.end() if space else position
        if position == len(text):
            tokens.append(Token(TokenKind.END, "", Span(position, position)))
            return tuple(tokens)
        token = _next(text, position, after_let=bool(tokens) and tokens[-1].kind is TokenKind.LET)
        tokens.append(token)
        position = token.span.end


def _next(text: str, start: int, *, after_let: bool) -> Token:
    first = text[start]
    if first in "'\"":
        end = text.find(first, start + 1)
        if end < 0:
            raise error_at(text, Span(start, start + 1), "a quote has no end", f"close it with `{first}`")
        return Token(TokenKind.QUOTED, text[start + 1 : end], Span(start, end + 1))
    # The name of a variable ends before `=`, which elsewhere may stand inside a word.
    match = (VARIABLE if after_let else _WORD).match(text, start) or _WORD.match(text, start)
    if match is None:
        return Token(_MARKS[first], first, Span(start, start + 1))
    word = match[0]
    return Token(_KEYWORDS.get(word, TokenKind.WORD), word, Span(start, match.end()))
