"""Manifests as values, and every way in which one is refused."""

from __future__ import annotations

import pytest

from gsum.rules.manifest import Document, Reader, parse_manifest, plain_dossier
from gsum.rules.toml import DeclarationError, TomlText

HEAD = 'schema = 1\nid = "S-1"\ntitle = "A dossier"\n'
ENTRY = """
[[documents]]
id = "D-1"
active = "1"
versions = { 1 = "documents/a.txt", 2 = "documents/b.txt" }
readers = { reader-demo = { granted = true, revision = 4 }, other = { granted = false, revision = 7 } }
"""


def parse(text: str):
    return parse_manifest(TomlText("corpus/S-1/dossier.toml", text), "corpus", "S-1")


def test_a_manifest_gives_its_documents_in_order_at_their_active_versions():
    dossier = parse(
        HEAD + ENTRY + ENTRY.replace("D-1", "D-0").replace('active = "1"', 'active = "2"\nwithdrawn = true')
    )
    readers = {"reader-demo": Reader(True, 4), "other": Reader(False, 7)}
    assert dossier.title == "A dossier"
    assert dossier.documents == (
        Document("D-1", False, "1", "documents/a.txt", readers),
        Document("D-0", True, "2", "documents/b.txt", readers),
    )


def test_rights_are_those_of_the_principal_alone():
    document = parse(HEAD + ENTRY).documents[0]
    assert document.rights("reader-demo") == (True, 4)
    assert document.rights("other") == (False, 7)
    assert document.rights("nobody") == (False, 0)


def test_a_plain_folder_is_sorted_by_name_and_readable_by_everyone():
    dossier = plain_dossier("corpus", "S-1", ("b", "a: @", "B"))
    assert [document.id for document in dossier.documents] == ["B", "a: @", "b"]
    assert dossier.documents[0].rights("anyone") == (True, 0)
    assert dossier.documents[0].version is None


@pytest.mark.parametrize(
    ("old", "new", "message", "marked"),
    [
        ('id = "S-1"', 'id = "S-2"', "the id `S-2` differs from the folder's name `S-1`", '"S-2"'),
        ("schema = 1", "schema = 2", "`schema` can't be `2`", "2"),
        ("schema = 1\n", "", "`corpus/S-1/dossier.toml` lacks `schema`", "i"),
        ('active = "1"', 'active = "3"', "document `D-1` has no version `3`", '"3"'),
        ('active = "1"', "active = 1", "`documents[0].active` must be a string, not an integer", "1"),
        ('id = "D-1"', 'id = "D@1"', "the document id `D@1` holds what an id can't", '"D@1"'),
        ('id = "D-1"', 'id = "D:1"', "the document id `D:1` holds what an id can't", '"D:1"'),
        ('id = "D-1"', 'id = "D/1"', "the document id `D/1` holds what an id can't", '"D/1"'),
        ('id = "D-1"', 'id = "D 1"', "the document id `D 1` holds what an id can't", '"D 1"'),
        ('id = "D-1"', 'id = "D\\u00071"', "the document id `D\\x071` holds what an id can't", '"D\\u00071"'),
        ('id = "D-1"', 'id = ""', "`documents[0].id` must be a string of length >= 1", '""'),
        ("1 = ", '"a@b" = ', "the version `a@b` of document `D-1` holds what a version can't", '"a@b"'),
        ('"documents/a.txt"', '"../a.txt"', "a path of document `D-1` leaves its folder by `..`", '"../a.txt"'),
        ('"documents/b.txt"', '"a/../../b"', "a path of document `D-1` leaves its folder by `..`", '"a/../../b"'),
        ('"documents/a.txt"', '"/etc/passwd"', "a path of document `D-1` is absolute", '"/etc/passwd"'),
        ('"documents/a.txt"', '"a\\u0000"', "a path of document `D-1` holds a control character", '"a\\u0000"'),
        ('"documents/a.txt"', '""', "`documents[0].versions.1` must be a string of length >= 1", '""'),
        ("revision = 7", "revision = -7", "`documents[0].readers.other.revision` must be an integer >= 0", "-7"),
        (
            "granted = false",
            'granted = "no"',
            "`documents[0].readers.other.granted` must be true or false, not a string",
            '"no"',
        ),
        ("granted = false", "allowed = false", "`documents[0].readers.other` has no key `allowed`", "allowed"),
        ("granted = false, ", "", "`documents[0].readers.other` lacks `granted`", "other"),
        ("active =", "actve =", "`documents[0]` has no key `actve`", "actve"),
        ("[[documents]]", "[documents]", "`documents` must be an array, not a table", "documents"),
    ],
)
def test_a_wrong_manifest_is_refused_at_the_place(old, new, message, marked):
    assert old in HEAD + ENTRY
    with pytest.raises(DeclarationError) as caught:
        parse((HEAD + ENTRY).replace(old, new, 1))
    assert caught.value.message == message
    assert caught.value.exit_code == 3
    assert caught.value.facts["file"] == "corpus/S-1/dossier.toml"
    assert _marked(caught.value.excerpt) == marked


@pytest.mark.parametrize(
    ("line", "key", "hint"),
    [
        ("schema = 1\n", "schema", "add `schema = …` above the first section"),
        ('active = "1"\n', "active", "add `active = …` there"),
    ],
)
def test_a_missing_key_is_asked_for_in_the_form_that_it_has(line, key, hint):
    with pytest.raises(DeclarationError, match=f"lacks `{key}`") as caught:
        parse((HEAD + ENTRY).replace(line, "", 1))
    assert caught.value.hint == hint


def test_a_duplicate_id_is_refused_at_the_second():
    with pytest.raises(DeclarationError, match="document `D-1` is declared twice") as caught:
        parse(HEAD + ENTRY + ENTRY)
    assert caught.value.facts["line"] == 12


@pytest.mark.parametrize("text", [HEAD, HEAD + "documents = []\n"])
def test_a_dossier_without_documents_is_refused(text):
    with pytest.raises(DeclarationError, match="dossier `S-1` has no documents"):
        parse(text)


def _marked(excerpt: str | None) -> str:
    assert excerpt is not None
    _, line, carets = excerpt.split("\n")
    return line[carets.index("^") : carets.rindex("^") + 1]
