"""`--json`: each command prints one document whose keys are exactly those of cli/JSON.md."""

from __future__ import annotations

import json

import pytest
from support.cli import Gsum
from support.documented import check
from support.workspaces import activate, document_text, edit_build


@pytest.fixture
def gsum(tmp_path):
    return Gsum(tmp_path / "w", {"S-1": 2})


def test_build(gsum):
    first = gsum("build", "//dossier:S-1", "--json").document
    gsum.model("--seed", "a", "--max-claims", "1")
    different = gsum("build", "//dossier:S-1", "--full", "--json").document
    activate(gsum.root, "S-1", "D-00", "2")
    gsum.model("--error-at", str(gsum.calls + 1))
    failed = gsum("build", "//dossier:S-1", "--json").document
    assert different["differences"]
    assert different["equivocations"]
    assert failed["failures"]
    check("build", first, different, failed)
    check("build --dry-run", gsum("build", "//dossier:S-1", "--json", "--dry-run").document)


def test_show(tmp_path):
    texts = {"D-00": "".join(f"Product P-1-00 site: Hall {n}.\n" for n in range(5)), "D-01": document_text("S-1", 1)}
    gsum = Gsum(tmp_path / "w", {"S-1": texts}, "--max-claims", "5")
    gsum("build", "//dossier:S-1")
    document = gsum("show", "//dossier:S-1", "--json").document
    assert document["partial_because"]
    check("show", document)


def test_error(gsum):
    errors = gsum("show", "//dossier:S-1", "--json").document, gsum("bild", "--json").document
    check("error", *errors)
    assert [document["error"]["exit_code"] for document in errors] == [4, 2]


def test_status_key_cat_log_doc(gsum):
    gsum("build", "//dossier:S-1")
    check("status", gsum("status", "//...", "--json").document)
    key = gsum("key", "//dossier:S-1", "--json").document
    check("key", key)
    check("cat", gsum("cat", key["key"], "--json").document)
    listed = gsum("log", "--json").document
    check("log", listed, gsum("log", "--json", "--invocation", listed["invocations"][0]["id"]).document)
    activate(gsum.root, "S-1", "D-01", "2")
    gsum("build", "//dossier:S-1")
    check("log --calibration", gsum("log", "--calibration", "--json").document)
    check("doc", gsum("doc", "activate", "//dossier:S-1", "D-00", "--version", "2", "--json").document)
    assert [run["status"] for run in listed["invocations"]] == ["ok"]


def test_query_and_explain_miss(gsum):
    found = gsum("query", "//...", "--json").document
    check("query", found)
    check("query of rows", gsum("query", "cost(//...)", "--json").document)
    gsum("build", "//dossier:S-1")
    activate(gsum.root, "S-1", "D-00", "2")
    edit_build(gsum.root, "List its facts.", "List all its facts.")
    check(
        "explain-miss",
        gsum("explain-miss", "//dossier:S-1", "--json").document,
        gsum("explain-miss", "--last", "--json").document,
    )
    assert found["command"] == "query"


def test_fetch_of_a_program_has_nothing_to_fetch(gsum):
    document = gsum("fetch", "--json").document
    assert document["fetched"] == [{"toolchain": "fake", "folder": None, "files": []}]
    check("fetch", document)


def test_doctor(gsum):
    document = gsum("doctor", "--json").document
    check("doctor", document)
    assert [toolchain["name"] for toolchain in document["toolchains"]] == ["fake"]


def test_a_document_is_one_document_with_nothing_around_it(gsum):
    for words in (
        ["build", "//dossier:S-1"],
        ["status", "//..."],
        ["show", "//dossier:S-1"],
        ["query", "//..."],
        ["log"],
    ):
        ran = gsum(*words, "--json")
        assert json.loads(ran.out)["command"] == words[0]
        assert ran.err == ""
