"""Labels and patterns."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsum.rules.labels import (
    Extent,
    Label,
    LabelError,
    Pattern,
    document_label,
    nearest,
    parse_label,
    parse_pattern,
    parse_target,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("//dossier:S-037/root", (Extent.TARGET, "dossier", "S-037", "root")),
        ("//dossier:S-037", (Extent.ROOT, "dossier", "S-037", "")),
        ("//dossier:S-037/...", (Extent.PARTS, "dossier", "S-037", "")),
        ("//dossier:all", (Extent.ROOTS, "dossier", "", "")),
        ("//dossier:...", (Extent.PACKAGE, "dossier", "", "")),
        ("//...", (Extent.TREE, "", "", "")),
        ("//reports/...", (Extent.TREE, "reports", "", "")),
        ("//reports/legal:...", (Extent.PACKAGE, "reports/legal", "", "")),
        ("//reports/legal:Akte-Ä/leaf-00", (Extent.TARGET, "reports/legal", "Akte-Ä", "leaf-00")),
        ("//dossier:allowed", (Extent.ROOT, "dossier", "allowed", "")),
    ],
)
def test_a_pattern_says_what_it_covers(text, expected):
    assert parse_pattern(text) == Pattern(text, *expected)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("", 0),
        ("dossier:S-1", 0),
        ("//", 2),
        ("//dossier", 9),
        ("//dossier:", 10),
        ("//dossier: S-1", 10),
        ("//dossier:S 1", 11),
        ("//dossier:S-1/", 14),
        ("//dossier:S-1/le af", 16),
        ("//dos sier:S-1", 5),
        ("//:S-1", 2),
        ("//a//b:S-1", 4),
        ("//a/../b:S-1", 4),
        ("//dossier:S-1:root", 13),
        ("//dossier:...x", 10),
        ("//a/...:x", 4),
        ("//dossier:S-1/a\nb", 15),
    ],
)
def test_a_malformed_pattern_is_refused_with_a_caret_at_the_place(text, column):
    with pytest.raises(LabelError) as caught:
        parse_pattern(text)
    assert caught.value.exit_code == 2
    assert caught.value.hint
    assert caught.value.excerpt is not None
    shown, carets = caught.value.excerpt.split("\n")
    assert len(shown) == len(text)
    assert carets.index("^") == column


@pytest.mark.parametrize("text", ["//dossier:all", "//dossier:...", "//...", "//dossier:S-1/..."])
def test_a_pattern_for_many_is_no_label(text):
    with pytest.raises(LabelError, match="names many targets"):
        parse_label(text)


def test_labels_format_as_they_parse():
    for text in ("//dossier:S-1/root", "//prompt:map-v1", "//corpus:S-037/D-37-11", "//prompt:reports/map-v1"):
        assert str(parse_label(text)) == text
    assert parse_target("//dossier:S-1") == Label("dossier", "S-1", "root")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_document_id_has_a_label_that_gives_it_back(document):
    label = document_label("corpus", "S-1", document)
    assert parse_pattern(str(label)).extent is Extent.TARGET
    assert unquote(parse_label(str(label)).part) == document


def test_tree_patterns_cover_folders_not_prefixes():
    reports = parse_pattern("//reports/...")
    assert [p for p in ("reports", "reports/legal", "reports-old", "other") if reports.covers_package(p)] == [
        "reports",
        "reports/legal",
    ]
    assert not parse_pattern("//reports:...").covers_package("reports/legal")


def test_nearest_prefers_the_same_name_in_another_case():
    assert nearest("//dossier:s-037", ["//dossier:S-031", "//dossier:S-037"]) == "//dossier:S-037"
    assert nearest("zebra", ["//dossier:S-037"]) is None
