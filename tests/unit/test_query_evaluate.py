"""Queries on a small dossier: functions, operators, patterns, outputs and what is said of unknown names."""

from __future__ import annotations

import pytest
from support.graphs import make_action
from support.products import hidden, readable

from gsum.engine.query import QueryError, Selection, run_query, target_graph
from gsum.engine.query.graph import TargetGraph
from gsum.engine.query.output import dot_lines, node_records, tree_lines
from gsum.rules.config import (
    CommandToolchain,
    GrammarSection,
    Prompt,
    SchemaSection,
    Strength,
    Workspace,
    WorkspaceSection,
)
from gsum.rules.graph import ActionGraph, ActionKind

FIVE = ["D-00", "D-01", "D-02", "D-03", "D-04"]


def dossier(name: str) -> list:
    """Five documents, fan-in 4, one withdrawn, one not readable; and a baseline over the same documents."""
    prefix = f"//dossier:{name}"
    scopes = [hidden(i) if i == "D-03" else hidden(i, active=False) if i == "D-04" else readable(i, i) for i in FIVE]
    actions = []
    for package, kind, prompt in (("dossier", ActionKind.MAP, "map-v1"), ("baseline", ActionKind.EXTRACT, None)):
        for number, scope in enumerate(scopes):
            actions.append(
                make_action(
                    f"//{package}:{name}/leaf-{number:02}",
                    scope=scope,
                    kind=kind,
                    package=package,
                    dossier=name,
                    prompt=prompt,
                    schema="product",
                    toolchain="fake" if prompt else None,
                )
            )
    common = {"dossier": name, "schema": "product", "prompt": "reduce-v1"}
    leaves = [f"{prefix}/leaf-{number:02}" for number in range(5)]
    actions.append(make_action(f"{prefix}/reduce-00", leaves[:4], **common))
    actions.append(make_action(f"{prefix}/reduce-01", leaves[4:], **common))
    actions.append(make_action(f"{prefix}/root", [f"{prefix}/reduce-00", f"{prefix}/reduce-01"], **common))
    below = [f"//baseline:{name}/leaf-{number:02}" for number in range(5)]
    merge = {"kind": ActionKind.MERGE, "package": "baseline", "prompt": None, "toolchain": None}
    actions.append(make_action(f"//baseline:{name}/root", below, **(common | merge)))
    return actions


@pytest.fixture(scope="module")
def graph() -> TargetGraph:
    actions = {action.label: action for name in ("S-1", "S-10") for action in dossier(name)}
    prompts = {name: Prompt("s", "i") for name in ("map-v1", "reduce-v1", "unused")}
    schemas = {"product": SchemaSection(("subject",))}
    grammar = GrammarSection(Strength.NONE)
    toolchains = {"fake": CommandToolchain(("fake",), "fake-1", reproducible=True, network=False, grammar=grammar)}
    section = WorkspaceSection("w", "reader", "fake")
    workspace = Workspace("/", section, {}, toolchains, {}, prompts, schemas, {})
    return target_graph(workspace, ActionGraph(actions, ("//dossier:S-1/root",)))


def labels(graph: TargetGraph, text: str) -> list[str]:
    return list(run_query(graph, text).labels)


def test_rdeps_of_a_document_are_all_that_must_change_with_it(graph: TargetGraph) -> None:
    assert labels(graph, "rdeps //corpus:S-1/D-02") == [
        "//baseline:S-1/leaf-02",
        "//baseline:S-1/root",
        "//corpus:S-1/D-02",
        "//dossier:S-1/leaf-02",
        "//dossier:S-1/reduce-00",
        "//dossier:S-1/root",
    ]


def test_rdeps_of_a_prompt_name_its_users_and_their_ancestors(graph: TargetGraph) -> None:
    found = labels(graph, "rdeps(//dossier:S-1/..., //prompt:reduce-v1)")
    assert found == ["//dossier:S-1/reduce-00", "//dossier:S-1/reduce-01", "//dossier:S-1/root", "//prompt:reduce-v1"]


def test_withdrawn_and_unreadable_documents_stay_nodes(graph: TargetGraph) -> None:
    assert labels(graph, "kind(document, deps(//dossier:S-1/root))") == [f"//corpus:S-1/{name}" for name in FIVE]


def test_an_input_that_nothing_uses_is_a_node_outside_every_universe(graph: TargetGraph) -> None:
    assert labels(graph, "//prompt:unused") == ["//prompt:unused"]
    assert labels(graph, "rdeps //prompt:unused") == []


def test_deps_go_as_deep_as_told(graph: TargetGraph) -> None:
    root = "//dossier:S-1/root"
    below = ["//dossier:S-1/reduce-00", "//dossier:S-1/reduce-01"]
    inputs = ["//prompt:reduce-v1", "//schema:product", "//toolchain:fake"]
    assert labels(graph, f"deps({root}, 0)") == [root]
    assert labels(graph, f"deps({root}, 1)") == [*below, root, *inputs]
    assert labels(graph, f"deps({root})") == labels(graph, f"deps({root}, 3)")
    assert labels(graph, "rdeps(//..., //corpus:S-1/D-02, 1)") == [
        "//baseline:S-1/leaf-02",
        "//corpus:S-1/D-02",
        "//dossier:S-1/leaf-02",
    ]


def test_the_universe_bounds_rdeps(graph: TargetGraph) -> None:
    assert labels(graph, "rdeps(//dossier:S-1/reduce-00, //corpus:S-1/D-02)") == [
        "//corpus:S-1/D-02",
        "//dossier:S-1/leaf-02",
        "//dossier:S-1/reduce-00",
    ]
    assert labels(graph, "rdeps(//dossier:S-1/reduce-01, //corpus:S-1/D-02)") == []


def test_somepath_is_in_path_order_and_shortest(graph: TargetGraph) -> None:
    path = run_query(graph, "somepath(//dossier:S-1/root, //corpus:S-1/D-04)")
    assert path.ordered
    assert list(path.labels) == [
        "//dossier:S-1/root",
        "//dossier:S-1/reduce-01",
        "//dossier:S-1/leaf-04",
        "//corpus:S-1/D-04",
    ]
    assert labels(graph, "somepath(//corpus:S-1/D-04, //dossier:S-1/root)") == []
    assert not run_query(graph, "somepath(//dossier:S-1/root, //corpus:S-1/D-04) + set()").ordered


def test_allpaths_keeps_what_lies_between(graph: TargetGraph) -> None:
    assert labels(graph, "allpaths(//dossier:S-1/root, //corpus:S-1/D-00 + //corpus:S-1/D-04)") == [
        "//corpus:S-1/D-00",
        "//corpus:S-1/D-04",
        "//dossier:S-1/leaf-00",
        "//dossier:S-1/leaf-04",
        "//dossier:S-1/reduce-00",
        "//dossier:S-1/reduce-01",
        "//dossier:S-1/root",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("//dossier:S-1", ["//dossier:S-1/root"]),
        ("//dossier:all", ["//dossier:S-1/root", "//dossier:S-10/root"]),
        ("//corpus:S-1", [f"//corpus:S-1/{name}" for name in FIVE]),
        ("//corpus:S-1/...", [f"//corpus:S-1/{name}" for name in FIVE]),
        ("//prompt:all", ["//prompt:map-v1", "//prompt:reduce-v1", "//prompt:unused"]),
        ("//prompt:... ^ deps(//baseline:...)", []),
        ("filter('S-1/leaf', //dossier:...)", [f"//dossier:S-1/leaf-{number:02}" for number in range(5)]),
        (
            "kind('^(merge|toolchain)$', deps(//...))",
            ["//baseline:S-1/root", "//baseline:S-10/root", "//toolchain:fake"],
        ),
        ("set(//prompt:unused //schema:product)", ["//prompt:unused", "//schema:product"]),
        ("let r = //dossier:all in $r - //dossier:S-1", ["//dossier:S-10/root"]),
        ("let r = //prompt:all in let r = $r - //prompt:unused in $r", ["//prompt:map-v1", "//prompt:reduce-v1"]),
        ("//dossier:all - //dossier:all + //prompt:unused", ["//prompt:unused"]),
    ],
)
def test_expressions_select(graph: TargetGraph, text: str, expected: list[str]) -> None:
    assert labels(graph, text) == expected


def test_a_tree_pattern_covers_targets_alone(graph: TargetGraph) -> None:
    assert len(labels(graph, "//...")) == 2 * (8 + 6)
    assert labels(graph, "kind('document|prompt|schema|toolchain', //...)") == []


@pytest.mark.parametrize(
    ("text", "message", "hint", "caret"),
    [
        ("deps(//dossier:S-1/leaf-9)", "`//dossier:S-1/leaf-9` does not exist", "`//dossier:S-1/leaf-0", (5, 25)),
        ("//dosier:S-1", "nothing is named `//dosier:…`", "`//dossier:S-1`", (0, 12)),
        ("//dossier:S-2/root", "`//dossier:S-2/root` does not exist", "`//dossier:S-1/root`", (0, 18)),
        ("//prompt:map-v2", "`//prompt:map-v2` does not exist", "`//prompt:map-v1`", (0, 15)),
        ("//nowhere/...", "`//nowhere/...` matches nothing", "`gsum query //...`", (0, 13)),
        ("leaf-01", "`leaf-01` does not start with `//`", "//package:name/part", (0, 7)),
        ("dep(//dossier:all)", "there is no function `dep`", "`deps`", (0, 3)),
        ("frobnicate(//dossier:all)", "there is no function `frobnicate`", "the functions are `deps`", (0, 10)),
        ("//prompt:all + deps()", "`deps` can't take 0 arguments", "`deps(x[, depth])`", (15, 21)),
        ("kind(map)", "`kind` can't take 1 argument", "`kind(regex, x)`", (0, 9)),
        ("kind('(', //dossier:all)", "`(` is no regular expression", "\\", (5, 8)),
        ("kind(deps(//dossier:all), //dossier:all)", "a regular expression is needed here", "quotes", (5, 24)),
        ("deps(//dossier:all, -1)", "a label, a pattern or a function is missing before `-`", "", (20, 21)),
        ("deps(//dossier:all, two)", "a number is needed here", "from 0", (20, 23)),
        ("let v = //prompt:all in $w", "variable `$w` is not defined here", "let w", (24, 26)),
        ("(let v = //prompt:all in $v) + $v", "variable `$v` is not defined here", "let v", (31, 33)),
    ],
)
def test_a_query_that_names_nothing_says_where_and_what_is_near(
    graph: TargetGraph, text: str, message: str, hint: str, caret: tuple[int, int]
) -> None:
    with pytest.raises(QueryError) as caught:
        run_query(graph, text)
    assert caught.value.message.startswith(message)
    assert hint in caught.value.hint
    line = caught.value.excerpt.split("\n")[-1]
    assert (line.index("^"), len(line)) == caret


def test_a_tree_shows_what_was_printed_once(graph: TargetGraph) -> None:
    query = "rdeps(//dossier:S-1/..., //corpus:S-1/D-04) + //dossier:S-1/reduce-00 + //baseline:S-1/leaf-04"
    assert list(tree_lines(graph, run_query(graph, query))) == [
        "//baseline:S-1/leaf-04",
        "└─ //corpus:S-1/D-04",
        "//dossier:S-1/root",
        "├─ //dossier:S-1/reduce-00",
        "└─ //dossier:S-1/reduce-01",
        "   └─ //dossier:S-1/leaf-04",
        "      └─ //corpus:S-1/D-04",
    ]
    shared = TargetGraph(dict.fromkeys("abcd", "map"), {"a": "bc", "b": "d", "c": "d", "d": ""})
    assert list(tree_lines(shared, everything(shared))) == ["a", "├─ b", "│  └─ d", "└─ c", "   └─ d"]
    deeper = TargetGraph(dict.fromkeys("abcde", "map"), {"a": "bc", "b": "d", "c": "d", "d": "e"})
    assert list(tree_lines(deeper, everything(deeper)))[-1] == "   └─ d (see above)"


def everything(graph: TargetGraph) -> Selection:
    return Selection(graph.labels)


def test_records_hold_the_edges_among_the_results(graph: TargetGraph) -> None:
    found = node_records(graph, run_query(graph, "//dossier:S-1/leaf-04 + //corpus:S-1/D-04"))
    assert found == [
        {"label": "//corpus:S-1/D-04", "kind": "document", "deps": []},
        {"label": "//dossier:S-1/leaf-04", "kind": "map", "deps": ["//corpus:S-1/D-04"]},
    ]


def test_dot_quotes_labels() -> None:
    graph = TargetGraph({'//a:b/"x\\': "map", "//a:c/d": "map"}, {"//a:c/d": ['//a:b/"x\\']})
    assert list(dot_lines(graph, everything(graph))) == [
        "digraph gsum {",
        "  node [shape=box];",
        '  "//a:b/\\"x\\\\";',
        '  "//a:c/d";',
        '  "//a:c/d" -> "//a:b/\\"x\\\\";',
        "}",
    ]
