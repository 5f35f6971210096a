"""Evidence ids are injective and parse back, whatever a document is called."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.evidence_ids import Citation, parts_of
from support.products import readable

from gsum.rules.evidence import catalogue, evidence_id, verify

NAMES = st.text(min_size=1, max_size=20) | st.text(
    st.sampled_from("%@: \n\x00\u2028\ud80025aA-"), min_size=1, max_size=8
)
OFFSETS = st.integers(min_value=0, max_value=10**12)
PARTS = st.builds(Citation, NAMES, NAMES, OFFSETS, OFFSETS)


@given(PARTS)
def test_an_id_parses_back_to_its_parts(parts: Citation) -> None:
    text = evidence_id(parts.doc_id, parts.version, parts.start, parts.end)
    assert parts_of(text) == parts
    assert text.count("@") == 1
    assert text.count(":") == 2
    assert not any(char.isspace() or char < " " for char in text)


@given(PARTS, PARTS)
def test_distinct_parts_give_distinct_ids(left: Citation, right: Citation) -> None:
    ids = [evidence_id(p.doc_id, p.version, p.start, p.end) for p in (left, right)]
    assert (ids[0] == ids[1]) == (left == right)


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\n\r\u2028\ufeff"), max_size=60), NAMES)
def test_a_catalogue_verifies_against_its_own_text_and_no_other(text: str, doc_id: str) -> None:
    scope = readable(doc_id, text)
    changed = text + "."
    for record in catalogue(scope, text):
        assert verify(record, scope, text) is None
        assert verify(record, readable(doc_id, changed), changed) is not None
        assert parts_of(record.id) == Citation(doc_id, "1", record.start, record.end)
