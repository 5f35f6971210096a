"""The rule kinds: how a package expands to actions, and how an action is rendered and resolved. Pure."""

from __future__ import annotations

from gsum.rules.kinds.audit import AuditRule
from gsum.rules.kinds.extract import Extract
from gsum.rules.kinds.summary_tree import SummaryTree
from gsum.rules.rule import Rule

RULES: dict[str, Rule] = {SummaryTree.name: SummaryTree(), Extract.name: Extract(), AuditRule.name: AuditRule()}
"""All rule kinds by the name that `rule = "…"` gives in BUILD.toml."""
