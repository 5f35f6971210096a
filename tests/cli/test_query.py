"""`gsum query`: what it prints in each form, its errors, and that it neither reads documents nor makes a store."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import Gsum, clean_environment
from support.workspaces import withdraw

REVERSE = (
    "//baseline:S-1/leaf-04",
    "//baseline:S-1/root",
    "//corpus:S-1/D-04",
    "//dossier:S-1/leaf-04",
    "//dossier:S-1/reduce-01",
    "//dossier:S-1/root",
)


@pytest.fixture
def gsum(tmp_path: Path) -> Gsum:
    return Gsum(tmp_path / "ws", {"S-1": 5, "S-2": 1})


def test_rdeps_of_a_document_prints_labels_in_order(gsum: Gsum) -> None:
    for arguments in (("rdeps", "//corpus:S-1/D-04"), ("rdeps(//..., //corpus:S-1/D-04)",)):
        ran = gsum("query", *arguments)
        assert (ran.code, ran.out, ran.err) == (0, "\n".join(REVERSE) + "\n", "")


def test_words_are_joined(gsum: Gsum) -> None:
    ran = gsum("query", "//dossier:all", "+", "//prompt:all", "--output", "label")
    assert ran.out.split() == ["//dossier:S-1/root", "//dossier:S-2/root", "//prompt:map-v1", "//prompt:reduce-v1"]


def test_an_operator_may_come_first_in_a_word(gsum: Gsum) -> None:
    ran = gsum("query", "//dossier:all", "-", "//dossier:S-1")
    assert ran.out == "//dossier:S-2/root\n"


def test_an_empty_result_prints_nothing(gsum: Gsum) -> None:
    ran = gsum("query", "//dossier:all - //dossier:all")
    assert (ran.code, ran.out) == (0, "")
    assert gsum("query", "--json", "set()").document["nodes"] == []


def test_json_has_kinds_and_edges(gsum: Gsum) -> None:
    for flags in (("--json",), ("--output", "json")):
        document = gsum("query", "somepath(//dossier:S-2, //corpus:S-2/D-00)", *flags).document
        assert document == {
            "schema": 1,
            "command": "query",
            "expression": "somepath(//dossier:S-2, //corpus:S-2/D-00)",
            "nodes": [
                {"label": "//dossier:S-2/root", "kind": "reduce", "deps": ["//dossier:S-2/leaf-00"]},
                {"label": "//dossier:S-2/leaf-00", "kind": "map", "deps": ["//corpus:S-2/D-00"]},
                {"label": "//corpus:S-2/D-00", "kind": "document", "deps": []},
            ],
        }


def test_tree_and_dot(gsum: Gsum) -> None:
    query = "allpaths(//dossier:S-2, //corpus:S-2/D-00)"
    assert gsum("query", query, "--output=tree").out == (
        "//dossier:S-2/root\n└─ //dossier:S-2/leaf-00\n   └─ //corpus:S-2/D-00\n"
    )
    assert gsum("query", query, "--output=dot").out == (
        'digraph gsum {\n  node [shape=box];\n  "//corpus:S-2/D-00";\n  "//dossier:S-2/leaf-00";\n'
        '  "//dossier:S-2/root";\n  "//dossier:S-2/leaf-00" -> "//corpus:S-2/D-00";\n'
        '  "//dossier:S-2/root" -> "//dossier:S-2/leaf-00";\n}\n'
    )


def test_a_parse_error_shows_the_place_and_exits_2(gsum: Gsum) -> None:
    ran = gsum("query", "deps(//dossier:S-1")
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err == (
        "error: `)` is missing to end `deps(…)`, before the end of the query\n\n"
        "  deps(//dossier:S-1\n"
        "                    ^\n\n"
        "hint: `gsum query --help` shows the language\n"
    )


def test_an_unknown_label_is_answered_with_the_nearest(gsum: Gsum) -> None:
    ran = gsum("query", "rdeps", "//corpus:S-1/D-44")
    assert ran.code == 2
    assert ran.err.startswith("error: `//corpus:S-1/D-44` does not exist\n")
    assert ran.err.endswith("hint: did you mean `//corpus:S-1/D-04`?\n")
    document = gsum("query", "rdeps", "//corpus:S-1/D-44", "--json").document
    assert document["error"]["exit_code"] == 2


def test_a_withdrawn_document_stays_a_node(gsum: Gsum) -> None:
    withdraw(gsum.root, "S-1", "D-04")
    assert tuple(gsum("query", "rdeps", "//corpus:S-1/D-04").out.split()) == REVERSE
    assert tuple(gsum("query", "rdeps", "//corpus:S-1/D-04", "--principal", "stranger").out.split()) == REVERSE


def test_another_toolchain_changes_the_edges(gsum: Gsum) -> None:
    text = (gsum.root / "BUILD.toml").read_text()
    section = text[text.index("[toolchain.fake]") : text.index("[prompt.map-v1]")]
    (gsum.root / "BUILD.toml").write_text(text + section.replace("toolchain.fake", "toolchain.other"))
    query = ("query", "kind(toolchain, deps(//dossier:S-2))")
    assert gsum(*query).out == "//toolchain:fake\n"
    assert gsum(*query, "--toolchain", "other").out == "//toolchain:other\n"
    ran = gsum(*query, "--toolchain", "othr")
    assert (ran.code, ran.err.split("\n")[0]) == (2, "error: toolchain `othr` is not declared")


def test_a_query_opens_no_document_and_makes_no_store(gsum: Gsum) -> None:
    for document in (gsum.root / "corpus/dossiers").glob("*/documents/*"):
        document.write_bytes(b"\xff")
    assert gsum("query", "rdeps", "//corpus:S-1/D-04").code == 0
    assert not (gsum.root / ".gsum").exists()


def test_a_broken_declaration_exits_3(gsum: Gsum) -> None:
    file = gsum.root / "BUILD.toml"
    file.write_text(file.read_text().replace("fan_in", "fan_inn"))
    assert gsum("query", "//...").code == 3


def test_a_query_loads_no_heavy_library(gsum: Gsum) -> None:
    program = (
        "import sys; from gsum.cli.group import cli\n"
        "try: cli.main(['query', 'rdeps', '//corpus:S-1/D-04'])\n"
        "except SystemExit: pass\n"
        "import json; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=gsum.root,
        capture_output=True,
        text=True,
        env=clean_environment(),
        check=True,
    )
    assert tuple(ran.stdout.split()) == REVERSE
    loaded = {name.partition(".")[0] for name in json.loads(ran.stderr)}
    assert not loaded & {"torch", "transformers", "networkx", "rich", "llguidance", "numpy", "tomlkit", "asyncio"}
    assert "gsum.engine.query.walk" in json.loads(ran.stderr)
