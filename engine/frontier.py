"""Which actions of a plan may start now, and which results are still wanted. Pure; knows no store and no executor.

Most urgent first: the longest chain of actions above, then the order of the plan, so that priorities are stable. While
many results wait to be read, the ends of chains go first: they read results, and yield fewer.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from gsum.engine.plan import heights
from gsum.rules.graph import ActionGraph

HELD = 4096
"""Results that may wait to be read before those who read them are preferred: what bounds a build's memory."""

_TAKEN = -1


class Frontier:
    """The actions of a plan between waiting and done."""

    def __init__(self, graph: ActionGraph, to_run: tuple[str, ...], held: int | None = None) -> None:
        """`to_run` holds children before parents; what it does not hold is there already. `held` null: `HELD`."""
        self._graph = graph
        self._most = HELD if held is None else held
        self._held = 0
        self._order = {label: position for position, label in enumerate(to_run)}
        self._heights = heights(graph, to_run)
        self._missing: dict[str, int] = {}
        self._parents: dict[str, list[str]] = {}
        self._readers: dict[str, int] = {}
        self._urgent: list[tuple[int, int, str]] = []
        self._closing: list[tuple[int, int, str]] = []
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
        """The action that may start next; null when none may."""
        heap = self._closing if self._held > self._most else self._urgent
        while heap and self._missing[heap[0][2]] == _TAKEN:
            heapq.heappop(heap)
        return heap[0][2] if heap else None

    def pop(self) -> str:
        """Take the action that may start next."""
        label = self.next
        if label is None:
            raise IndexError("no action may start")
        self._missing[label] = _TAKEN
        return label

    def finished(self, label: str) -> None:
        """Note that an action is done: those above it that miss nothing more may start."""
        self._held += self.wanted(label)
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
        for child in self._graph.actions[label].children:
            self._readers[child] -= 1
            if self._readers[child] == 0:
                unwanted.append(child)
                self._held -= child not in self._parents and child in self._order
        return unwanted

    def _push(self, label: str) -> None:
        heapq.heappush(self._urgent, (-self._heights[label], self._order[label], label))
        heapq.heappush(self._closing, (self._heights[label], self._order[label], label))
