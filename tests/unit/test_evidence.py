"""Evidence ids, the catalogue, and every reason for which a record no longer holds."""

from __future__ import annotations

import msgspec
import pytest
from support.evidence_ids import parts_of
from support.products import hidden, readable

from gsum.rules.documents import Evidence
from gsum.rules.evidence import catalogue, evidence_id, verify
from gsum.rules.snapshot import Scope

TEXT = "\ufeffReference 7\r\n\r\nProduct P-01-00 site: Hall \u00e9\u2028.\r\n"
SCOPE = readable("D-1", TEXT, "3")


def record() -> Evidence:
    return catalogue(SCOPE, TEXT)[1]


def test_the_catalogue_has_a_record_for_each_non_empty_line() -> None:
    first, second = catalogue(SCOPE, TEXT)
    assert (first.id, first.quote) == ("D-1@3:1:12", "Reference 7")
    assert second == Evidence(
        id="D-1@3:16:46",
        doc_id="D-1",
        version="3",
        start=16,
        end=46,
        quote="Product P-01-00 site: Hall \u00e9\u2028.",
        # printf '\xef\xbb\xbfReference 7\r\n\r\nProduct P-01-00 site: Hall \xc3\xa9\xe2\x80\xa8.\r\n' | sha256sum
        text_sha256="922ca3db0d611322159948819fa6e7fe9a67420e25b54a4593d29ce5e9fe874f",
    )


def test_the_catalogue_refuses_a_document_that_may_not_be_read() -> None:
    with pytest.raises(ValueError, match="not readable"):
        catalogue(hidden("D-1"), TEXT)


def test_every_record_of_the_catalogue_verifies() -> None:
    assert [verify(found, SCOPE, TEXT) for found in catalogue(SCOPE, TEXT)] == [None, None]


@pytest.mark.parametrize(
    ("scope", "text", "reason"),
    [
        (None, None, "document `D-1` is not in the dossier"),
        (readable("D-2", TEXT, "3"), TEXT, "document `D-1` is not in the dossier"),
        (hidden("D-1", active=False), None, "document `D-1` is withdrawn"),
        (hidden("D-1"), None, "document `D-1` may not be read by this principal"),
        (SCOPE, None, "the text of document `D-1` is absent"),
        (readable("D-1", TEXT, "4"), TEXT, "document `D-1` is at version `4`, the record at `3`"),
        (SCOPE, TEXT + "x", "the text of document `D-1` is not the one of the snapshot"),
        (
            readable("D-1", TEXT + "x", "3"),
            TEXT + "x",
            "the record's text hash is not that of document `D-1` at version `3`",
        ),
    ],
)
def test_a_record_fails_where_the_snapshot_moved_on(scope: Scope | None, text: str | None, reason: str) -> None:
    assert verify(record(), scope, text) == reason


def test_text_at_hand_does_not_make_an_ineligible_document_citable() -> None:
    for scope in (hidden("D-1"), hidden("D-1", active=False)):
        reason = verify(record(), scope, TEXT)
        assert reason is not None
        assert "version" not in reason


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (5, 5), (6, 5), (0, len(TEXT) + 1), (len(TEXT), len(TEXT) + 1)])
def test_an_interval_outside_the_text_fails(start: int, end: int) -> None:
    forged = msgspec.structs.replace(record(), start=start, end=end, quote=TEXT[start:end], id=f"D-1@3:{start}:{end}")
    assert verify(forged, SCOPE, TEXT) == f"the interval {start}:{end} is not inside the text of 48 characters"


def test_a_quote_must_be_the_text_character_by_character() -> None:
    forged = msgspec.structs.replace(record(), quote=record().quote.replace("Hall", "hall"))
    assert verify(forged, SCOPE, TEXT) == "the quote is not the text at 16:46 of document `D-1`"


def test_an_id_must_name_its_own_record() -> None:
    for identifier in ("D-1@3:16:45", "D-2@3:16:46", "D-1@2:16:46", "", "D-1@3:016:46"):
        forged = msgspec.structs.replace(record(), id=identifier)
        assert verify(forged, SCOPE, TEXT) == "the record's id does not name its document, version and interval"


def test_reserved_characters_are_escaped() -> None:
    identifier = evidence_id("a@b:c d%e\n\u2028", "\u00e9 1", 0, 12)
    assert identifier == "a%40b%3Ac%20d%25e%0A%E2%80%A8@\u00e9%201:0:12"
    assert parts_of(identifier) == ("a@b:c d%e\n\u2028", "\u00e9 1", 0, 12)
