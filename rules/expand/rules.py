"""All expansions by the name that `rule = "…"` gives in BUILD.toml. Pure."""

from __future__ import annotations

from gsum.rules.expand import Expansion
from gsum.rules.expand.audit import AuditExpansion
from gsum.rules.expand.extract import ExtractExpansion
from gsum.rules.expand.tree import TreeExpansion

EXPANSIONS: dict[str, Expansion] = {
    TreeExpansion.name: TreeExpansion(),
    ExtractExpansion.name: ExtractExpansion(),
    AuditExpansion.name: AuditExpansion(),
}
