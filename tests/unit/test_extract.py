"""The rule `extract`: every fact line, no model, nothing dropped."""

from __future__ import annotations

import msgspec
import pytest
from support.products import PRODUCT, generated, hidden, inputs_of, readable, snapshot_of

from gsum.rules.claims import Claim, Result, Status
from gsum.rules.config import ExtractPackage, SummaryTreePackage
from gsum.rules.evidence import catalogue
from gsum.rules.expand.shape import EmptyDossierError
from gsum.rules.graph import Action, ActionKind
from gsum.rules.kinds import RULES
from gsum.rules.kinds.extract import NoFactPatternError
from gsum.rules.rule import Finished
from gsum.rules.snapshot import Scope
from gsum.store.canonical import canonical_json

EXTRACT = RULES["extract"]
PACKAGE = ExtractPackage("corpus", "product")
TEXT = (
    "Reference 7\r\nProduct P-01-00 delivery: 25 February.\r\n"
    '"Product P-01-00 site: Hall 9."\nOld: Product P-01-00 site: Hall 8.\n'
    "Product P-01-00 price: 12.\nProduct P-01-00 site: Hall 3.\n"
)
SCOPE = readable("D-0", TEXT)
RECORDS = catalogue(SCOPE, TEXT)
DELIVERY = Claim({"subject": "P-01-00", "field": "delivery", "value": "25 February"}, (RECORDS[1].id,))
SITE = Claim({"subject": "P-01-00", "field": "site", "value": "Hall 3"}, (RECORDS[5].id,))


def expand(*scopes: Scope) -> tuple[Action, ...]:
    return EXTRACT.expand("baseline", PACKAGE, snapshot_of(scopes), None)


def finished(action: Action, text: str | None = None, children: tuple[Result, ...] = ()) -> Finished:
    rendered = EXTRACT.render(action, inputs_of(text=text, children=children))
    assert isinstance(rendered, Finished)
    return rendered


LEAF, ROOT = expand(SCOPE)


def test_a_dossier_expands_to_leaves_and_a_root_over_all_of_them() -> None:
    scopes = [readable(f"D-{slot}", TEXT) for slot in range(12)]
    scopes[4] = hidden("D-4")
    *leaves, root = expand(*scopes)
    assert [leaf.label for leaf in leaves] == [f"//baseline:S-1/leaf-{slot:02d}" for slot in range(12)]
    assert root.label == "//baseline:S-1/root"
    assert root.children == tuple(leaf.label for leaf in leaves)
    assert {leaf.kind for leaf in leaves} == {ActionKind.EXTRACT}
    assert root.kind is ActionKind.MERGE
    assert {(a.prompt, a.toolchain, a.input_tokens, a.fan_in, a.schema) for a in (*leaves, root)} == {
        (None, None, None, None, "product")
    }
    assert [leaf.path for leaf in leaves][3:5] == ["corpus/S-1/D-3.txt", None]


def test_a_leaf_keeps_every_line_that_is_a_fact_as_a_whole() -> None:
    assert finished(LEAF, TEXT) == Finished(
        Result(Status.VALID, (DELIVERY, SITE), (RECORDS[1], RECORDS[5])), ineligible=False
    )


def test_a_document_without_facts_is_valid_and_empty() -> None:
    text = "Nothing to report.\n"
    assert finished(expand(readable("D-0", text))[0], text).result == Result(Status.VALID)


def test_max_claims_does_not_bound_an_extraction() -> None:
    text = "".join(f"Product P-01-{number:02d} site: Hall 3.\n" for number in range(60))
    assert len(finished(expand(readable("D-0", text))[0], text).result.claims) == 60


def test_the_root_merges_equal_claims_with_the_union_of_their_evidence() -> None:
    other = readable("D-1", TEXT)
    again = catalogue(other, TEXT)
    repeated = Claim(SITE.values, (again[5].id, RECORDS[5].id))
    left = Result(Status.VALID, (DELIVERY, SITE), (RECORDS[1], RECORDS[5]))
    right = Result(Status.VALID, (repeated,), (again[5], RECORDS[5]))
    merged = finished(ROOT, children=(left, Result(Status.INELIGIBLE), right)).result
    assert merged == Result(
        Status.VALID,
        (DELIVERY, Claim(SITE.values, (RECORDS[5].id, again[5].id))),
        (RECORDS[1], RECORDS[5], again[5]),
    )
    stored = tuple(msgspec.json.decode(canonical_json(child), type=Result) for child in (left, right))
    assert finished(ROOT, children=stored).result == merged


def test_what_is_not_eligible_is_ineligible() -> None:
    nothing = Finished(Result(Status.INELIGIBLE), ineligible=True)
    for scope in (hidden("D-0"), hidden("D-0", active=False)):
        assert finished(expand(scope)[0]) == nothing
    assert finished(ROOT, children=(nothing.result, nothing.result)) == nothing


def test_a_schema_without_a_fact_pattern_is_an_error_that_says_what_to_add() -> None:
    schema = msgspec.structs.replace(PRODUCT, fact_pattern=None)
    with pytest.raises(NoFactPatternError) as caught:
        EXTRACT.render(LEAF, inputs_of(text=TEXT, schema=schema))
    assert caught.value.exit_code == 3
    assert caught.value.hint == "add `fact_pattern` to `[schema.product]` in BUILD.toml"


def test_a_dossier_without_documents_is_an_error() -> None:
    with pytest.raises(EmptyDossierError):
        expand()


def test_programming_errors_are_loud() -> None:
    with pytest.raises(TypeError):
        EXTRACT.resolve(LEAF, inputs_of(text=TEXT), generated("{}"))
    with pytest.raises(TypeError):
        EXTRACT.expand("b", SummaryTreePackage("c", "m", "r", "p", 2, 1, 1), snapshot_of([SCOPE]), None)
