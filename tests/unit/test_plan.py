"""The plan: top-down, nothing below a hit is asked for, what must run stands children before parents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.graphs import make_graph

from gsum.engine.plan import Plan, heights

TREE = {
    "l0": (),
    "l1": (),
    "l2": (),
    "r0": ("l0", "l1"),
    "r1": ("l2",),
    "root": ("r0", "r1"),
}


def complete(plan: Plan[str], known: set[str]) -> list[tuple[str, ...]]:
    asked = []
    while plan.unknown:
        asked.append(plan.unknown)
        plan.answer({label: label for label in plan.unknown if label in known})
    return asked


def test_a_root_that_hits_is_done_without_looking_below_it():
    plan: Plan[str] = Plan(make_graph(TREE, ["root"]))
    assert complete(plan, {"root"}) == [("root",)]
    assert plan.to_run == ()
    assert plan.hits == {"root": "root"}


def test_what_is_known_to_run_grows_with_each_answer():
    plan: Plan[str] = Plan(make_graph(TREE, ["root"]))
    grown = [plan.to_run]
    while plan.unknown:
        plan.answer({})
        grown.append(plan.to_run)
    assert grown == [(), ("root",), ("r0", "r1", "root"), ("l0", "l1", "l2", "r0", "r1", "root")]


def test_questions_come_level_by_level_and_only_below_misses():
    plan: Plan[str] = Plan(make_graph(TREE, ["root"]))
    assert complete(plan, {"r1", "l0"}) == [("root",), ("r0", "r1"), ("l0", "l1")]
    assert plan.to_run == ("l1", "r0", "root")
    assert plan.hits == {"r1": "r1", "l0": "l0"}


def test_a_node_reached_twice_is_asked_for_once():
    diamond = {"a": (), "b": ("a",), "c": ("a",), "top": ("b", "c")}
    plan: Plan[str] = Plan(make_graph(diamond, ["top", "b", "top"]))
    asked = [label for batch in complete(plan, set()) for label in batch]
    assert sorted(asked) == ["a", "b", "c", "top"]
    assert plan.to_run == ("a", "b", "c", "top")


def test_heights_are_the_longest_chain_above():
    chain = {"a": (), "b": (), "mid": ("a",), "top": ("mid", "b")}
    graph = make_graph(chain, ["top"])
    assert heights(graph, ("a", "b", "mid", "top")) == {"a": 2, "b": 1, "mid": 1, "top": 0}
    assert heights(graph, ("a", "b")) == {"a": 0, "b": 0}
    # The shorter of two ways up is met last: the longer one counts.
    ways = {"a": (), "low": ("a",), "deep": ("a",), "mid": ("deep",), "top": ("low", "mid")}
    assert heights(make_graph(ways, ["top"]), tuple(ways)) == {"a": 3, "low": 1, "deep": 2, "mid": 1, "top": 0}


@st.composite
def graphs_and_hits(draw):
    size = draw(st.integers(1, 12))
    children = {
        f"n{index}": tuple(f"n{child}" for child in sorted(draw(st.sets(st.integers(0, index - 1), max_size=4))))
        if index
        else ()
        for index in range(size)
    }
    requested = draw(st.lists(st.sampled_from(list(children)), min_size=1, max_size=3))
    known = draw(st.sets(st.sampled_from(list(children))))
    return children, requested, known


@given(graphs_and_hits())
def test_the_plan_is_what_a_naive_walk_would_run(case):
    children, requested, known = case
    wanted: set[str] = set()

    def visit(label: str) -> None:
        if label not in known and label not in wanted:
            wanted.add(label)
            for child in children[label]:
                visit(child)

    for label in requested:
        visit(label)
    plan: Plan[str] = Plan(make_graph(children, requested))
    complete(plan, known)
    assert set(plan.to_run) == wanted
    assert len(plan.to_run) == len(wanted)
    position = {label: place for place, label in enumerate(plan.to_run)}
    assert all(position[child] < position[label] for label in wanted for child in children[label] if child in wanted)
    assert set(plan.hits) <= known
