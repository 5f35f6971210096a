"""A query over the dossiers it needs answers as one over all of them, and no other manifest is read for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.workspaces import edit_build, make_dossier, make_workspace, withdraw

from gsum.engine.query import QueryError, TargetGraph, evaluate, parse
from gsum.engine.query.demand import needed_dossiers
from gsum.engine.query.load import load_target_graph, named
from gsum.rules.loader import load_workspace

WORDS = [
    "//...",
    "//dossier:all",
    "//dossier:...",
    "//baseline:...",
    "//other:all",
    "//corpus:...",
    "//dossier:S-1",
    "//dossier:S-1/...",
    "//dossier:S-1/leaf-00",
    "//baseline:S-2/root",
    "//other:T-1/root",
    "//corpus:S-1/D-01",
    "//corpus:S-2",
    "//second:T-1/D-00",
    "//prompt:map-v1",
    "//prompt:all",
    "//schema:product",
    "//toolchain:fake",
]
WRONG = ["//dossier:S-9", "//dossier:S-1/leaf-99", "//nowhere:S-1", "//prompt:map-v9", "//corpus:S-1/D-99"]

_word = st.sampled_from(WORDS)


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    depth = st.sampled_from(["", ", 0", ", 1", ", 2"])
    return st.one_of(
        st.tuples(inner, depth).map(lambda t: f"deps({t[0]}{t[1]})"),
        st.tuples(inner, inner, depth).map(lambda t: f"rdeps({t[0]}, {t[1]}{t[2]})"),
        pair.map(lambda t: f"allpaths({t[0]}, {t[1]})"),
        pair.map(lambda t: f"somepath({t[0]}, {t[1]})"),
        inner.map(lambda x: f"siblings({x})"),
        inner.map(lambda x: f"kind('map|reduce|document|prompt', {x})"),
        inner.map(lambda x: f"attr(document, 'D-0[01]', {x})"),
        inner.map(lambda x: f"filter('S-1|prompt', {x})"),
        st.tuples(inner, st.sampled_from("+-^"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from("+-^"), inner, st.sampled_from("+-^"), inner).map(" ".join).map("({})".format),
        pair.map(lambda t: f"let v = {t[0]} in ($v ^ {t[1]})"),
        pair.map(lambda t: f"let v = {t[0]} in rdeps({t[1]}, $v)"),
    )


queries = st.recursive(st.one_of(_word, _word, _word, st.sampled_from(WRONG)), _compound, max_leaves=6)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_workspace(tmp_path_factory.mktemp("demand") / "ws", {"S-1": 3, "S-2": 6, "S-3": 1})
    (root / "more").mkdir()
    withdraw(root, "S-2", "D-04")
    folder = make_dossier(root, "T-1", 2)
    folder.rename(root / "more/T-1")
    edit_build(root, "\n[sources.labels]", '\n[sources.second]\npath = "more"\n\n[sources.labels]')
    extra = '\n[package.other]\nrule = "extract"\nsources = "second"\nschema = "product"\n'
    (root / "BUILD.toml").write_text((root / "BUILD.toml").read_text() + extra)
    return root


@pytest.fixture(scope="module")
def whole(root: Path) -> TargetGraph:
    return load_target_graph(root)


def answer(graph: TargetGraph, text: str) -> tuple[str, ...] | str:
    try:
        return evaluate(graph, text, parse(text)).labels
    except QueryError as error:
        return f"{error.message}\n{error.excerpt}\n{error.hint}"


class Parts:
    """Graphs over some dossiers, each loaded once for all examples."""

    def __init__(self, root: Path) -> None:
        self._workspace = load_workspace(root)
        self._root = root
        self._graphs: dict[object, TargetGraph] = {}

    def graph(self, text: str) -> tuple[TargetGraph, int]:
        needed = needed_dossiers(parse(text), lambda word: named(self._workspace, word))
        if needed not in self._graphs:
            self._graphs[needed] = load_target_graph(self._root, parse(text))
        return self._graphs[needed], 4 if needed is None else len(needed)


@pytest.fixture(scope="module")
def parts(root: Path) -> Parts:
    return Parts(root)


@given(text=queries)
@settings(max_examples=1500, deadline=None)
def test_a_part_of_the_graph_answers_as_all_of_it(whole: TargetGraph, parts: Parts, text: str) -> None:
    graph, _ = parts.graph(text)
    assert answer(graph, text) == answer(whole, text)


@pytest.mark.parametrize(
    ("text", "dossiers"),
    [
        ("deps(//dossier:S-1/root)", 1),
        ("rdeps(//..., //corpus:S-1/D-01)", 1),
        ("rdeps(//..., //prompt:map-v1)", 4),
        ("rdeps(//..., //prompt:map-v1) ^ //dossier:S-1/...", 1),
        ("allpaths(//dossier:..., //corpus:S-2/D-00)", 1),
        ("somepath(//..., //corpus:S-2/D-00)", 1),
        ("//dossier:... ^ deps(//dossier:S-1) ", 1),
        ("//dossier:S-1 + //other:T-1", 2),
        ("//dossier:all - //dossier:S-1", 4),
        ("deps(//dossier:...) ^ //prompt:map-v1", 4),
        ("//prompt:all", 0),
        ("siblings(//dossier:S-1/leaf-00)", 1),
        ("let v = //dossier:S-1/... in rdeps(//..., $v)", 1),
    ],
)
def test_how_many_dossiers_a_query_needs(parts: Parts, text: str, dossiers: int) -> None:
    assert parts.graph(text)[1] == dossiers


def test_a_broken_manifest_elsewhere_fails_no_query_that_does_not_need_it(root: Path, tmp_path: Path) -> None:
    make_workspace(tmp_path / "ws", {"S-1": 3, "S-2": 2})
    (tmp_path / "ws/corpus/dossiers/S-2/dossier.toml").write_text("broken = [")
    for text in ("deps(//dossier:S-1)", "rdeps(//..., //corpus:S-1/D-00)", "siblings(//dossier:S-1/root)"):
        expression = parse(text)
        assert evaluate(load_target_graph(tmp_path / "ws", expression), text, expression).labels


def test_a_long_chain_is_bounded_without_deep_recursion(parts: Parts) -> None:
    text = "//... ^ " * 5000 + "//dossier:S-1"
    assert parts.graph(text)[1] == 1
