"""Walks over adjacency lists: reachability to a depth, all paths, one shortest path. Pure; nodes are numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Adjacency = Sequence[Sequence[int]]


def reach(
    edges: Adjacency, start: Iterable[int], depth: int | None = None, within: frozenset[int] | None = None
) -> frozenset[int]:
    """Return the nodes that at most `depth` edges lead to from `start`, itself included.

    Nodes outside `within` are neither returned nor passed through.
    """
    level = set(start) if within is None else within.intersection(start)
    seen = set(level)
    while level and (depth is None or depth > 0):
        level = set().union(*map(edges.__getitem__, level))
        level -= seen
        if within is not None:
            level &= within
        seen |= level
        depth = None if depth is None else depth - 1
    return frozenset(seen)


def descend(down: Adjacency, up: Adjacency, start: frozenset[int], within: frozenset[int]) -> frozenset[int]:
    """Return what `reach` along `down` does from `start`, a part of `within`; `up` is the reverse of `down`.

    Where little is left beside `start`, that is what is looked at.
    """
    rest = within - start
    if len(rest) > len(start):
        return reach(down, start, within=within)
    border = [node for node in rest if not start.isdisjoint(up[node])]
    return start | reach(down, border, within=rest)


def all_paths(down: Adjacency, up: Adjacency, start: Iterable[int], end: Iterable[int]) -> frozenset[int]:
    """Return the nodes on any path from `start` to `end` along `down`; `up` is its reverse."""
    return reach(up, end, within=reach(down, start))


def some_path(down: Adjacency, start: Iterable[int], end: frozenset[int]) -> tuple[int, ...]:
    """Return a shortest path from `start` to `end`, in order; empty where there is none.

    Of several it is the one that the order of `start` and of the edges meets first.
    """
    came_from: dict[int, int | None] = dict.fromkeys(start)
    queue = list(came_from)
    for node in queue:
        if node in end:
            return _back(came_from, node)
        for other in down[node]:
            if other not in came_from:
                came_from[other] = node
                queue.append(other)
    return ()


def _back(came_from: dict[int, int | None], node: int) -> tuple[int, ...]:
    path: list[int] = []
    current: int | None = node
    while current is not None:
        path.append(current)
        current = came_from[current]
    return tuple(reversed(path))
