"""Serving trusts no stored citation: whatever a result claims, it is held to the current snapshot first."""

from __future__ import annotations

import msgspec
import pytest
from support import workspaces
from support.engine import run_build

from gsum.engine.inputs import EvidenceBroken, decode_result
from gsum.engine.serving import serve
from gsum.engine.universe import WorkspaceDocuments, load_universe
from gsum.rules.claims import Claim, Result, Status
from gsum.store.canonical import canonical_json
from gsum.store.local import open_store

LABEL = "//dossier:S-1/root"


class Forging:
    """A store whose one result reads otherwise than it was put, as after a fault that no digest shows."""

    def __init__(self, store, digest, forged: Result) -> None:
        self._store, self._digest, self._forged = store, digest, forged

    def __getattr__(self, name):
        return getattr(self._store, name)

    def get_blob(self, digest):
        return canonical_json(self._forged) if digest == self._digest else self._store.get_blob(digest)


def first_record(**changes):
    def forge(result: Result) -> Result:
        first, *others = result.evidence
        return msgspec.structs.replace(result, evidence=(msgspec.structs.replace(first, **changes), *others))

    return forge


def shifted(result: Result) -> Result:
    first = result.evidence[0]
    return first_record(start=first.start + 1, end=first.end + 1)(result)


def longer(result: Result) -> Result:
    first = result.evidence[0]
    return first_record(end=first.end + 10_000)(result)


def uncited(result: Result) -> Result:
    return msgspec.structs.replace(result, evidence=result.evidence[1:])


def invalid_with_claims(result: Result) -> Result:
    return msgspec.structs.replace(result, status=Status.INELIGIBLE)


def invented(result: Result) -> Result:
    claim = Claim({"subject": "P-9-99", "field": "site", "value": "Vault"}, ("D-00@1:0:5",))
    return msgspec.structs.replace(result, claims=(claim, *result.claims))


@pytest.fixture
def root(tmp_path):
    return workspaces.make_workspace(tmp_path / "ws", {"S-1": 3})


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "store") as opened:
        yield opened


def served(root, store, forge):
    built = run_build(root, store)
    entry = store.entries([built.universe.keys.actions[LABEL].key]).popitem()[1]
    forged = forge(decode_result(store.get_blob(entry.result)))
    universe = load_universe(root, [LABEL])
    return serve(universe, Forging(store, entry.result, forged), WorkspaceDocuments(universe.workspace), LABEL)


def test_a_result_that_is_as_it_was_is_served(root, store):
    assert served(root, store, lambda result: result).result.claims


@pytest.mark.parametrize(
    "forge",
    [
        shifted,
        longer,
        uncited,
        invalid_with_claims,
        invented,
        first_record(quote="Product P-1-00 delivery: 2 March."),
        first_record(doc_id="D-01"),
        first_record(doc_id="D-99"),
        first_record(version="2"),
        first_record(text_sha256="0" * 64),
        first_record(id="D-00@1:0:1"),
    ],
)
def test_a_citation_that_does_not_hold_is_damage_and_shows_no_claim(root, store, forge):
    with pytest.raises(EvidenceBroken) as caught:
        served(root, store, forge)
    assert caught.value.exit_code == 10
    said = f"{caught.value.message} {caught.value.facts} {caught.value.hint}"
    assert LABEL in said
    assert not any(word in said for word in ("March", "Hall", "Vault"))


def test_a_citation_of_a_document_that_may_not_be_read_now_is_damage(root, store):
    """The entry of the key without D-01 cites it all the same."""
    before = run_build(root, store)
    entry = store.entries([before.universe.keys.actions[LABEL].key]).popitem()[1]
    full = decode_result(store.get_blob(entry.result))
    assert any(record.doc_id == "D-01" for record in full.evidence)
    workspaces.withdraw(root, "S-1", "D-01")
    with pytest.raises(EvidenceBroken) as caught:
        served(root, store, lambda _: full)
    assert caught.value.facts["reason"] == "its document is not active and eligible"
