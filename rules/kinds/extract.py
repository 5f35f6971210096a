"""The rule `extract`: every line of the schema's fact pattern becomes a claim; no model, nothing left out. Pure.

The baseline of the experiment. `max_claims` and `max_evidence` bound generations and do not apply here.
"""

from __future__ import annotations

from typing import NoReturn

from gsum.rules.claims import Claim, Result
from gsum.rules.documents import lines
from gsum.rules.evidence import catalogue
from gsum.rules.expand.extract import ExtractExpansion
from gsum.rules.facts import read_fact
from gsum.rules.graph import Action
from gsum.rules.kinds import resolving
from gsum.rules.rule import Finished, Inputs
from gsum.rules.snapshot import Scope
from gsum.store.errors import ExitCode, GsumError
from gsum.store.records import Generation

RULE_VERSION = 1


class NoFactPatternError(GsumError):
    """`extract` was given a schema without a fact pattern."""

    exit_code = ExitCode.DECLARATION


class Extract(ExtractExpansion):
    """Extract the fact lines of each document, then merge them all."""

    version = RULE_VERSION

    def render(self, action: Action, inputs: Inputs) -> Finished:
        """Return the result of a leaf or of the root; never a request."""
        if inputs.schema.fact_pattern is None:
            raise NoFactPatternError(
                f"schema `{action.schema}` declares no fact pattern, which `{self.name}` reads lines by",
                facts={"target": action.label},
                hint=f"add `fact_pattern` to `[schema.{action.schema}]` in BUILD.toml",
            )
        if action.scope is None:
            ineligible = resolving.all_ineligible(inputs.children)
            return Finished(resolving.INELIGIBLE if ineligible else _merge(inputs), ineligible)
        if not action.scope.readable:
            return Finished(resolving.INELIGIBLE, ineligible=True)
        return Finished(_extract(action.scope, inputs), ineligible=False)

    def resolve(self, action: Action, inputs: Inputs, generation: Generation) -> NoReturn:
        """Refuse: nothing is ever generated for this rule.

        Raises:
            TypeError: always.
        """
        del inputs, generation
        raise TypeError(f"`{self.name}` takes no generation for `{action.label}`")


def _extract(scope: Scope, inputs: Inputs) -> Result:
    """Return a claim for each fact line of a readable document, in line order."""
    if inputs.text is None:
        raise ValueError("a readable leaf needs its text")
    records = catalogue(scope, inputs.text)
    facts = [read_fact(inputs.schema, line.text) for line in lines(inputs.text)]
    pairs = zip(facts, records, strict=True)
    claims = [Claim(values, (record.id,)) for values, record in pairs if values is not None]
    return resolving.finished(claims, {record.id: record for record in records}, ())


def _merge(inputs: Inputs) -> Result:
    """Return all claims in slot order; equal ones become one, at its first place, with the union of their evidence."""
    merged: dict[tuple[str, ...], Claim] = {}
    for claim in resolving.child_claims(inputs.schema, inputs.children):
        key = tuple(claim.values.values())
        first = merged.get(key)
        cited = claim.evidence if first is None else resolving.unique((*first.evidence, *claim.evidence))
        merged[key] = Claim(claim.values, cited)
    because = resolving.partial_because(inputs.children)
    return resolving.finished(list(merged.values()), resolving.records_by_id(inputs.children), because)
