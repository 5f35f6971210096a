"""The rule `summary_tree`: one leaf a document, reductions by fan-in, a root; each asks the model once. Pure.

A grammar is never trusted: what its strength promises is checked again in code over the parsed claims.
"""

from __future__ import annotations

from collections.abc import Sequence

from gsum.rules.claims import Claim, Result
from gsum.rules.config import Prompt, SchemaSection, Strength
from gsum.rules.documents import Line
from gsum.rules.evidence import catalogue
from gsum.rules.expand.tree import TreeExpansion
from gsum.rules.facts import read_fact
from gsum.rules.grammar import leaf_grammar, reduction_grammar
from gsum.rules.graph import Action
from gsum.rules.kinds import resolving
from gsum.rules.parsing import Parsed, RawClaim, parse
from gsum.rules.rendering import leaf_input, messages, reduction_input
from gsum.rules.requests import Request
from gsum.rules.rule import Finished, Inputs, ModelTerms
from gsum.rules.snapshot import Scope
from gsum.store.records import Generation

RULE_VERSION = 7
_CHECKED = (Strength.LITERAL, Strength.PATTERN)


class SummaryTree(TreeExpansion):
    """Map each document to claims, then reduce claims to claims."""

    version = RULE_VERSION

    def render(self, action: Action, inputs: Inputs) -> Request | Finished:
        """Return the request of a leaf or reduction; a result without one where nothing below is eligible."""
        if action.scope is None:
            if resolving.all_ineligible(inputs.children):
                return Finished(resolving.INELIGIBLE, ineligible=True)
            claims = resolving.child_claims(inputs.schema, inputs.children)
            grammar = reduction_grammar(inputs.schema, _terms(inputs).strength, claims)
            return _request(action, inputs, reduction_input(claims), grammar)
        if not action.scope.readable:
            return Finished(resolving.INELIGIBLE, ineligible=True)
        grammar = leaf_grammar(inputs.schema, _terms(inputs).strength, inputs.numbered)
        return _request(action, inputs, leaf_input(inputs.numbered), grammar)

    def resolve(self, action: Action, inputs: Inputs, generation: Generation) -> Result:
        """Parse a generation, check what its strength promises, and resolve the numbers it cites to evidence."""
        if action.scope is None:
            return _resolve_reduction(inputs, generation)
        return _resolve_leaf(action.scope, inputs, generation)


def _request(action: Action, inputs: Inputs, rendered: str, grammar: str | None) -> Request:
    terms = _terms(inputs)
    if action.input_tokens is None:
        raise ValueError(f"action `{action.label}` has no input budget")
    chat, shared = messages(_prompt(inputs), rendered)
    return Request(
        messages=chat,
        shared=shared,
        grammar=grammar,
        max_new_tokens=terms.max_new_tokens,
        input_tokens=action.input_tokens,
        toolchain=terms.toolchain,
        perimeter=inputs.perimeter,
        salt=terms.salt,
    )


def _resolve_leaf(scope: Scope, inputs: Inputs, generation: Generation) -> Result:
    text, numbered = _text(inputs), inputs.numbered
    parsed = parse(generation.text, generation.stop, inputs.schema, len(numbered))
    diagnostic = parsed.diagnostic or _leaf_violation(inputs.schema, _terms(inputs).strength, parsed, numbered)
    if diagnostic is not None:
        return resolving.invalid(diagnostic, parsed.repairs)
    cited = sorted({number for raw in parsed.claims for number in raw.evidence})
    records = dict(zip(cited, catalogue(scope, text, (numbered[number - 1] for number in cited)), strict=True))
    claims = [Claim(raw.values, tuple(records[number].id for number in raw.evidence)) for raw in parsed.claims]
    return resolving.finished(claims, {record.id: record for record in records.values()}, (), parsed.repairs)


def _resolve_reduction(inputs: Inputs, generation: Generation) -> Result:
    given = resolving.child_claims(inputs.schema, inputs.children)
    parsed = parse(generation.text, generation.stop, inputs.schema, len(given))
    diagnostic = parsed.diagnostic or _reduction_violation(_terms(inputs).strength, parsed, given)
    if diagnostic is not None:
        return resolving.invalid(diagnostic, parsed.repairs)
    claims = [
        Claim(raw.values, resolving.unique(cited for number in raw.evidence for cited in given[number - 1].evidence))
        for raw in parsed.claims
    ]
    records = resolving.records_by_id(inputs.children)
    return resolving.finished(claims, records, resolving.partial_because(inputs.children), parsed.repairs)


def _leaf_violation(schema: SchemaSection, strength: Strength, parsed: Parsed, numbered: Sequence[Line]) -> str | None:
    """Return which claim breaks its strength's promise: its texts stand in, or are the fact of, one cited line."""
    if strength not in _CHECKED:
        return None
    for place, claim in enumerate(parsed.claims, 1):
        cited = [numbered[number - 1].text for number in claim.evidence]
        if strength is Strength.PATTERN:
            if not any(read_fact(schema, text) == claim.values for text in cited):
                return f"claim {place} is not the fact of a line that it cites"
        elif not any(_stands_in(schema, claim, text) for text in cited):
            return f"claim {place}: its texts do not all stand in one line that it cites"
    return None


def _stands_in(schema: SchemaSection, claim: RawClaim, text: str) -> bool:
    return all(value in text for field, value in claim.values.items() if field not in schema.enums)


def _reduction_violation(strength: Strength, parsed: Parsed, given: Sequence[Claim]) -> str | None:
    """Return which claim is not, word for word, each of the children's claims that it cites."""
    if strength not in _CHECKED:
        return None
    for place, claim in enumerate(parsed.claims, 1):
        if any(given[number - 1].values != claim.values for number in claim.evidence):
            return f"claim {place} differs from a claim that it cites"
    return None


def _text(inputs: Inputs) -> str:
    if inputs.text is None:
        raise ValueError("a readable leaf needs its text")
    return inputs.text


def _terms(inputs: Inputs) -> ModelTerms:
    if inputs.terms is None:
        raise ValueError("`summary_tree` needs the terms of a toolchain")
    return inputs.terms


def _prompt(inputs: Inputs) -> Prompt:
    if inputs.prompt is None:
        raise ValueError("`summary_tree` needs a prompt")
    return inputs.prompt
