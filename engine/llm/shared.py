"""Slots that hold what many requests begin with: kept in memory, read from the file of another worker, or computed.

Where another worker is computing the same prefix, this one meanwhile computes a prefix that will be wanted later, so
that each is computed once. Which way a prefix came changes none of its bits.
"""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from gsum.engine.llm.prefixes import PrefixFiles
from gsum.engine.llm.ragged import RaggedModel, Slot
from gsum.engine.llm.schemes import Scheme

_MOST = 4
"""How many prefixes are kept in memory: a build has one a prompt."""
_PATIENCE = 10.0
"""For how many seconds another worker is waited for: several times what a prefix takes."""
_AHEAD = 2
"""What is computed meanwhile has at most so many times the tokens of what is waited for."""

Tokens = tuple[int, ...]


class Begun(NamedTuple):
    """A prefix for a request to begin with: whether nothing was computed for it, and the seconds that it took.

    What was computed ahead counts where it is first used; to wait for another worker counts nowhere.
    """

    slot: Slot
    reused: bool
    seconds: float


class SharedSlots:
    """The prefixes of one model. Used by one thread, in inference mode."""

    def __init__(self, ragged: RaggedModel, scheme: Scheme, files: PrefixFiles | None) -> None:
        self._ragged = ragged
        self._scheme = scheme
        self._files = files
        self._slots: OrderedDict[Tokens, Slot] = OrderedDict()
        self._unused: dict[Tokens, Begun] = {}
        """What was read or computed ahead, and not used so far."""

    def get(self, tokens: Tokens, later: Callable[[], Tokens] = tuple) -> Begun:
        """Return the prefix of `tokens`.

        `later` gives the tokens of a prefix that will be wanted, for the time that another worker is waited for.
        """
        if tokens in self._slots:
            self._slots.move_to_end(tokens)
            return self._unused.pop(tokens, None) or Begun(self._slots[tokens], True, 0.0)
        begun = self._try(tokens)
        if begun is None:
            with contextlib.suppress(MemoryError, RuntimeError):  # no request fails for what may be wanted later
                self._prepare(later(), len(tokens))
            begun = self._insist(tokens)
        return begun

    def clear(self) -> None:
        """Drop all slots."""
        self._slots.clear()
        self._unused.clear()

    def _prepare(self, tokens: Tokens, waited_for: int) -> None:
        if tokens and tokens not in self._slots and len(tokens) <= _AHEAD * waited_for:
            begun = self._try(tokens)
            if begun is not None:
                self._unused[tokens] = begun

    def _try(self, tokens: Tokens) -> Begun | None:
        """Read or compute a prefix; null if another worker is computing it."""
        if self._files is None:
            return self._compute(tokens)
        read = self._read(tokens)
        if read is not None:
            return read
        with self._files.claim(tokens, 0) as mine:
            return (self._read(tokens) or self._compute(tokens)) if mine else None

    def _insist(self, tokens: Tokens) -> Begun:
        """Read a prefix once another worker has computed it, or compute it when that takes too long."""
        assert self._files is not None
        with self._files.claim(tokens, _PATIENCE):
            return self._read(tokens) or self._compute(tokens)

    def _read(self, tokens: Tokens) -> Begun | None:
        began = time.monotonic()
        slot = self._ragged.slot(len(tokens), ())
        if self._files is None or not self._files.read(tokens, slot):
            self._ragged.release(slot)
            return None
        return self._keep(tokens, slot, True, began)

    def _compute(self, tokens: Tokens) -> Begun:
        began = time.monotonic()
        slot = self._ragged.slot(len(tokens), ())
        most = self._scheme.rows or len(tokens)
        for start in range(0, len(tokens), most):
            self._ragged.forward([(slot, tokens[start : start + most])])
        if self._files is not None:
            self._files.write(tokens, slot)
        return self._keep(tokens, slot, False, began)

    def _keep(self, tokens: Tokens, slot: Slot, reused: bool, began: float) -> Begun:
        slot.length = len(tokens)
        self._slots[tokens] = slot
        while len(self._slots) > _MOST:
            oldest, released = self._slots.popitem(last=False)
            self._unused.pop(oldest, None)
            self._ragged.release(released)
        return Begun(slot, reused, time.monotonic() - began)
