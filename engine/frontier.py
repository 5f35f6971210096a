"""Which actions of a plan may start now, and which results are still wanted. Pure; knows no store and no executor.

Most urgent first: the longest chain of actions above, then the order of the plan, so that priorities are stable.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from gsum.engine.plan import heights
from gsum.rules.graph import ActionGraph


class Frontier:
    """The actions of a plan between waiting and done."""

    def __init__(self, graph: ActionGraph, to_run: tuple[str, ...]) -> None:
        """`to_run` holds children before parents; what it does not hold is there already."""
        self._graph = graph
        self._order = {label: position for position, label in enumerate(to_run)}
        self._heights = heights(graph, to_run)
        self._missing: dict[str, int] = {}
        self._parents: dict[str, list[str]] = {}
        self._readers: dict[str, int] = {}
        self._ready: list[tuple[int, int, str]] = []
        for label in to_run:
            children = graph.actions[label].children
            running = [child for child in children if child in self._order]
            self._missing[label] = len(running)
            for child in children:
                self._readers[child] = self._readers.get(child, 0) + 1
            for child in running:
                self._parents.setdefault(child, []).append(label)
            if not running:
                self._push(label)

    @property
    def next(self) -> str | None:
        """The most urgent action that may start; null when none may."""
        return self._ready[0][2] if self._ready else None

    def pop(self) -> str:
        """Take the most urgent action."""
        return heapq.heappop(self._ready)[2]

    def finished(self, label: str) -> None:
        """Note that an action is done: those above it that miss nothing more may start."""
        for parent in self._parents.pop(label, ()):
            self._missing[parent] -= 1
            if self._missing[parent] == 0:
                self._push(parent)

    def above(self, label: str) -> Iterator[str]:
        """Yield every action above one that failed, each once: they never start."""
        seen = {label}
        waiting = [label]
        while waiting:
            for parent in self._parents.get(waiting.pop(), ()):
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
                    yield parent

    def wanted(self, label: str) -> bool:
        """Whether some action still has to read what `label` yields."""
        return self._readers.get(label, 0) > 0

    def read(self, label: str) -> list[str]:
        """Note that an action has read its children, or never will; return those that nobody wants any more."""
        unwanted = []
        for child in dict.fromkeys(self._graph.actions[label].children):
            self._readers[child] -= self._graph.actions[label].children.count(child)
            if self._readers[child] == 0:
                unwanted.append(child)
        return unwanted

    def _push(self, label: str) -> None:
        heapq.heappush(self._ready, (-self._heights[label], self._order[label], label))
