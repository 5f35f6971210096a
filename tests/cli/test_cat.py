"""`gsum cat`: exact bytes, and only to who may read all that went into them."""

from __future__ import annotations

import json

import pytest
from blake3 import blake3
from support.cli import Gsum
from support.workspaces import activate, restore, set_reader, withdraw

from gsum.store.errors import ExitCode


@pytest.fixture
def gsum(tmp_path):
    gsum = Gsum(tmp_path / "w", {"S-1": 2})
    gsum("build", "//dossier:S-1")
    return gsum


def names_of(gsum, label):
    """All digests and keys behind a target."""
    shown = gsum("show", label, "--json").document
    preimage = json.loads(gsum("key", label, "--preimage").out)
    names = {name: shown[name] for name in ("key", "request", "generation", "result")}
    names["perimeter"] = preimage["perimeter"]
    if preimage["source"] is not None:
        names["source"] = preimage["source"]["text"]
    return names


def test_it_writes_the_exact_bytes_of_all_that_a_target_is_made_of(gsum):
    names = names_of(gsum, "//dossier:S-1/leaf-00")
    text = (gsum.root / "corpus/dossiers/S-1/documents/D-00.v1.txt").read_bytes()
    assert gsum("cat", names["source"]).raw == text
    for name in ("source", "generation", "result"):
        assert blake3(gsum("cat", names[name]).raw).hexdigest() == names[name]
    for name in ("key", "request", "perimeter"):
        context = gsum("cat", "--context", names[name]).out.removesuffix("\n")
        assert blake3(gsum("cat", names[name]).raw, derive_key_context=context).hexdigest() == names[name]


def test_records_of_declarations_are_open_to_all(gsum):
    preimage = json.loads(gsum("key", "//dossier:S-1", "--preimage").out)
    for name in ("toolchain", "prompt", "schema"):
        assert gsum("cat", preimage[name], "--principal", "stranger").code == 0


@pytest.mark.parametrize("edit", ["withdraw", "revoke"])
def test_what_was_made_from_a_document_is_withheld_once_it_may_not_be_read(gsum, edit):
    mine = names_of(gsum, "//dossier:S-1/leaf-00")
    above = names_of(gsum, "//dossier:S-1/root")
    other = names_of(gsum, "//dossier:S-1/leaf-01")
    if edit == "withdraw":
        withdraw(gsum.root, "S-1", "D-00")
    else:
        set_reader(gsum.root, "S-1", "D-00", granted=False, revision=2)
    for name in [*mine.values(), *above.values()]:
        ran = gsum("cat", name)
        assert (ran.code, ran.out) == (ExitCode.USAGE, "")
        assert "nothing to show" in ran.err
    for name in other.values():
        assert gsum("cat", name).code == 0
    if edit == "withdraw":
        restore(gsum.root, "S-1", "D-00")
        assert gsum("cat", mine["source"]).code == 0


def test_earlier_versions_stay_open_to_who_may_read_the_document(gsum):
    old = names_of(gsum, "//dossier:S-1/leaf-00")
    activate(gsum.root, "S-1", "D-00", "2")
    gsum("build", "//dossier:S-1")
    for name in old.values():
        assert gsum("cat", name).code == 0


def test_nothing_of_one_principal_is_shown_to_another(gsum):
    for label in ("//dossier:S-1/leaf-00", "//dossier:S-1/root"):
        for name in names_of(gsum, label).values():
            ran = gsum("cat", name, "--principal", "stranger")
            assert (ran.code, ran.out) == (ExitCode.USAGE, "")


def test_absent_and_withheld_are_not_told_apart(gsum):
    source = names_of(gsum, "//dossier:S-1/leaf-00")["source"]
    withdraw(gsum.root, "S-1", "D-00")
    absent = "0" * 64
    assert gsum("cat", source).err.replace(source, absent) == gsum("cat", absent).err


def test_the_beginning_of_a_name_is_enough(gsum):
    key = gsum("key", "//dossier:S-1").out.strip()
    assert gsum("cat", key[:12]).raw == gsum("cat", key).raw
    assert gsum("cat", key[:12].upper()).raw == gsum("cat", key).raw


@pytest.mark.parametrize("name", ["abc", "xyzxyzxyz", "0" * 65, "//dossier:S-1"])
def test_what_is_no_digest_is_a_usage_error(gsum, name):
    ran = gsum("cat", name)
    assert ran.code == ExitCode.USAGE
    assert "is no digest or key" in ran.err


def test_json_says_kind_context_and_content(gsum):
    document = gsum("cat", gsum("key", "//dossier:S-1").out.strip(), "--json").document
    assert (document["kind"], document["encoding"]) == ("action", "utf-8")
    assert json.loads(document["data"])["principal"] == "reader-demo"
