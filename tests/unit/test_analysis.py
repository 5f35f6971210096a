"""Analysis: what patterns select, the closure they give, and names that match nothing."""

from __future__ import annotations

import pytest
from support.workspaces import FAKE_TOOLCHAIN, READER, edit_build, make_dossier, make_workspace, set_fan_in

from gsum.rules.analysis import analyse, check_acyclic, resolve_patterns
from gsum.rules.graph import Action, ActionKind
from gsum.rules.labels import LabelError
from gsum.rules.loader import load_workspace
from gsum.rules.toml import DeclarationError


@pytest.fixture
def root(tmp_path):
    return make_workspace(tmp_path / "w", {"S-1": 5, "S-2": 2})


def labels(root, *patterns, **options):
    return list(analyse(load_workspace(root), patterns, **options).actions)


TREE = [f"//dossier:S-1/{part}" for part in ("leaf-00", "leaf-01", "leaf-02", "leaf-03", "reduce-00")]
TREE += [f"//dossier:S-1/{part}" for part in ("leaf-04", "reduce-01", "root")]
SMALL = ["//dossier:S-2/leaf-00", "//dossier:S-2/leaf-01", "//dossier:S-2/root"]


def test_a_root_brings_its_whole_tree_children_first(root):
    graph = analyse(load_workspace(root), ["//dossier:S-1"])
    assert sorted(graph.actions) == sorted(TREE)
    assert graph.requested == ("//dossier:S-1/root",)
    place = {label: number for number, label in enumerate(graph.actions)}
    assert all(place[child] < place[a.label] for a in graph.actions.values() for child in a.children)


def test_a_part_brings_only_what_is_below_it(root):
    assert labels(root, "//dossier:S-1/leaf-03") == ["//dossier:S-1/leaf-03"]
    assert labels(root, "//dossier:S-1/reduce-01") == ["//dossier:S-1/leaf-04", "//dossier:S-1/reduce-01"]


@pytest.mark.parametrize(
    ("pattern", "requested", "total"),
    [
        ("//dossier:S-2/...", 3, 3),
        ("//dossier:all", 2, 11),
        ("//dossier:...", 11, 11),
        ("//baseline:...", 9, 9),
        ("//...", 20, 20),
        ("//dossier/...", 11, 11),
    ],
)
def test_a_pattern_requests_what_it_covers(root, pattern, requested, total):
    graph = analyse(load_workspace(root), [pattern])
    assert (len(graph.requested), len(graph.actions)) == (requested, total)


def test_patterns_add_up_and_overlap_without_duplicates(root):
    graph = analyse(load_workspace(root), ["//dossier:S-2/root", "//dossier:S-2", "//dossier:S-2/leaf-01"])
    assert graph.requested == ("//dossier:S-2/root", "//dossier:S-2/leaf-01")
    assert sorted(graph.actions) == SMALL


def test_only_dossiers_that_are_named_are_read(root):
    (root / "corpus/dossiers/S-2/dossier.toml").write_text("broken")
    (root / "corpus/dossiers/S 3").mkdir()
    assert sorted(labels(root, "//dossier:S-1")) == sorted(TREE)


def test_principal_and_toolchain_replace_what_is_declared(root):
    edit_build(root, FAKE_TOOLCHAIN, FAKE_TOOLCHAIN + FAKE_TOOLCHAIN.replace("fake", "second"))
    graph = analyse(load_workspace(root), ["//dossier:S-2"], principal="stranger", toolchain="second")
    leaf = graph.actions["//dossier:S-2/leaf-00"]
    assert (leaf.principal, leaf.scope.eligible, leaf.toolchain) == ("stranger", False, "second")
    graph = analyse(load_workspace(root), ["//...", "//dossier:S-2"])
    assert {(a.principal, a.package, a.toolchain) for a in graph.actions.values()} == {
        (READER, "dossier", "fake"),
        (READER, "baseline", None),
    }


def test_fan_in_shapes_the_tree(root):
    set_fan_in(root, 2)
    assert "//dossier:S-1/reduce2-01" in labels(root, "//dossier:S-1")


@pytest.mark.parametrize(
    ("pattern", "message", "hint"),
    [
        ("//dossier:S-3", "source `corpus` has no dossier `S-3`", "did you mean `//dossier:S-2`?"),
        ("//dossier:s-1/...", "source `corpus` has no dossier `s-1`", "did you mean `//dossier:S-1`?"),
        ("//dossier:zzzzz", "source `corpus` has no dossier `zzzzz`", "`gsum query //dossier:all` lists the dossiers"),
        ("//dossie:S-1", "package `dossie` is not declared", "did you mean `//dossier:S-1`?"),
        ("//zzz:...", "package `zzz` is not declared", "the packages are: `baseline`, `dossier`"),
        ("//zzz/...", "package `zzz` is not declared", "the packages are: `baseline`, `dossier`"),
        (
            "//dossier:S-1/leaf-99",
            "target `//dossier:S-1/leaf-99` does not exist",
            "did you mean `//dossier:S-1/leaf-04`?",
        ),
        (
            "//corpus:S-1/D-00",
            "`//corpus:S-1/D-00` names an input, not a target",
            "`gsum query 'rdeps //corpus:S-1/D-00'` lists what uses it",
        ),
        (
            "//prompt:map-v1",
            "`//prompt:map-v1` names an input, not a target",
            "`gsum query 'rdeps //prompt:map-v1'` lists what uses it",
        ),
    ],
)
def test_a_label_that_matches_nothing_is_refused_with_the_nearest(root, pattern, message, hint):
    with pytest.raises(LabelError) as caught:
        labels(root, pattern)
    assert (caught.value.message, caught.value.hint, caught.value.exit_code) == (message, hint, 2)


def test_a_label_longer_than_a_file_name_is_unknown_and_no_crash(root):
    with pytest.raises(LabelError, match="has no dossier"):
        labels(root, "//dossier:" + "x" * 5000)


def test_a_pattern_over_an_empty_source_matches_nothing(tmp_path):
    with pytest.raises(LabelError, match="`//dossier:all` matches nothing"):
        labels(make_workspace(tmp_path / "w", {}), "//dossier:all")


def test_a_dossier_without_documents_is_an_error_not_an_empty_tree(root):
    (root / "corpus/dossiers/empty").mkdir()
    with pytest.raises(DeclarationError, match="dossier `empty` has no documents"):
        labels(root, "//dossier:...")


def test_an_unknown_toolchain_is_refused_with_the_nearest(root):
    with pytest.raises(LabelError) as caught:
        labels(root, "//dossier:S-1", toolchain="fke")
    assert (caught.value.message, caught.value.hint) == ("toolchain `fke` is not declared", "did you mean `fake`?")


def test_a_toolchain_chosen_later_must_fit_the_schema_too(root):
    strict = FAKE_TOOLCHAIN.replace("fake", "strict").replace('"none"', '"pattern", backend = "b", version = "1"')
    edit_build(root, FAKE_TOOLCHAIN, FAKE_TOOLCHAIN + strict)
    text = (root / "BUILD.toml").read_text()
    kept = [line for line in text.split("\n") if not line.startswith("fact_pattern")]
    (root / "BUILD.toml").write_text("\n".join(kept[: kept.index("[package.baseline]")]))
    assert labels(root, "//dossier:S-1")
    with pytest.raises(DeclarationError, match="grammar strength `pattern` needs a `fact_pattern`"):
        labels(root, "//dossier:S-1", toolchain="strict")


def test_selections_name_nothing_twice_and_keep_the_first_pattern(root):
    selected = resolve_patterns(load_workspace(root), ["//dossier:all", "//dossier:S-1", "//dossier:S-1/..."])
    assert [(s.pattern, s.dossier, s.part) for s in selected] == [
        ("//dossier:all", "S-1", "root"),
        ("//dossier:all", "S-2", "root"),
        ("//dossier:S-1/...", "S-1", None),
    ]


def test_a_rule_that_gives_one_label_twice_is_refused(root):
    class Twice:
        name, version = "twice", 1

        def expand(self, name, package, snapshot, toolchain):
            return (_action("//dossier:S-1/root"), _action("//dossier:S-1/root"))

    with pytest.raises(DeclarationError, match="target `//dossier:S-1/root` is declared twice"):
        labels(root, "//dossier:S-1", rules={"summary_tree": Twice()})


def test_a_rule_that_gives_a_cycle_is_refused_with_the_cycle(root):
    class Loop:
        name, version = "loop", 1

        def expand(self, name, package, snapshot, toolchain):
            return (_action("//dossier:S-1/a", "//dossier:S-1/root"), _action("//dossier:S-1/root", "//dossier:S-1/a"))

    with pytest.raises(DeclarationError, match="depends on itself"):
        labels(root, "//dossier:S-1", rules={"summary_tree": Loop()})


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ({"a": "a"}, "a → a"),
        ({"a": "b", "b": "a"}, "a → b → a"),
        ({"r": "xa", "x": "", "a": "b", "b": "xc", "c": "a"}, "a → b → c → a"),
    ],
)
def test_a_cycle_is_named(edges, cycle):
    with pytest.raises(DeclarationError) as caught:
        check_acyclic(_graph(edges))
    assert caught.value.facts["cycle"] == cycle
    assert caught.value.exit_code == 3


def test_shared_children_are_no_cycle():
    order = check_acyclic(_graph({"r": "abc", "a": "d", "b": "d", "c": "ab", "d": ""}))
    assert sorted(order) == ["a", "b", "c", "d", "r"]
    assert all(order.index(low) < order.index(high) for high, low in ("ra", "ad", "bd", "ca", "cb"))


def test_actions_that_stand_children_first_keep_their_order_and_others_are_put_so():
    edges = {"b": "", "a": "", "r": "ab"}
    assert check_acyclic(_graph(edges)) == ("b", "a", "r")
    assert check_acyclic(_graph(dict(reversed(edges.items())))) == ("a", "b", "r")


def test_a_child_that_no_rule_made_is_refused():
    with pytest.raises(DeclarationError, match="`a` needs `b`, which does not exist"):
        check_acyclic(_graph({"a": "b"}))


def test_a_chain_of_a_hundred_thousand_actions_needs_no_recursion():
    chain = {str(number): _action(str(number), str(number + 1)) for number in range(100_000)}
    assert check_acyclic({**chain, "100000": _action("100000")})[0] == "100000"


def test_a_dossier_added_later_is_found(root):
    make_dossier(root, "S-9", 1)
    assert labels(root, "//dossier:S-9") == ["//dossier:S-9/leaf-00", "//dossier:S-9/root"]


def _graph(edges: dict[str, str]) -> dict[str, Action]:
    return {label: _action(label, *children) for label, children in edges.items()}


def _action(label: str, *children: str) -> Action:
    return Action(
        label, ActionKind.REDUCE, "r", "p", "d", "corpus", READER, children, None, None, None, "product", None, None,
        None,
    )  # fmt: skip
