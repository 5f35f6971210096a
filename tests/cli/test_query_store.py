"""Queries of what the store holds: states, citations, generations, cost; and what a principal may learn from them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.cli import Gsum
from support.workspaces import activate, edit_text, set_prompt, set_reader, withdraw

GRAMMAR = Path(__file__).parents[2] / "engine/query/GRAMMAR.md"
EXAMPLES = re.search(r"```query\n(.*?)```", GRAMMAR.read_text(), re.DOTALL)[1].splitlines()
TEXT = "Reference line.\nProduct P-1-00 site: Hall 1.\nNothing here.\nProduct P-1-00 status: open.\n"
SITE = TEXT.index("Product")


@pytest.fixture
def gsum(tmp_path: Path) -> Gsum:
    gsum = Gsum(tmp_path / "ws", {"S-1": {"D-00": TEXT, "D-01": TEXT.replace("00", "01"), "D-02": TEXT}, "S-2": 2})
    assert gsum("build", "//dossier:S-1").code == 0
    return gsum


def labels(gsum: Gsum, *words: str) -> list[str]:
    ran = gsum("query", *words)
    assert ran.code == 0, ran.err
    return ran.out.split()


def parts(gsum: Gsum, *words: str) -> list[str]:
    return [label.rpartition("/")[2] for label in labels(gsum, *words)]


def rows(gsum: Gsum, *words: str) -> list[dict]:
    ran = gsum("query", "--json", *words)
    assert ran.code == 0, ran.err
    return ran.document["rows"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_grammar_are_understood(gsum: Gsum, example: str) -> None:
    for output in ("label", "json", "jsonl"):
        ran = gsum("query", example, "--output", output)
        assert (ran.code, ran.err) == (0, ""), example
    for line in ran.out.splitlines():
        json.loads(line)


def test_states_follow_edits(gsum: Gsum) -> None:
    assert labels(gsum, "stale()") == []
    assert parts(gsum, "cached(//dossier:...)") == ["leaf-00", "leaf-01", "leaf-02", "root"]
    activate(gsum.root, "S-1", "D-01", "2")
    edit_text(gsum.root, "S-1", "D-01", TEXT + "More.\n", "2")
    assert parts(gsum, "stale()") == ["leaf-01", "root"]
    assert parts(gsum, "cached()") == ["leaf-00", "leaf-02"]
    assert labels(gsum, "status(NOT_BUILT, //dossier:all)") == ["//dossier:S-2/root"]
    assert parts(gsum, "status(STALE|VALID, //dossier:S-1/...) - stale()") == ["leaf-00", "leaf-02"]
    assert labels(gsum, "stale()", "--principal", "somebody") == []


def test_what_cites_an_interval_is_found_by_overlap(gsum: Gsum) -> None:
    above = ["leaf-00", "root"]
    end = TEXT.index("\n", SITE)
    for interval in ("", f"[{SITE}:{SITE + 1}]", f"[{end - 1}:{end}]", f"[{SITE}:]", f"[:{end}]", "[0:9999]"):
        assert parts(gsum, f"cites(//corpus:S-1/D-00{interval})") == above, interval
    for interval in (f"[0:{SITE}]", f"[{end}:{end + 1}]", "[9999:]"):
        assert parts(gsum, f"cites(//corpus:S-1/D-00{interval})") == [], interval
    assert parts(gsum, f"cites(//corpus:S-1/D-00[{SITE}:{SITE + 1}]) - //dossier:S-1/root") == ["leaf-00"]


def test_only_current_results_cite(gsum: Gsum) -> None:
    set_prompt(gsum.root, "reduce-v1", "Otherwise.")
    assert parts(gsum, "cites(//corpus:S-1/D-00)") == ["leaf-00"]
    set_prompt(gsum.root, "map-v1", "Otherwise.")
    assert parts(gsum, "cites(//corpus:S-1/D-00)") == []


def test_lines_that_no_claim_uses(gsum: Gsum) -> None:
    found = rows(gsum, "uncited(//corpus:S-1/D-00, //dossier:S-1/leaf-00)")
    assert [row["text"] for row in found] == ["Reference line.", "Nothing here."]
    assert all(TEXT[row["start"] : row["end"]] == row["text"] for row in found)
    assert [row["text"] for row in rows(gsum, "uncited(//corpus:S-1/D-00[0:5], //dossier:S-1)")] == ["Reference line."]
    ran = gsum("query", "uncited(//corpus:S-2/D-00)")
    assert (ran.code, ran.err.splitlines()[0]) == (
        4,
        "error: no target that depends on `//corpus:S-2/D-00` has current claims",
    )


@pytest.mark.parametrize("bar", ["withdrawn", "revoked"])
def test_of_a_document_that_may_not_be_read_nothing_is_told(gsum: Gsum, bar: str) -> None:
    if bar == "withdrawn":
        withdraw(gsum.root, "S-1", "D-00")
    else:
        set_reader(gsum.root, "S-1", "D-00", granted=False, revision=2)
    gsum("build", "//dossier:S-1")
    answers = []
    for text in (TEXT, "Secret.\n"):
        edit_text(gsum.root, "S-1", "D-00", text)
        ran = [gsum("query", query) for query in ("cites(//corpus:S-1/D-00)", "uncited(//corpus:S-1/D-00)", "stale()")]
        ran.append(gsum("query", "attr(version, '.', //corpus:S-1)"))
        answers.append([(each.code, each.out, each.err) for each in ran])
    assert answers[0] == answers[1]
    (code, out, _), (refused, _, error), _, (_, versions, _) = answers[0]
    assert (code, out, refused) == (0, "", 4)
    assert error.startswith("error: `//corpus:S-1/D-00` may not be read by `reader-demo`")
    assert versions.split() == ["//corpus:S-1/D-01", "//corpus:S-1/D-02"]


def test_generations_behind_results(gsum: Gsum) -> None:
    found = rows(gsum, "generations(//dossier:S-1/...)")
    assert [row["target"].rpartition("/")[2] for row in found] == ["leaf-00", "leaf-01", "leaf-02", "root"]
    assert {row["outputs"] for row in found} == {1}
    assert found[0]["generation"] == found[2]["generation"]  # two documents of one text
    assert gsum("cat", found[0]["generation"]).code == 0
    gsum.model("--max-claims", "1")
    gsum("build", "//dossier:S-1", "--full")
    assert {row["outputs"] for row in rows(gsum, "generations(//dossier:S-1/leaf-00)")} == {2}


def test_rows_stand_outermost_and_have_forms_of_their_own(gsum: Gsum) -> None:
    ran = gsum("query", "deps(generations(//...))")
    assert (ran.code, ran.err.splitlines()[3].strip()) == (2, "^^^^^^^^^^^")
    for output in ("label_kind", "tree", "dot", "graphml"):
        ran = gsum("query", "cost(//...)", "--output", output)
        assert (ran.code, ran.err.splitlines()[0]) == (2, f"error: rows can't be printed as `{output}`")


def test_queries_of_the_store_make_none(tmp_path: Path) -> None:
    gsum = Gsum(tmp_path / "ws", {"S-1": 2})
    assert labels(gsum, "status(NOT_BUILT, //dossier:S-1)") == ["//dossier:S-1/root"]
    assert not (gsum.root / ".gsum").exists()


def test_forms_of_nodes(gsum: Gsum) -> None:
    assert gsum("query", "deps(//baseline:S-1/leaf-00)", "--output", "label_kind").out.splitlines() == [
        "extract //baseline:S-1/leaf-00",
        "document //corpus:S-1/D-00",
        "schema //schema:product",
    ]
    lines = gsum("query", "deps(//baseline:S-1/leaf-00)", "--output", "jsonl").out.splitlines()
    assert json.loads(lines[0]) == {
        "label": "//baseline:S-1/leaf-00",
        "kind": "extract",
        "deps": ["//corpus:S-1/D-00", "//schema:product"],
    }
    import networkx as nx

    drawn = nx.parse_graphml(gsum("query", "deps(//dossier:S-1)", "--output", "graphml").out)
    assert set(drawn.nodes) == set(labels(gsum, "deps(//dossier:S-1)"))
    assert drawn.has_edge("//dossier:S-1/root", "//dossier:S-1/leaf-00")
    assert drawn.nodes["//dossier:S-1/leaf-00"]["prompt"] == "map-v1"


def test_siblings_and_attributes(gsum: Gsum) -> None:
    assert parts(gsum, "siblings(//dossier:S-1/leaf-00)") == ["leaf-00", "leaf-01", "leaf-02", "root"]
    assert labels(gsum, "siblings(//prompt:map-v1)") == ["//prompt:map-v1", "//prompt:reduce-v1"]
    assert parts(gsum, "siblings(//corpus:S-1/D-01)") == ["D-00", "D-01", "D-02"]
    assert labels(gsum, "attr(prompt, reduce, //...)") == ["//dossier:S-1/root", "//dossier:S-2/root"]
    assert labels(gsum, "attr(document, 'D-01', //dossier:S-1/...)") == ["//dossier:S-1/leaf-01"]
    withdraw(gsum.root, "S-1", "D-01")
    assert labels(gsum, "attr(active, false, //corpus:...)") == ["//corpus:S-1/D-01"]


@pytest.mark.parametrize(
    ("query", "place", "message"),
    [
        ("attr(promt, x, //...)", "promt", "the name of an attribute is needed here"),
        (
            "attr(prompt, '(', //...)",
            "'('",
            "`(` is no regular expression: missing )",
        ),
        ("status(GOOD, //...)", "GOOD", "states, as `VALID|PARTIAL`, is needed here"),
        ("cites(//corpus:S-1/D-00[7:3])", "//corpus:S-1/D-00[7:3]", "the interval is empty"),
        ("cites(//dossier:S-1)", "//dossier:S-1", "a document, as `//source:dossier/DOC[0:80]`, is needed here"),
        ("cites(//corpus:S-1/D-77[0:3])", "//corpus:S-1/D-77[0:3]", "`//corpus:S-1/D-77` does not exist"),
        ("stale(//..., //...)", "stale(//..., //...)", "`stale` can't take 2 arguments"),
    ],
)
def test_errors_point_into_the_query(gsum: Gsum, query: str, place: str, message: str) -> None:
    ran = gsum("query", query)
    lines = ran.err.splitlines()
    assert ran.code == 2
    assert lines[0].startswith(f"error: {message}")
    start = lines[2].index(place)
    assert lines[3] == " " * start + "^" * len(place)
