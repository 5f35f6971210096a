"""An old answer, offered token by token as what a new one may say. Pure; what it says is only ever a guess.

After a difference it goes on as if one token had been put for another, until what was said last is found further on.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

_ANCHOR = 4
"""So many tokens in a row found again are a place to go on from."""


class Draft:
    """Where a new answer stands in an old one."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens = tuple(tokens)
        self._at = 0
        self._sure = 0  # how far both are known to agree: what lies before is not looked at again
        self._run = 0
        self._last: tuple[int, ...] = ()

    @property
    def next(self) -> int | None:
        """The token that it says comes next; None at its end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def follow(self, said: Sequence[int]) -> None:
        """Take note of what the new answer says."""
        for token in said:
            self._run = self._run + 1 if self.next == token else 0
            self._at += 1
        self._last = (*self._last, *said)[-_ANCHOR:]
        if self._run < _ANCHOR and (found := self._find()) is not None:
            self._at, self._run = found, _ANCHOR
        if self._run >= _ANCHOR:
            self._sure = self._at

    def fork(self) -> Draft:
        """Return another that stands at the same place, to look ahead with."""
        return copy.copy(self)

    def _find(self) -> int | None:
        """Return the place behind the first anchor that both have, ending past what agreed."""
        if len(self._last) < _ANCHOR:
            return None
        for end in range(max(self._sure + 1, _ANCHOR), len(self._tokens) + 1):
            if self._tokens[end - _ANCHOR : end] == self._last:
                return end
        return None
