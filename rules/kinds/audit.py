"""The rule `audit`: a summary against the gold of what it may read, as counts; no model. Pure.

The only rule whose actions have gold among their inputs; nothing may be built from what they yield.
"""

from __future__ import annotations

from typing import NoReturn

from gsum.rules.claims import Result, Status
from gsum.rules.expand.audit import AuditExpansion
from gsum.rules.gold import Gold, GoldError, decode_gold
from gsum.rules.graph import Action
from gsum.rules.metrics import audit
from gsum.rules.rule import Finished, Inputs
from gsum.store.records import Generation

RULE_VERSION = 1


class AuditRule(AuditExpansion):
    """Audit the root of each dossier of another package."""

    version = RULE_VERSION

    def render(self, action: Action, inputs: Inputs) -> Finished:
        """Return the counts of the summary below; never a request."""
        if inputs.text is None or len(inputs.children) != 1:
            raise ValueError(f"`{action.label}` needs its gold and one summary")
        gold = decode_gold(inputs.text)
        (summary,) = inputs.children
        _require_same_texts(action, summary, gold)
        return Finished(Result(Status.VALID, audit=audit(summary, gold, inputs.schema)), ineligible=False)

    def resolve(self, action: Action, inputs: Inputs, generation: Generation) -> NoReturn:
        """Refuse: nothing is ever generated for this rule.

        Raises:
            TypeError: always.
        """
        del inputs, generation
        raise TypeError(f"`{self.name}` takes no generation for `{action.label}`")


def _require_same_texts(action: Action, summary: Result, gold: Gold) -> None:
    """Refuse gold that was made for another text of a version than the one that is cited."""
    labelled = {(document.document, document.version): document.text_sha256 for document in gold.documents}
    for record in summary.evidence:
        made_for = labelled.get((record.doc_id, record.version))
        if made_for is not None and made_for != record.text_sha256:
            raise GoldError(
                f"the gold of document `{record.doc_id}` was made for another text",
                facts={"target": action.label, "version": record.version},
                hint=f"label version `{record.version}` again, with the `text_sha256` of its text",
            )
