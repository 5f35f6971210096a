"""The plan: top-down from the requested labels, which actions are served and which must run. Pure.

A hit is not looked below. The caller answers batches of look-ups, so that one question costs one store access.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from gsum.rules.graph import ActionGraph

Entry = TypeVar("Entry")


class Plan(Generic[Entry]):
    """Which actions of a graph must run. Ask `unknown`, `answer`, until nothing is unknown."""

    def __init__(self, graph: ActionGraph) -> None:
        self._graph = graph
        self._seen: set[str] = set(graph.requested)
        self._unknown: list[str] = list(dict.fromkeys(graph.requested))
        self._misses: set[str] = set()
        self._to_run: tuple[str, ...] | None = None
        self.hits: dict[str, Entry] = {}

    @property
    def unknown(self) -> tuple[str, ...]:
        """The labels whose fate the plan needs to know next; empty when the plan is complete."""
        return tuple(self._unknown)

    def answer(self, hits: Mapping[str, Entry]) -> None:
        """Say which of the unknown labels have an entry; the others miss and their children become unknown."""
        asked, self._unknown, self._to_run = self._unknown, [], None
        for label in asked:
            if label in hits:
                self.hits[label] = hits[label]
                continue
            self._misses.add(label)
            for child in self._graph.actions[label].children:
                if child not in self._seen:
                    self._seen.add(child)
                    self._unknown.append(child)

    @property
    def to_run(self) -> tuple[str, ...]:
        """The actions that must run, children before parents."""
        if self._to_run is None:
            self._to_run = tuple([label for label in self._graph.actions if label in self._misses])
        return self._to_run


def heights(graph: ActionGraph, labels: tuple[str, ...]) -> dict[str, int]:
    """Return for each of `labels` the length of the longest chain of them above it: the critical path's priority.

    `labels` stand children before parents.
    """
    height = dict.fromkeys(labels, 0)
    for label in reversed(labels):
        for child in graph.actions[label].children:
            if child in height:
                height[child] = max(height[child], height[label] + 1)
    return height
