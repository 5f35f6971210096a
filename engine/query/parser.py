"""Query text to a syntax tree: recursive descent over the grammar below. Pure.

expr    = primary { ("+" | "union" | "-" | "except" | "^" | "intersect") primary }
primary = word | "$" name | "let" name "=" expr "in" expr | "(" expr ")" | "set" "(" { word } ")"
        | name "(" [ expr { "," expr } ] ")"
"""

from __future__ import annotations

from gsum.engine.query.lexer import OPERATORS, VARIABLE, QueryError, Span, Token, TokenKind, error_at, tokenize
from gsum.engine.query.syntax import Call, Chain, Expression, Let, Operator, SetOf, Variable, Word

MAX_DEPTH = 100
"""How deep parentheses, calls and lets may nest."""

EVERYTHING = "//..."
"""The pattern of all targets."""

SHORTHANDS = {"deps": "deps({})", "rdeps": "rdeps(//..., {})"}
"""What `deps LABEL` and `rdeps LABEL` stand for."""

_OPERATORS = {
    TokenKind.UNION: Operator.UNION,
    TokenKind.EXCEPT: Operator.EXCEPT,
    TokenKind.INTERSECT: Operator.INTERSECT,
}


def parse(text: str) -> Expression:
    """Parse a query, or the shorthand `deps LABEL` or `rdeps LABEL`.

    Raises:
        QueryError: with a caret under the place that can't be understood.
    """
    tokens = tokenize(text)
    kinds = [token.kind for token in tokens]
    two_words = kinds[:1] == [TokenKind.WORD] and kinds[1:] in (
        [TokenKind.WORD, TokenKind.END],
        [TokenKind.QUOTED, TokenKind.END],
    )
    if two_words and tokens[0].text in SHORTHANDS:
        return _shorthand(text, tokens[0], tokens[1])
    return _Parser(text, tokens).whole()


def _shorthand(text: str, name: Token, label: Token) -> Expression:
    argument = _word(text, label)
    whole = Span(name.span.start, label.span.end)
    arguments = (argument,) if name.text == "deps" else (Word(EVERYTHING, name.span), argument)
    return Call(name.text, arguments, whole, name.span)


def _word(text: str, token: Token) -> Word | Variable:
    if token.kind is TokenKind.WORD and token.text.startswith("$"):
        if not VARIABLE.fullmatch(token.text[1:]):
            raise error_at(text, token.span, f"`{token.text}` is no variable", "write `$name`")
        return Variable(token.text[1:], token.span)
    return Word(token.text, token.span)


class _Parser:
    """One pass over the tokens of one query."""

    def __init__(self, text: str, tokens: tuple[Token, ...]) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def whole(self) -> Expression:
        expression = self._expression()
        token = self._peek()
        if token.kind is not TokenKind.END:
            hint = "join sets with `+`, `-` or `^`, or write `set(a b)`"
            raise self._error(token, f"{_name(token)} can't stand here", hint)
        return expression

    def _expression(self) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(self._peek(), f"the query nests more than {MAX_DEPTH} levels", "use `let` or `set`")
        first = self._primary()
        rest: list[tuple[Operator, Expression]] = []
        while self._peek().kind in OPERATORS:
            operator = _OPERATORS[self._take().kind]
            rest.append((operator, self._primary()))
        self._depth -= 1
        return Chain(first, tuple(rest), Span(first.span.start, rest[-1][1].span.end)) if rest else first

    def _primary(self) -> Expression:
        token = self._take()
        match token.kind:
            case TokenKind.WORD if self._peek().kind is TokenKind.OPEN:
                return self._call(token)
            case TokenKind.WORD | TokenKind.QUOTED:
                return _word(self._text, token)
            case TokenKind.OPEN:
                inner = self._expression()
                self._expect(TokenKind.CLOSE, "to end the parenthesis")
                return inner
            case TokenKind.LET:
                return self._let(token)
            case TokenKind.SET:
                return self._set(token)
            case _:
                raise self._error(token, f"a label, a pattern or a function is missing before {_name(token)}")

    def _let(self, let: Token) -> Let:
        name = self._expect(TokenKind.WORD, "to name the variable")
        if not VARIABLE.fullmatch(name.text):
            raise self._error(name, f"`{name.text}` is no name for a variable", "use letters, digits and `_`")
        self._expect(TokenKind.EQUALS, f"after `let {name.text}`")
        value = self._expression()
        self._expect(TokenKind.IN, f"after the value of `{name.text}`")
        body = self._expression()
        return Let(name.text, value, body, Span(let.span.start, body.span.end))

    def _set(self, start: Token) -> SetOf:
        self._expect(TokenKind.OPEN, "after `set`")
        items: list[Word | Variable] = []
        while self._peek().kind in (TokenKind.WORD, TokenKind.QUOTED):
            items.append(_word(self._text, self._take()))
        close = self._expect(TokenKind.CLOSE, "after the words of `set`")
        return SetOf(tuple(items), Span(start.span.start, close.span.end))

    def _call(self, name: Token) -> Call:
        self._take()
        arguments: list[Expression] = []
        if self._peek().kind is not TokenKind.CLOSE:
            arguments.append(self._expression())
            while self._peek().kind is TokenKind.COMMA:
                self._take()
                arguments.append(self._expression())
        close = self._expect(TokenKind.CLOSE, f"to end `{name.text}(…)`")
        return Call(name.text, tuple(arguments), Span(name.span.start, close.span.end), name.span)

    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _expect(self, kind: TokenKind, why: str) -> Token:
        token = self._take()
        if token.kind is not kind:
            raise self._error(token, f"{kind.value} is missing {why}, before {_name(token)}")
        return token

    def _error(self, token: Token, message: str, hint: str | None = None) -> QueryError:
        return error_at(self._text, token.span, message, hint) if hint else error_at(self._text, token.span, message)


def _name(token: Token) -> str:
    return f"`{token.text}`" if token.text else token.kind.value
