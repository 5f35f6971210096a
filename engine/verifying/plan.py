"""What a verification asks, in what order and company, and where an output parts from the stored one. Pure.

Choice and order follow the BLAKE3 of seed, round and request key, so that the same options ask the same again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from blake3 import blake3

from gsum.store.digests import Digest, Key
from gsum.store.records import Generation

WIDTHS = (2, 3, 5, 8, 13, 21, 34, 55)
"""How many requests are asked together: numbers that leave remainders in a worker's own batches."""


class Stored(msgspec.Struct, frozen=True):
    """A request that the store has an answer to, the generation that is served, and the targets it was made for."""

    request: Key
    generation: Digest
    toolchain: str
    labels: tuple[str, ...]


class Round(msgspec.Struct, frozen=True):
    """One generation of every request. The requests of a batch are handed over together, in this order."""

    number: int
    batches: tuple[tuple[Key, ...], ...]

    @property
    def widths(self) -> tuple[int, ...]:
        """The different sizes of its batches, smallest first."""
        return tuple(sorted({len(batch) for batch in self.batches}))


class Divergence(msgspec.Struct, frozen=True):
    """How an output differs. `what`: of `token_ids`, `text`, `stop`; `token`: the first that differs, from 0."""

    what: tuple[str, ...]
    token: int | None
    stored_tokens: int
    made_tokens: int


def choose(requests: Sequence[Stored], number: int | None, seed: int) -> list[Stored]:
    """Return `number` of the requests, all for null, in the order of the seed."""
    return sorted(requests, key=lambda one: _rank(seed, 0, one.request))[:number]


def plan_rounds(requests: Iterable[Key], *, rounds: int, seed: int, capacity: int) -> Iterator[Round]:
    """Yield the rounds: the first asks each request alone, the others in shuffled batches of several widths.

    No batch is wider than `capacity`, what the executor wants to have at a time.
    """
    asked = list(requests)
    widths = [width for width in WIDTHS if width <= capacity] or [1]
    for number in range(1, rounds + 1):
        order = sorted(asked, key=lambda key: _rank(seed, number, key))
        turns = [1] if number == 1 else widths[(number - 2) % len(widths) :] + widths[: (number - 2) % len(widths)]
        yield Round(number, tuple(_cut(order, turns)))


def divergence(stored: Generation, made: Generation) -> Divergence | None:
    """Return how an output differs from the stored one, null where it does not."""
    what = tuple(name for name in ("token_ids", "text", "stop") if getattr(stored, name) != getattr(made, name))
    if not what:
        return None
    before, after = stored.token_ids, made.token_ids
    token = None
    if before != after:
        shorter = min(len(before), len(after))
        token = next((place for place in range(shorter) if before[place] != after[place]), shorter)
    return Divergence(what, token, len(before), len(after))


def _rank(seed: int, number: int, key: Key) -> bytes:
    return blake3(f"{seed} {number} {key}".encode()).digest()


def _cut(order: Sequence[Key], widths: Sequence[int]) -> Iterator[tuple[Key, ...]]:
    start, turn = 0, 0
    while start < len(order):
        width = widths[turn % len(widths)]
        yield tuple(order[start : start + width])
        start, turn = start + width, turn + 1
