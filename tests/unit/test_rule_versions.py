"""A rule's version stands in every action key, so what decides its requests and results can't change without it.

When this fails: bump `RULE_VERSION` of the rule if the same inputs could now give another request or result.
Otherwise put the new digest and a reason into tests/golden/rule_versions.json.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.sources import closure, meaning_digest, path_of

from gsum.rules.kinds import RULES

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests/golden/rule_versions.json").read_text("utf-8"))
_TYPES = ("rules.config", "rules.graph", "rules.rule", "rules.snapshot")
_STORE = ("store.canonical", "store.digests", "store.errors", "store.records")
APART = frozenset(f"gsum.{name}" for name in (*_TYPES, *_STORE))
"""Types and hashes that these modules share with the rest: their bytes have schema versions and golden keys."""


def modules_of(rule: str) -> list[str]:
    return closure(f"gsum.rules.kinds.{rule}", ROOT, APART)


def digest_of(rule: str) -> str:
    return meaning_digest([(name, path_of(ROOT, name).read_text("utf-8")) for name in modules_of(rule)])


def test_every_rule_is_guarded() -> None:
    assert set(GOLDEN) == set(RULES)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_rule_s_code_and_its_version_change_together(rule: str) -> None:
    pinned = GOLDEN[rule]
    now = {"version": RULES[rule].version, "digest": digest_of(rule)}
    assert now == {"version": pinned["version"], "digest": pinned["digest"]}, __doc__
    assert pinned["reason"].strip()


def test_the_guard_covers_what_decides_requests_and_results() -> None:
    decisive = {
        "documents",
        "evidence",
        "facts",
        "parsing",
        "rendering",
        "grammar",
        "claims",
        "requests",
        "expand.shape",
        "expand.tree",
    }
    assert {f"gsum.rules.{name}" for name in decisive} <= set(modules_of("summary_tree"))
    assert "gsum.rules.kinds.resolving" in modules_of("extract")
    assert "gsum.rules.grammar" not in modules_of("extract")


def test_comments_and_docstrings_do_not_count_and_code_does() -> None:
    code = "X = 1\n\ndef f(a: int) -> int:\n    return a + 1\n"
    same = '"""Doc."""\nX = 1  # one\n"""One."""\n\ndef f(\n    a: int,\n) -> int:\n    """Add."""\n    return a + 1\n'
    assert meaning_digest([("m", code)]) == meaning_digest([("m", same)])
    for other in (code.replace("+ 1", "+ 2"), code.replace("+", "-"), code.replace("X", "Y"), code + "Z = 'z'\n"):
        assert meaning_digest([("m", code)]) != meaning_digest([("m", other)])
