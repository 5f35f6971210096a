"""The order in which actions start, and how many results wait to be read. Pure."""

from __future__ import annotations

import pytest
from support.graphs import make_graph

from gsum.engine.frontier import Frontier

TREES = {
    f"{tree}{name}": tuple(f"{tree}{child}" for child in below)
    for tree in "abcd"
    for name, below in {"1": (), "2": (), "3": (), "4": (), "x": "12", "y": "34", "z": "xy"}.items()
}


def order(frontier: Frontier) -> list[str]:
    """Start and finish one action after the other."""
    started = []
    while frontier.next is not None:
        started.append(frontier.pop())
        frontier.read(started[-1])
        frontier.finished(started[-1])
    return started


def most_waiting(frontier: Frontier) -> int:
    """Return how many results waited to be read at most, one action after the other."""
    waiting: set[str] = set()
    most = 0
    while frontier.next is not None:
        label = frontier.pop()
        waiting.difference_update(frontier.read(label))
        if frontier.wanted(label):
            waiting.add(label)
        frontier.finished(label)
        most = max(most, len(waiting))
    return most


def test_the_longest_chain_above_goes_first_and_ties_keep_the_order_of_the_plan():
    children = {"s1": (), "s2": (), "short": ("s1", "s2"), "d1": (), "d2": ("d1",), "deep": ("d2",)}
    frontier = Frontier(make_graph(children, ["short", "deep"]), tuple(children))
    assert order(frontier) == ["d1", "s1", "s2", "d2", "short", "deep"]


def test_an_action_waits_for_all_of_its_children():
    children = {"a": (), "b": (), "top": ("a", "b")}
    frontier = Frontier(make_graph(children, ["top"]), tuple(children))
    assert (frontier.pop(), frontier.pop(), frontier.next) == ("a", "b", None)
    frontier.finished("b")
    assert frontier.next is None
    frontier.finished("a")
    assert frontier.next == "top"


def test_nothing_is_popped_when_nothing_may_start():
    frontier = Frontier(make_graph({"a": ()}, ["a"]), ("a",))
    frontier.pop()
    with pytest.raises(IndexError):
        frontier.pop()


@pytest.mark.parametrize("held", [4, 8])
def test_results_that_wait_to_be_read_are_bounded_whatever_the_number_of_trees(held):
    """Leaves of all trees are the most urgent: without the bound every one of them would wait."""
    labels = [label for tree in range(50) for label in (f"{tree}-{name}" for name in TREES)]
    children = {
        f"{tree}-{name}": tuple(f"{tree}-{c}" for c in below) for tree in range(50) for name, below in TREES.items()
    }
    graph = make_graph(children, [label for label in labels if label.endswith("z")])
    assert most_waiting(Frontier(graph, tuple(labels))) >= 800
    assert most_waiting(Frontier(graph, tuple(labels), held)) <= held + 4
    assert sorted(order(Frontier(graph, tuple(labels), held))) == sorted(labels)


def test_a_result_is_let_go_when_its_last_reader_has_read_it():
    children = {"a": (), "left": ("a",), "right": ("a", "a")}
    frontier = Frontier(make_graph(children, ["left", "right"]), tuple(children))
    frontier.pop()
    frontier.finished("a")
    assert frontier.wanted("a")
    assert frontier.read("right") == []
    assert frontier.read("left") == ["a"]
    assert not frontier.wanted("a")


def test_all_above_a_failure_are_named_once():
    children = {"a": (), "b": (), "x": ("a", "b"), "y": ("a",), "top": ("x", "y")}
    frontier = Frontier(make_graph(children, ["top"]), tuple(children))
    assert sorted(frontier.above("a")) == ["top", "x", "y"]
    assert list(frontier.above("top")) == []
