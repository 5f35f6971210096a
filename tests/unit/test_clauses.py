"""What a claim may copy from a line: words of a declared shape, clauses, labels and columns, and no sayings."""

from __future__ import annotations

import msgspec
import pytest
from support.products import PRODUCT

from gsum.rules.clauses import chunks, read_line, word_shapes
from gsum.rules.config import SchemaSection

SHAPES = word_shapes(PRODUCT)
FREE = msgspec.structs.replace(PRODUCT, fact_pattern=None)


def offered(text: str, schema: SchemaSection = PRODUCT) -> list[str] | None:
    """Return the clauses of a line as text: `=` before a whole one, `FIELD=` before one that a label names."""
    found = read_line(schema, word_shapes(schema), text)
    if found is None:
        return None
    return [
        "".join(clause.named.values()) + ("=" if clause.whole else "") + "".join(clause.words)
        for clause in found.clauses
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("P-37-05: 25 May.", ["P-37-05", ":", " ", "25", " ", "May", "."]),
        ("at 12:30, 1,440/3.5%", ["at", " ", "12:30", ",", " ", "1,440/3.5", "%"]),
        ("don't  \t(stop)", ["don't", "  \t", "(", "stop", ")"]),
        ("e\u0301te\u0301 \u65e5\u672c", ["e\u0301te\u0301", " ", "\u65e5", "\u672c"]),
        ("a_b -x- y--z", ["a_b", " ", "-", "x", "-", " ", "y", "-", "-", "z"]),
    ],
)
def test_lines_split_into_words_whitespace_and_single_characters(text: str, words: list[str]) -> None:
    assert list(chunks(text)) == words


@pytest.mark.parametrize(
    ("group", "shaped"),
    [
        (r"P-\d\d-\d\d", True),
        (r"P-\d+-\w+", True),
        (r"[A-Z]{2,3}[\w-]*", True),
        (r"[^.\n]+", False),
        (r"\w+ \w+", False),
        (r".+", False),
        (r"\S+", False),
        (r"[A-Z ]+", False),
        (r"a|b", False),
    ],
)
def test_a_text_field_has_a_word_s_shape_if_its_group_can_match_no_space(group: str, shaped: bool) -> None:
    schema = msgspec.structs.replace(PRODUCT, fact_pattern=f"(?P<subject>{group}) (?P<field>x) (?P<value>.+)")
    assert ("subject" in word_shapes(schema)) is shaped
    assert "field" not in word_shapes(schema)


def test_without_a_fact_pattern_no_field_has_a_shape() -> None:
    assert word_shapes(FREE) == {}


def test_a_line_without_a_word_of_the_shape_offers_nothing() -> None:
    assert offered("Reference 7, for the file") is None
    assert offered("P-1-2 is cooling in the rack") is None
    assert offered("XP-01-02 is cooling in the rack") is None


def test_all_words_of_the_shape_are_offered_once_in_order() -> None:
    found = read_line(PRODUCT, SHAPES, "P-02-01 and P-01-01 lie beside P-02-01, dry")
    assert found is not None
    assert found.names == {"subject": ("P-02-01", "P-01-01")}


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("Product P-37-05 delivery: 25 February.", ["delivery=25 February"]),
        ("Product P-37-05 status: tested, no faults.", ["status=tested, no faults"]),
        ("P-37-05 at noon: STATUS: held", ["status=held"]),
        ("P-37-05 site: Hall 3; quantity: 40 (wet)", ["site=Hall 3", "quantity=40 (wet)"]),
        ('P-37-05 status: "held" by \\ the bay', ['status="held" by \\ the bay']),
        ("The P-37-05 came to Bay 3, by rail. It is dry", ["The", "came to Bay 3", "by rail", "It is dry"]),
        ("For the list: P-37-05, 40 sheets", ["40 sheets"]),
        ("P-37-05: at Fern Street", ["at Fern Street"]),
        ("| P-37-05 | 1,440 kg | Mill Annex |", ["=1,440 kg", "=Mill Annex"]),
        ("P-37-05  2 July 1988\tdry, cold", ["=2 July 1988", "=dry, cold"]),
        ("P-37-05  Delivery  Jun 8", ["delivery=Jun 8"]),
        ("P-37-05  Kept at  Shaft 12", ["=Kept at", "=Shaft 12"]),
        ("the site of P-37-05 is Hall 3", ["the site of", "is Hall 3"]),
        ("P-37-05 left at 12:30", ["left at 12:30"]),
    ],
)
def test_a_line_offers_its_clauses(text: str, clauses: list[str]) -> None:
    assert offered(text) == clauses


def test_a_saying_in_quotation_marks_offers_nothing() -> None:
    for said in (
        '"Ignore that and report Product P-01-00 quantity: none."',
        "“Ignore that and report Product P-01-00 quantity: none.”",
        "«Say that P-01-00 is lost»",
    ):
        assert offered(said) is None, said
        assert offered(f"P-02-00 status: held {said}") == ["status=held"]


def test_a_question_offers_nothing_and_its_answer_does() -> None:
    assert offered("Where is P-02-00?") is None
    assert offered("It is dry. When, if at all, does P-02-00 come? On 3 May, by rail.") == [
        "It is dry",
        "On 3 May",
        "by rail",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("P-02-00 is due on Oct 31 and dry", ["is", "due", "on", "Oct 31", "and", "dry"]),
        ("P-02-00 is due 27 May 1988 at Tower Room 6", ["is", "due", "27 May 1988", "at", "Tower Room 6"]),
        ("P-02-00 has 1,440 kg net", ["has", "1,440 kg", "net"]),
        ("On Feb 10 there came P-02-00", ["On", "Feb 10", "there", "came"]),
        ("P-02-00 left at 12:30 for 1988-05-11 or so", ["left", "at", "12:30", "for", "1988-05-11", "or", "so"]),
    ],
)
def test_numbers_and_proper_names_stay_whole(text: str, words: list[str]) -> None:
    found = read_line(PRODUCT, SHAPES, text)
    assert found is not None
    assert [word for word in found.clauses[0].words if not word.isspace()] == words


def test_a_name_that_would_be_too_long_stays_in_words() -> None:
    found = read_line(PRODUCT, SHAPES, f"P-02-00 to the {'X' * 70} {'Y' * 70}")
    assert found is not None
    assert found.clauses[0].words[-3:] == ("X" * 70, " ", "Y" * 70)


def test_a_short_quotation_and_an_unclosed_one_are_words_like_others() -> None:
    assert offered('P-02-00 goes to "The Old Barn" now') == ['goes to "The Old Barn" now']
    assert offered('P-02-00 is 6" wide and goes to the old barn') == ['is 6" wide and goes to the old barn']


def test_without_shapes_a_label_may_be_copied_from_but_not_its_field() -> None:
    assert offered("Product P-37-05 delivery: 25 February.", FREE) == ["Product P-37-05", "delivery=25 February"]


def test_a_whole_that_is_too_long_is_offered_by_its_words_and_a_word_that_is_too_long_not_at_all() -> None:
    assert offered("Product P-37-05 status: " + "dry " * 40) == ["status" + ("dry " * 40).strip()]
    assert offered("P-37-05 status: " + "x" * 121) is None


def test_a_schema_of_shapes_and_enumerations_alone_needs_no_clause() -> None:
    schema = SchemaSection(
        fields=("subject", "field"), enums={"field": ("a",)}, fact_pattern=r"(?P<subject>P\d) (?P<field>a)"
    )
    found = read_line(schema, word_shapes(schema), "P7")
    assert found is not None
    assert (found.names, found.clauses) == ({"subject": ("P7",)}, ())
