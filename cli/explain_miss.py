"""`gsum explain-miss LABEL`: why a target would run, or ran in a past build. Executes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click
import msgspec

from gsum.cli.context import Config, current_config, options, reading_store
from gsum.cli.render import counted, emit, emit_json, safe, state_text
from gsum.cli.targets import open_target
from gsum.engine.explain import (
    Cause,
    CauseKind,
    Counterfactual,
    Explanation,
    FieldChange,
    Node,
    Verdict,
    explain,
    explain_between,
    explain_invocation,
)
from gsum.engine.explain.reading import WorkspaceReader
from gsum.engine.query.load import load_outline_around
from gsum.rules.config import Workspace
from gsum.rules.graph import ActionGraph
from gsum.rules.labels import parse_target
from gsum.store.canonical import canonical_json

MOST_TARGETS = 8
"""How many targets of a cause are named."""

DIFF_COLORS = {"+": "green", "-": "red", "@": "cyan"}


@click.command("explain-miss")
@click.argument("label", metavar="[LABEL]", required=False)
@click.option("--last", is_flag=True, help="Explain what ran in the last build instead.")
@click.option("--invocation", metavar="ID", help="Explain what ran in one build; the beginning of its id is enough.")
@click.option("--between", nargs=2, metavar="A B", help="Explain what changed in LABEL from build A to build B.")
@options(principal=True, toolchain=True)
def command(label: str | None, last: bool, invocation: str | None, between: tuple[str, str] | None) -> None:
    """Say why LABEL would run: the tree from it down to the root causes, each cause once, and the smallest set of
    changes that would have to be put back for it to be served again.

    With --last or --invocation, why targets ran in a past build; LABEL then names one of them. With --between, why the
    key of LABEL differs between any two builds.
    """
    config = current_config()
    if last + (invocation is not None) + (between is not None) > 1:
        raise click.UsageError("`--last`, `--invocation` and `--between` exclude each other")
    if last or invocation is not None:
        explanation = _past(config, invocation, label)
    elif label is None:
        raise click.UsageError("missing argument `LABEL`")
    elif between is not None:
        explanation = _between(config, between, label)
    else:
        explanation = _now(config, label)
    if config.json:
        emit_json("explain-miss", _document(explanation))
        return
    for line in _lines(explanation):
        emit(config, line)


def _now(config: Config, label: str) -> Explanation:
    target = open_target(config, label)
    with reading_store(config, config.root) as store:
        return explain(target.universe, store, target.documents, target.label)


def _between(config: Config, between: tuple[str, str], label: str) -> Explanation:
    name = str(parse_target(label))
    workspace, graph = _outline(config, name)
    principal = config.principal or workspace.section.principal
    with reading_store(config, config.root) as store:
        return explain_between(store, WorkspaceReader(workspace, graph, store), principal, *between, name)


def _outline(config: Config, label: str | None) -> tuple[Workspace, ActionGraph]:
    """Load the dossier of a label, as far as it is there now; else everything."""
    return load_outline_around(config.root, label, principal=config.principal, toolchain=config.toolchain)


def _past(config: Config, invocation: str | None, label: str | None) -> Explanation:
    name = None if label is None else str(parse_target(label))
    workspace, graph = _outline(config, name)
    principal = config.principal or workspace.section.principal
    with reading_store(config, config.root) as store:
        return explain_invocation(store, WorkspaceReader(workspace, graph, store), principal, invocation, name)


def _lines(explanation: Explanation) -> Iterator[str]:
    yield _headline(explanation)
    if not explanation.runs:
        return
    if any(cause.kind is not CauseKind.NEVER_BUILT for cause in explanation.causes):
        shown: set[int] = set()
        for node in explanation.nodes:
            yield ""
            yield from _tree(explanation, node, shown)
    for number, cause in enumerate(explanation.causes, 1):
        yield ""
        yield from _cause_lines(explanation, number, cause)
    if explanation.way_back is not None:
        yield ""
        yield from _way_back_lines(explanation, explanation.way_back)
    if explanation.invocation is None:
        yield f"\n{click.style('hint:', fg='cyan', bold=True)} gsum build {explanation.label}"


def _headline(explanation: Explanation) -> str:
    label, causes = explanation.label, counted(len(explanation.causes), "cause")
    runs = counted(len(explanation.runs), "target")
    match explanation.verdict:
        case Verdict.CURRENT:
            return f"{label} is current: nothing would run"
        case Verdict.SERVED if label is not None:
            return f"{label} did not run in build {explanation.invocation}: it was served, or not reached"
        case Verdict.SERVED:
            return f"nothing ran in build {explanation.invocation}"
        case Verdict.RAN:
            return f"build {explanation.invocation}: {runs} ran; {causes}"
        case Verdict.INCOMPLETE:
            return f"{label} has an {state_text('INCOMPLETE')} entry: {runs} would run; {causes}"
        case Verdict.SAME:
            return f"{label} is the same in builds {explanation.before} and {explanation.invocation}"
        case Verdict.DIFFERS:
            which = f"{label} from build {explanation.before} to {explanation.invocation}"
            return f"{which}: {counted(len(explanation.runs), 'target')} changed; {causes}"
        case Verdict.STALE | Verdict.NOT_BUILT:
            return f"{label} is {state_text(explanation.verdict.value)}: {runs} would run; {causes}"


def _tree(explanation: Explanation, top: Node, shown: set[int]) -> Iterator[str]:
    """Yield a tree of targets with causes as its leaves; a cause is written out where it first appears."""
    aside = " (current)" if explanation.invocation is None else " (served)"
    aside = " (same)" if explanation.before is not None else aside
    stack: list[tuple[Node | int, str, str]] = [(top, "", "")]
    while stack:
        item, lead, follow = stack.pop()
        if isinstance(item, int):
            text = "see above" if item in shown else safe(explanation.causes[item].text)
            shown.add(item)
            yield f"{lead}{item + 1}. {text}"
            continue
        yield f"{lead}{item.label}{'' if item.runs else aside}"
        below: list[Node | int] = [*item.causes, *item.children]
        for place, other in reversed(list(enumerate(below))):
            branch, rest = ("└─ ", "   ") if place == len(below) - 1 else ("├─ ", "│  ")
            stack.append((other, follow + branch, follow + rest))


def _cause_lines(explanation: Explanation, number: int, cause: Cause) -> Iterator[str]:
    lead = f"{number}. "
    indent = " " * len(lead)
    yield f"{lead}{click.style(safe(cause.text), bold=True)}"
    yield f"{indent}{_targets(explanation, cause.targets)}"
    if cause.note is not None:
        yield f"{indent}note: {cause.note}"
    for line in cause.details:
        yield f"{indent}  {click.style(safe(line), fg=DIFF_COLORS.get(line[:1]))}".rstrip()


def _way_back_lines(explanation: Explanation, found: Counterfactual) -> Iterator[str]:
    """Yield what to put back: causes shown above by their numbers, others in full."""
    numbers = {cause.identity: number for number, cause in enumerate(explanation.causes, 1)}
    lead, proof = f"to be served again as in build {found.invocation}, put back", f"(key {found.key[:12]}, recomputed)"
    if all(cause.identity in numbers for cause in found.causes):
        which = ", ".join(str(number) for number in sorted(numbers[cause.identity] for cause in found.causes))
        yield f"{lead} {which} {proof}"
        return
    yield f"{lead} {proof}:"
    for cause in found.causes:
        number = numbers.get(cause.identity)
        yield f"   {'-' if number is None else f'{number}.'} {safe(cause.text)}"


def _targets(explanation: Explanation, targets: Sequence[str]) -> str:
    """Return how many targets run because of a cause, and the first of them, shortened where all are of one dossier."""
    groups = {label.rpartition("/")[0] for label in explanation.runs}
    named = [label.rpartition("/")[2] if len(groups) == 1 else label for label in targets[:MOST_TARGETS]]
    more = [f"and {len(targets) - MOST_TARGETS:,} more"] if len(targets) > MOST_TARGETS else []
    return f"{counted(len(targets), 'target')}: {', '.join(named + more)}"


def _document(explanation: Explanation) -> dict[str, Any]:
    return {
        "label": explanation.label,
        "verdict": explanation.verdict.value,
        "principal": explanation.principal,
        "toolchain": explanation.toolchain,
        "invocation": explanation.invocation,
        "before": explanation.before,
        "way_back": _way_back_document(explanation.way_back),
        "runs": explanation.runs,
        "causes": [_cause_document(cause) for cause in explanation.causes],
        "nodes": [document for node in explanation.nodes for document in _node_documents(node)],
    }


def _cause_document(cause: Cause) -> dict[str, Any]:
    return {
        "kind": cause.kind.value,
        "subject": cause.subject,
        "text": cause.text,
        "fields": [_field_document(change) for change in cause.fields],
        "details": cause.details,
        "note": cause.note,
        "targets": cause.targets,
    }


def _way_back_document(found: Counterfactual | None) -> dict[str, Any] | None:
    if found is None:
        return None
    causes = [_cause_document(cause) for cause in found.causes]
    put_back = [{name: cause[name] for name in ("kind", "subject", "text", "fields")} for cause in causes]
    return {"key": found.key, "invocation": found.invocation, "put_back": put_back}


def _field_document(change: FieldChange) -> dict[str, str | None]:
    return {"name": change.name, "before": _json_text(change.before), "after": _json_text(change.after)}


def _json_text(value: object) -> str | None:
    return None if value is msgspec.UNSET else canonical_json(value).decode()


def _node_documents(node: Node) -> Iterator[dict[str, Any]]:
    yield {
        "label": node.label,
        "key": node.key,
        "previous": node.previous,
        "runs": node.runs,
        "causes": node.causes,
        "children": [child.label for child in node.children],
    }
    for child in node.children:
        yield from _node_documents(child)
