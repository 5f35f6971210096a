"""Edits of manifests: what changes, what stays byte for byte, what is refused."""

from __future__ import annotations

import difflib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsum.rules.manifest import ManifestFile, Reader
from gsum.rules.manifest_edit import ManifestEditError, activate, grant, restore, revoke, withdraw
from gsum.rules.toml import DeclarationError, TomlText, decode

MANIFEST = """\
# A manifest with comments.
schema = 1
id   = "S-1"
title = "T"

# about A
[[documents]]
id = "A"   # the first
active = "1" # now
versions = { 1 = "a1", 2 = "a2" }

# about B

[[documents]]
id = "B"
active = '1'
withdrawn = true
versions = { 1 = "b1", 2 = "b2" } # v
readers = { "reader-demo" = { granted = true,  revision = 3 }, x = {granted=false,revision=9} } # r
[[documents]]
id = "C"
active = "1"
withdrawn = false
[documents.versions]
1 = "c1"
2 = "c2"
[documents.readers.reader-demo] # rd
granted = true # g
revision = 1 # r
# tail
"""

INLINE = """\
schema = 1
id = "S-1"
title = ""
documents = [
  { id = "A", active = "1", versions = { 1 = "a", 2 = "b" } }, # c
  { id = "B", active = "1", versions.1 = "b", versions.2 = "c", readers.q.granted = true, readers.q.revision = 1 },
]
"""


@pytest.mark.parametrize(
    ("edit", "removed", "added"),
    [
        (lambda t: activate(t, "A", "2"), ['active = "1" # now'], ['active = "2" # now']),
        (lambda t: activate(t, "B", "2"), ["active = '1'"], ['active = "2"']),
        (lambda t: withdraw(t, "A"), [], ["withdrawn = true"]),
        (lambda t: withdraw(t, "C"), ["withdrawn = false"], ["withdrawn = true"]),
        (lambda t: restore(t, "B"), ["withdrawn = true"], ["withdrawn = false"]),
        (lambda t: grant(t, "A", "r"), [], ["readers = {r = { granted = true, revision = 1 }}"]),
        (
            lambda t: revoke(t, "C", "reader-demo"),
            ["granted = true # g", "revision = 1 # r"],
            ["granted = false # g", "revision = 2 # r"],
        ),
        (lambda t: grant(t, "C", "new"), [], ["", "[documents.readers.new]", "granted = true", "revision = 1"]),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_edit_changes_its_lines_and_no_other(edit, removed, added, newline):
    text = MANIFEST.replace("\n", newline)
    after = edit(text)
    assert after.changed
    assert after.text.count("\n") == after.text.count(newline)
    lines = difflib.ndiff(text.split(newline), after.text.split(newline))
    changes = [line for line in lines if line[0] in "+-"]
    assert [line[2:] for line in changes if line[0] == "-"] == removed
    assert sorted(line[2:] for line in changes if line[0] == "+") == sorted(added)


def test_a_new_key_goes_before_the_comment_that_leads_to_the_next_document():
    lines = withdraw(MANIFEST, "A").text.split("\n")
    assert lines[lines.index("withdrawn = true") - 1].startswith("versions")
    assert lines.index("withdrawn = true") < lines.index("# about B")


def test_revoke_and_grant_each_raise_the_revision():
    text = MANIFEST
    for revision, edit in ((4, revoke), (5, grant), (6, revoke)):
        text = edit(text, "B", "reader-demo").text
        assert _right(text, "B", "reader-demo") == Reader(edit is grant, revision)
    assert _right(text, "B", "x") == Reader(False, 9)


@pytest.mark.parametrize(
    "edit",
    [
        lambda t: activate(t, "A", "1"),
        lambda t: withdraw(t, "B"),
        lambda t: restore(t, "A"),
        lambda t: grant(t, "B", "reader-demo"),
        lambda t: revoke(t, "B", "x"),
        lambda t: revoke(t, "A", "nobody"),
    ],
)
def test_an_edit_already_in_force_changes_nothing_and_says_so(edit):
    after = edit(MANIFEST)
    assert not after.changed
    assert after.text == MANIFEST


@pytest.mark.parametrize(
    ("edit", "message", "hint"),
    [
        (lambda t: activate(t, "A", "3"), "document `A` has no version `3`", "its versions are: `1`, `2`"),
        (lambda t: withdraw(t, "a"), "the manifest has no document `a`", "did you mean `A`?"),
        (lambda t: grant(t, "Z", "r"), "the manifest has no document `Z`", "its documents are: `A`, `B`, `C`"),
    ],
)
def test_an_unknown_document_or_version_is_refused_with_the_nearest(edit, message, hint):
    with pytest.raises(ManifestEditError) as caught:
        edit(MANIFEST)
    assert (caught.value.message, caught.value.hint, caught.value.exit_code) == (message, hint, 2)


def test_a_manifest_that_is_wrong_already_is_refused_with_its_place():
    with pytest.raises(DeclarationError) as caught:
        withdraw(MANIFEST.replace("withdrawn = false", "withdrawn = 0"), "A", "corpus/S-1/dossier.toml")
    assert caught.value.facts == {"file": "corpus/S-1/dossier.toml", "line": 23, "column": 13}


_EDITS = st.one_of(
    st.tuples(st.just(activate), st.sampled_from("12")),
    st.tuples(st.sampled_from([withdraw, restore])),
    st.tuples(st.sampled_from([grant, revoke]), st.sampled_from(["reader-demo", "q", "new", "new.r", "a b", "é"])),
)


@given(st.sampled_from([MANIFEST, INLINE]), st.lists(st.tuples(st.sampled_from("AB"), _EDITS), max_size=6))
def test_any_sequence_of_edits_changes_exactly_what_it_means(text, edits):
    comments = [line[line.index("#") :] for line in text.split("\n") if "#" in line]
    for document, (edit, *arguments) in edits:
        before = _parsed(text)
        after = edit(text, document, *arguments)
        assert _parsed(after.text) == _meant(before, document, edit, arguments)
        assert after.changed == (after.text != text)
        text = after.text
    assert [line[line.index("#") :] for line in text.split("\n") if "#" in line] == comments


def _meant(file: ManifestFile, document: str, edit: object, arguments: list[str]) -> ManifestFile:
    """Say independently of the editor what an edit means."""

    def changed(section):
        if section.id != document:
            return section
        if edit is activate:
            return msgspec.structs.replace(section, active=arguments[0])
        if edit in (withdraw, restore):
            return msgspec.structs.replace(section, withdrawn=edit is withdraw)
        old = section.readers.get(arguments[0])
        if (old.granted if old else False) == (edit is grant):
            return section
        right = Reader(edit is grant, (old.revision if old else 0) + 1)
        return msgspec.structs.replace(section, readers=section.readers | {arguments[0]: right})

    return msgspec.structs.replace(file, documents=tuple(changed(section) for section in file.documents))


def _parsed(text: str) -> ManifestFile:
    return decode(TomlText("dossier.toml", text), ManifestFile)


def _right(text: str, document: str, reader: str) -> Reader:
    return next(section.readers[reader] for section in _parsed(text).documents if section.id == document)
