"""The rule `extract`: every line of the schema's fact pattern becomes a claim; no model, nothing left out. Pure.

The baseline of the experiment. `max_claims` and `max_evidence` bound generations and do not apply here.
"""

from __future__ import annotations

from typing import NoReturn

from gsum.rules.claims import Claim, Result
from gsum.rules.config import ExtractPackage, PackageSection
from gsum.rules.documents import lines
from gsum.rules.evidence import catalogue
from gsum.rules.facts import read_fact
from gsum.rules.graph import Action, ActionKind
from gsum.rules.kinds import resolving, shape
from gsum.rules.rule import Finished, Inputs
from gsum.rules.snapshot import Scope, Snapshot
from gsum.store.errors import ExitCode, GsumError
from gsum.store.records import Generation

RULE_VERSION = 1


class NoFactPatternError(GsumError):
    """`extract` was given a schema without a fact pattern."""

    exit_code = ExitCode.DECLARATION


class Extract:
    """Extract the fact lines of each document, then merge them all."""

    name = "extract"
    version = RULE_VERSION

    def expand(
        self, name: str, package: PackageSection, snapshot: Snapshot, toolchain: str | None
    ) -> tuple[Action, ...]:
        """Return one leaf a document and the root over all of them. There is no toolchain: `toolchain` is unused."""
        if not isinstance(package, ExtractPackage):
            raise TypeError(f"`{self.name}` does not expand a {type(package).__name__}")
        del toolchain
        shape.require_documents(name, snapshot)
        names = shape.leaf_names(len(snapshot.scopes))
        labels = [shape.label(name, snapshot, leaf) for leaf in names]
        leaves = [
            _action(name, package, snapshot, label, (), scope)
            for label, scope in zip(labels, snapshot.scopes, strict=True)
        ]
        return (*leaves, _action(name, package, snapshot, shape.label(name, snapshot, shape.ROOT), tuple(labels), None))

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


def _action(
    name: str,
    package: ExtractPackage,
    snapshot: Snapshot,
    label: str,
    children: tuple[str, ...],
    scope: Scope | None,
) -> Action:
    return Action(
        label=label,
        kind=ActionKind.MERGE if scope is None else ActionKind.EXTRACT,
        rule=Extract.name,
        package=name,
        dossier=snapshot.dossier,
        source=snapshot.source,
        principal=snapshot.principal,
        children=children,
        scope=scope,
        path=None if scope is None else snapshot.paths.get(scope.id),
        prompt=None,
        schema=package.schema,
        toolchain=None,
        input_tokens=None,
        fan_in=None,
    )


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
