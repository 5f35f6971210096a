"""Which of given items an answer may list together, as rules of a Lark grammar of bounded size. Pure.

An item is the name of a rule, and a limit says how many of some items one list may hold. The rules are the states of
an automaton that remembers what the items listed so far leave open; lists that leave the same open share a state. It
knows items by name and place, not what they say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

_ANY_ORDER = 4_000
"""Up to so many transitions between states, items stand in any order: of 13 items up to 4, say."""
_IN_ORDER = 3_200
"""Up to so many states, items stand in the order given; beyond, limits are given up."""


class Limit(msgspec.Struct, frozen=True):
    """Of the items at these places, a list holds at most `quota`."""

    quota: int
    places: tuple[int, ...]


class _State(msgspec.Struct, frozen=True):
    """How many more items may follow, which ones (a bit for each place), and how many of each shared limit."""

    left: int
    open: int
    rest: tuple[int, ...]


class _Automaton:
    def __init__(self, count: int, most: int, limits: Sequence[Limit], *, repeated: bool) -> None:
        self._alone = [0 if repeated else 1 << place for place in range(count)]
        self._shared: list[int] = []
        rest: list[int] = []
        for limit in limits:
            bits = sum(1 << place for place in limit.places)
            if limit.quota > 1:
                self._shared.append(bits)
                rest.append(limit.quota)
            for place in limit.places if limit.quota == 1 else ():
                self._alone[place] |= bits
        self.start = self._state(most, (1 << count) - 1, rest)

    def after(self, state: _State, place: int) -> _State:
        """Return the state once the item at a place is listed."""
        rest = [left - (bits >> place & 1) for bits, left in zip(self._shared, state.rest, strict=True)]
        return self._state(state.left - 1, state.open & ~self._alone[place], rest)

    def without(self, state: _State, place: int) -> _State:
        """Return the state once the item at a place is passed over."""
        return self._state(state.left, state.open & ~(1 << place), state.rest)

    def _state(self, left: int, still: int, rest: Sequence[int]) -> _State:
        """Return a state in the one form that all of its kind have: no limit counts that can't bind any more."""
        for bits, spare in zip(self._shared, rest, strict=True):
            still &= ~bits if spare == 0 else -1
        counts = [min(spare, left) if bits & still else 0 for bits, spare in zip(self._shared, rest, strict=True)]
        return _State(left if still else 0, still if left else 0, tuple(counts) if still and left else (0,) * len(rest))


def list_rules(
    items: Sequence[str],
    most: int,
    attempts: Sequence[Sequence[Limit]] = ((),),
    *,
    repeated: bool = False,
    full: bool = False,
) -> list[str]:
    """Return rules whose first, `some`, admits 1 to `most` of the items, comma-separated.

    Each stands at most once unless `repeated`. Of the attempts at limits the first that a grammar of bounded size can
    hold is taken, in any order of the items or else in theirs; if none can be held, they are listed freely. A `full`
    list goes on for as long as another item may follow; listed freely, it may end before.
    """
    for limits in attempts:
        automaton = _Automaton(len(items), most, limits, repeated=repeated)
        rules = _any_order(automaton, items, full) or (None if repeated else _in_order(automaton, items, full))
        if rules is not None:
            return rules
    more = f' ("," item){{0,{most - 1}}}' if most > 1 else ""
    return [f"some: item{more}", f"item: {' | '.join(items)}"]


def picks(items: Sequence[str], most: int) -> list[str]:
    """Return rules whose first, `pick_0_N`, admits 1 to `most` of the items, comma-separated, in strict order.

    `pick_I_P` admits up to P of the items from I on: it takes item I or passes it over. P times the number of items
    rules, each of constant size.
    """
    rules: list[str] = []
    for left in range(min(most, len(items)), 0, -1):
        for index, item in enumerate(items):
            last = index + 1 == len(items)
            more = f' ("," pick_{index + 1}_{left - 1})?' if left > 1 and not last else ""
            passed = "" if last else f" | pick_{index + 1}_{left}"
            rules.append(f"pick_{index}_{left}: {item}{more}{passed}")
    return rules


class _Names:
    """The states met so far, each with the name of its rule, in the order in which they were met."""

    def __init__(self, start: _State, full: bool) -> None:
        self.states = [start]
        self._more = ' "," {}' if full else ' ("," {})?'
        self._names = {start: "some"}

    def of(self, state: _State) -> str:
        if state not in self._names:
            self._names[state] = f"some_{len(self.states)}"
            self.states.append(state)
        return self._names[state]

    def following(self, state: _State) -> str:
        """Return what may follow an item after which a list is in this state."""
        return self._more.format(self.of(state)) if state.open else ""


def _any_order(automaton: _Automaton, items: Sequence[str], full: bool) -> list[str] | None:
    """Return the rules of lists in any order; null if they are too many."""
    names = _Names(automaton.start, full)
    rules: list[str] = []
    transitions = 0
    for state in names.states:  # grows meanwhile
        following: dict[_State, list[str]] = {}
        for place in _places(state.open):
            following.setdefault(automaton.after(state, place), []).append(items[place])
            transitions += 1
        if transitions > _ANY_ORDER:
            return None
        ways = [f"{_either(several)}{names.following(after)}" for after, several in following.items()]
        rules.append(f"{names.of(state)}: {' | '.join(ways)}")
    return rules


def _in_order(automaton: _Automaton, items: Sequence[str], full: bool) -> list[str] | None:
    """Return the rules of lists in the items' order, each state taking its first open item or passing it over."""
    names = _Names(automaton.start, full)
    rules: list[str] = []
    for state in names.states:  # grows meanwhile
        place = next(_places(state.open))
        passed = automaton.without(state, place)
        ways = [f"{items[place]}{names.following(automaton.after(passed, place))}"]
        if passed.open:
            ways.append(names.of(passed))
        if len(names.states) > _IN_ORDER:
            return None
        rules.append(f"{names.of(state)}: {' | '.join(ways)}")
    return rules


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({' | '.join(names)})"


def _places(bits: int) -> Iterator[int]:
    """Yield the places of the bits that are set, from the lowest."""
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1
