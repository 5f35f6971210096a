"""The claim schema of the corpus, and small snapshots over it, for tests of the pure modules of `rules`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gsum.rules.claims import Result
from gsum.rules.config import Prompt, PromptExample, SchemaSection, Strength
from gsum.rules.graph import Action
from gsum.rules.kinds import RULES
from gsum.rules.requests import Request
from gsum.rules.rule import Finished, Inputs, ModelTerms
from gsum.rules.snapshot import Scope, Snapshot
from gsum.store.digests import blob_digest
from gsum.store.records import Generation, StopReason

FIELDS = ("delivery", "status", "quantity", "site")
PRODUCT = SchemaSection(
    fields=("subject", "field", "value"),
    enums={"field": FIELDS},
    fact_pattern=r"Product (?P<subject>P-\d\d-\d\d) (?P<field>\w+): (?P<value>[^.\n]+)\.",
)
PROMPT = Prompt("You read archives.", "Report the facts.", (PromptExample("[1] Old input", '{"claims":[]}'),))


def readable(doc_id: str, text: str, version: str = "1") -> Scope:
    """Return the scope of a document that may be read."""
    return Scope(doc_id, True, True, 1, version, blob_digest(text.encode()))


def hidden(doc_id: str, *, active: bool = True) -> Scope:
    """Return the scope of a document that may not be read, or of a withdrawn one."""
    return Scope(doc_id, active, not active, 2, None, None)


def snapshot_of(scopes: Sequence[Scope]) -> Snapshot:
    """Return a snapshot of dossier `S-1` with one path for each readable document."""
    paths = {scope.id: f"corpus/S-1/{scope.id}.txt" for scope in scopes if scope.readable}
    return Snapshot("corpus", "S-1", "Letters", "reader-demo", tuple(scopes), paths)


def inputs_of(
    *,
    text: str | None = None,
    children: Sequence[Result] = (),
    strength: Strength = Strength.NONE,
    schema: SchemaSection = PRODUCT,
) -> Inputs:
    """Return inputs with the test prompt and a toolchain of the given strength."""
    return Inputs(schema, "perimeter-key", text, tuple(children), PROMPT, ModelTerms("toolchain-key", strength, 384))


def generated(text: str, stop: StopReason = StopReason.EOS) -> Generation:
    """Return a generation of a text."""
    return Generation((), text, stop)


def run_tree(
    actions: Sequence[Action],
    texts: Mapping[str, str],
    answer: Callable[[Request], str],
    strength: Strength = Strength.NONE,
) -> dict[str, Result]:
    """Render and resolve all actions of a rule in order, asking `answer` where a model would be asked."""
    results: dict[str, Result] = {}
    for action in actions:
        text = texts[action.scope.id] if action.scope is not None and action.scope.readable else None
        children = [results[child] for child in action.children]
        inputs = inputs_of(text=text, children=children, strength=strength)
        rule = RULES[action.rule]
        rendered = rule.render(action, inputs)
        if isinstance(rendered, Finished):
            results[action.label] = rendered.result
        else:
            results[action.label] = rule.resolve(action, inputs, generated(answer(rendered)))
    return results
