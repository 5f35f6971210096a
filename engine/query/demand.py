"""Which dossiers a query can need, told from its syntax alone, so that no other manifest is read. Pure.

Edges between targets stay within one dossier of one source; only prompts, schemas and toolchains are shared. What can
come of an expression is therefore bounded by a set of dossiers and by whether shared nodes can be among it. Where no
bound is known, every dossier is needed. The bounds may be too wide, never too narrow: a property test holds the
answers over part of a graph to those over all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from gsum.engine.query.functions import FUNCTIONS, NODE_PARAMETERS, Reach
from gsum.engine.query.parser import EVERYTHING
from gsum.engine.query.syntax import Call, Chain, Expression, Let, Operator, SetOf, Variable, Word

Dossier = tuple[str, str]
"""A source and a dossier of it."""

Bound = frozenset[Dossier] | None
"""The dossiers that a result can lie in; null: any."""

NONE: Bound = frozenset()


class Span(msgspec.Struct, frozen=True):
    """What a result is bounded by: dossiers, and whether prompts, schemas and toolchains can be in it."""

    dossiers: Bound
    shared: bool


Namer = Callable[[str], Span | None]
"""What a word names; null where that takes the whole graph to say, as for a word that names nothing."""


class _Everything(Exception):
    """The whole graph is needed."""


def needed_dossiers(expression: Expression, name: Namer) -> Bound:
    """Return the dossiers that a query's answer, or its error, depends on; null: all."""
    demand = _Demand(name)
    try:
        demand.need(expression, {}, None, shared=True)
    except _Everything:
        return None
    return frozenset(demand.found)


class _Demand:
    """Collects what the parts of one query need."""

    def __init__(self, name: Namer) -> None:
        self._name = name
        self.found: set[Dossier] = set()

    def need(self, expression: Expression, scope: Mapping[str, Span], within: Bound, *, shared: bool) -> None:
        """Collect what is needed to know an expression's result `within` dossiers, and its shared nodes if `shared`."""
        if shared and self._span(expression, scope).shared:
            within = None
        match expression:
            case Word():
                self._need_word(expression, within)
            case Variable():
                pass  # needed in full where it was defined
            case Let():
                self.need(expression.value, scope, None, shared=True)
                inner = {**scope, expression.name: self._span(expression.value, scope)}
                self.need(expression.body, inner, within, shared=shared)
            case SetOf():
                for item in expression.items:
                    self.need(item, scope, within, shared=shared)
            case Chain():
                self._need_chain(expression, scope, within, shared)
            case Call():
                self._need_call(expression, scope, within, shared)

    def _need_word(self, word: Word, within: Bound) -> None:
        dossiers = self._named(word).dossiers
        wanted = within if dossiers is None else dossiers
        if wanted is None:
            raise _Everything
        self.found |= wanted

    def _need_chain(self, chain: Chain, scope: Mapping[str, Span], within: Bound, shared: bool) -> None:
        """Go from the last operator to the first: what stands right of one bounds what is needed left of it."""
        spans = self._chain_spans(chain, scope)
        for place in reversed(range(len(chain.rest))):
            operator, right = chain.rest[place]
            if shared and spans[place + 1].shared:
                within = None
            if operator is Operator.UNION:
                self.need(right, scope, within, shared=shared)
                continue
            ours, theirs = spans[place], self._span(right, scope)
            both = shared and ours.shared and theirs.shared
            self.need(right, scope, _common(within, ours.dossiers), shared=both)
            if operator is Operator.INTERSECT:
                within, shared = _common(within, theirs.dossiers), both
        self.need(chain.first, scope, within, shared=shared)

    def _need_call(self, call: Call, scope: Mapping[str, Span], within: Bound, shared: bool) -> None:
        function = FUNCTIONS.get(call.name)
        if function is None:
            return
        if function.reach is Reach.WHOLE:
            within, shared = None, True
        sets = self._sets(call)
        if len(sets) == 2:
            above, below = (self._span(each, scope) for each in sets)
            near = within if below.shared else _common(within, below.dossiers)
            self.need(sets[0], scope, near, shared=shared and below.shared)
            self.need(sets[1], scope, _common(within, above.dossiers), shared=below.shared)
        elif sets:
            self.need(sets[0], scope, within, shared=shared)
        else:
            self._need_word(Word(EVERYTHING, call.span), within)

    def _span(self, expression: Expression, scope: Mapping[str, Span]) -> Span:
        match expression:
            case Word():
                return self._named(expression)
            case Variable():
                return scope.get(expression.name, Span(NONE, shared=False))
            case Let():
                return self._span(expression.body, {**scope, expression.name: self._span(expression.value, scope)})
            case SetOf():
                return _joined([self._span(item, scope) for item in expression.items])
            case Chain():
                return self._chain_spans(expression, scope)[-1]
            case Call():
                return self._call_span(expression, scope)

    def _chain_spans(self, chain: Chain, scope: Mapping[str, Span]) -> list[Span]:
        """Return what each beginning of a chain is bounded by, the shortest first."""
        spans = [self._span(chain.first, scope)]
        for operator, other in chain.rest:
            left, right = spans[-1], self._span(other, scope)
            match operator:
                case Operator.UNION:
                    spans.append(_joined([left, right]))
                case Operator.INTERSECT:
                    spans.append(Span(_common(left.dossiers, right.dossiers), left.shared and right.shared))
                case Operator.EXCEPT:
                    spans.append(left)
        return spans

    def _call_span(self, call: Call, scope: Mapping[str, Span]) -> Span:
        function = FUNCTIONS.get(call.name)
        if function is None:
            return Span(NONE, shared=False)
        spans = [self._span(inner, scope) for inner in self._sets(call)]
        if len(spans) == 2:
            above, below = spans
            return Span(above.dossiers if below.shared else _common(above.dossiers, below.dossiers), below.shared)
        if spans:
            return Span(spans[0].dossiers, spans[0].shared or function.reach is Reach.DOWN)
        return Span(None, shared=False)

    def _sets(self, call: Call) -> list[Expression]:
        """Return those arguments of a call that are sets of nodes."""
        parameters = FUNCTIONS[call.name].parameters
        pairs = zip(parameters, call.arguments, strict=False)
        return [argument for parameter, argument in pairs if parameter in NODE_PARAMETERS]

    def _named(self, word: Word) -> Span:
        span = self._name(word.text)
        if span is None:
            raise _Everything
        return span


def _common(one: Bound, other: Bound) -> Bound:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _joined(spans: list[Span]) -> Span:
    dossiers: set[Dossier] = set()
    for span in spans:
        if span.dossiers is None:
            return Span(None, any(each.shared for each in spans))
        dossiers |= span.dossiers
    return Span(frozenset(dossiers), any(span.shared for span in spans))
