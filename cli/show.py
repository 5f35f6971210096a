"""`gsum show`: the current result of one target, each claim over its sources; nothing that is stale or invalid."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click
import msgspec

from gsum.cli.context import Config, current_config, options, reading_store
from gsum.cli.render import aligned, emit, emit_json, safe, state_text
from gsum.cli.targets import open_target
from gsum.cli.why import why_stale
from gsum.engine.documents import Documents
from gsum.engine.serving import NotServed, Served, serve
from gsum.engine.states import State, target_states
from gsum.engine.universe import Universe
from gsum.rules.audit import Audit
from gsum.rules.claims import Claim
from gsum.rules.documents import Evidence
from gsum.rules.graph import Action
from gsum.store.api import Store

_CHILD = re.compile(r"child (\d+) is (\w+)")


class Shown(msgspec.Struct, frozen=True):
    """A served result with what is printed around it."""

    action: Action
    served: Served
    title: str
    fields: tuple[str, ...]
    lines: dict[str, int]
    """Line numbers (from 1, as editors count) by evidence id."""
    invalid_below: tuple[str, ...]
    """Where a PARTIAL result lost claims: the INVALID targets anywhere below it."""


@click.command("show")
@click.argument("label", metavar="LABEL")
@options(principal=True, toolchain=True)
def command(label: str) -> int:
    """Show the current summary that LABEL names, with the source of every claim.

    What is stale, not built or invalid is refused (exit 4 or 7) and shows no claim.
    """
    config = current_config()
    target = open_target(config, label)
    with reading_store(config, config.root) as store:
        shown = _shown(config, target.universe, store, target.documents, target.label)
    if config.json:
        emit_json("show", _document(shown))
    else:
        _print(config, shown)
    return 0


def _shown(config: Config, universe: Universe, store: Store, documents: Documents, label: str) -> Shown:
    action = universe.graph.actions[label]
    try:
        served = serve(universe, store, documents, label)
    except NotServed as refusal:
        if refusal.target.state is State.STALE:
            refusal.message = f"`{label}` is STALE"
            refusal.facts = {"why": "\n".join(why_stale(universe, store, documents, label))}
        if not refusal.target.state.current:
            refusal.hint = config.typed("build", label)
        refusal.facts = {"target": label, "state": refusal.target.state.value, **refusal.facts}
        raise
    leaves = {
        other.scope.id: other
        for other in universe.graph.actions.values()
        if other.scope is not None and (other.package, other.dossier) == (action.package, action.dossier)
    }
    lines = {
        evidence.id: documents.read(leaves[evidence.doc_id]).text.count("\n", 0, evidence.start) + 1
        for evidence in served.result.evidence
    }
    source = universe.workspace.packages[action.package].sources
    return Shown(
        action,
        served,
        universe.graph.titles[source, action.dossier],
        universe.workspace.schemas[action.schema].fields,
        lines,
        _invalid_below(universe, store, served),
    )


def _invalid_below(universe: Universe, store: Store, served: Served) -> tuple[str, ...]:
    if served.target.state is not State.PARTIAL:
        return ()
    below = [label for label in universe.graph.actions if label != served.target.label]
    states = target_states(universe, store, below)
    return tuple(label for label, found in states.items() if found.state is State.INVALID)


def _children(shown: Shown) -> list[tuple[str, str]]:
    """Return the label and status of the children that make a result PARTIAL."""
    matches = [_CHILD.fullmatch(text) for text in shown.served.result.partial_because]
    return [(shown.action.children[int(match[1]) - 1], match[2]) for match in matches if match is not None]


def _print(config: Config, shown: Shown) -> None:
    result, target = shown.served.result, shown.served.target
    assert target.entry is not None
    emit(config, f"{target.label}  {state_text(target.state.value)}")
    facts: dict[str, object] = {
        "dossier": f"{shown.action.dossier}: {shown.title}" if shown.title else shown.action.dossier
    }
    facts["principal"] = shown.action.principal
    if shown.action.toolchain is not None:
        facts["toolchain"] = shown.action.toolchain
    facts["built"] = f"{target.entry.created} by {target.entry.invocation}"
    if result.partial_because:
        children = _children(shown)
        reasons = [f"its child {label} is {status}" for label, status in children]
        named = {label for label, _ in children}
        reasons += [f"below it {label} is INVALID" for label in shown.invalid_below if label not in named]
        facts["partial"] = "\n".join(reasons)
    for line in aligned(facts):
        emit(config, line)
    if isinstance(result.audit, Audit):
        for line in aligned(_audit_facts(result.audit)):
            emit(config, line)
        return
    evidence = {record.id: record for record in result.evidence}
    for number, claim in enumerate(result.claims, 1):
        emit(config, "")
        for line in _claim_lines(shown, evidence, number, claim):
            emit(config, line)
    if not result.claims:
        emit(config, f"\n{_nothing(shown)}")


def _audit_facts(audit: Audit) -> dict[str, object]:
    counts, ratios = audit.counts, audit.ratios
    facts: dict[str, object] = {"split": audit.split, "summary": audit.summary}
    facts |= {name.replace("_", " "): getattr(counts, name) for name in counts.__struct_fields__}
    facts |= {"unsupported": audit.unsupported, "duplicates": audit.duplicates}
    facts |= {name.replace("_", " "): getattr(ratios, name) for name in ratios.__struct_fields__}
    return {name: "nothing to divide" if value is None else value for name, value in facts.items()}


def _nothing(shown: Shown) -> str:
    if shown.served.target.state is State.INELIGIBLE:
        return (
            f"No claims: `{safe(shown.action.principal)}` may read none of the documents below, or they are withdrawn"
        )
    return "No claims: its sources assert nothing that the schema asks for"


def _claim_lines(shown: Shown, evidence: Mapping[str, Evidence], number: int, claim: Claim) -> list[str]:
    values = " · ".join(f"{field}: {safe(claim.values[field])}" for field in shown.fields)
    margin = f"{number}. "
    lines = [f"{margin}{click.style(values, bold=True)}"]
    for cited in claim.evidence:
        lines += [f"{'':{len(margin)}}{line}" for line in _evidence_lines(evidence[cited], shown.lines[cited])]
    return lines


def _evidence_lines(evidence: Evidence, line: int) -> list[str]:
    place = f"{evidence.doc_id}, version {evidence.version}, [{evidence.start}:{evidence.end}), line {line}"
    return [safe(place), f"“{safe(evidence.quote)}”"]


def _document(shown: Shown) -> dict[str, Any]:
    result, target, action = shown.served.result, shown.served.target, shown.action
    assert target.entry is not None
    evidence = {record.id: _evidence_document(record, shown.lines[record.id]) for record in result.evidence}
    audit = {"audit": msgspec.to_builtins(result.audit)} if isinstance(result.audit, Audit) else {}
    return {
        **audit,
        "label": target.label,
        "state": target.state.value,
        "dossier": action.dossier,
        "title": shown.title,
        "source": action.source,
        "principal": action.principal,
        "toolchain": action.toolchain,
        "key": target.key,
        "built": target.entry.created,
        "invocation": target.entry.invocation,
        "how": target.entry.how.value,
        "request": target.entry.request,
        "generation": target.entry.generation,
        "result": target.entry.result,
        "partial_because": [{"label": label, "state": state} for label, state in _children(shown)],
        "invalid_below": list(shown.invalid_below),
        "repairs": list(result.repairs),
        "claims": [
            {
                "values": {field: claim.values[field] for field in shown.fields},
                "evidence": [evidence[cited] for cited in claim.evidence],
            }
            for claim in result.claims
        ],
    }


def _evidence_document(evidence: Evidence, line: int) -> dict[str, Any]:
    return {
        "id": evidence.id,
        "document": evidence.doc_id,
        "version": evidence.version,
        "start": evidence.start,
        "end": evidence.end,
        "line": line,
        "quote": evidence.quote,
        "text_sha256": evidence.text_sha256,
    }
