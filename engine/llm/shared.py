"""Slots that hold what many requests begin with: kept in memory, read from the file of another worker, or computed.

Where another worker is computing the same prefix, this one meanwhile computes a prefix that will be wanted later, so
that each is computed once. Which way a prefix came changes none of its bits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from gsum.engine.llm.prefixes import PrefixFiles
from gsum.engine.llm.ragged import RaggedModel, Slot
from gsum.engine.llm.schemes import Scheme

_MOST = 4
"""How many prefixes are kept in memory: a build has one a prompt."""
_PATIENCE = 10.0
"""For how many seconds another worker is waited for: several times what a prefix takes."""

Tokens = tuple[int, ...]


class SharedSlots:
    """The prefixes of one model. Used by one thread, in inference mode."""

    def __init__(self, ragged: RaggedModel, scheme: Scheme, files: PrefixFiles | None) -> None:
        self._ragged = ragged
        self._scheme = scheme
        self._files = files
        self._slots: OrderedDict[Tokens, Slot] = OrderedDict()

    def get(self, tokens: Tokens, later: Callable[[], Tokens] = tuple) -> tuple[Slot, bool]:
        """Return the slot that holds `tokens`, and whether nothing had to be computed.

        `later` gives the tokens of a prefix that will be wanted, for the time that another worker is waited for.
        """
        slot = self._slots.get(tokens)
        if slot is not None:
            self._slots.move_to_end(tokens)
            return slot, True
        reused = self._fill(tokens, 0)
        if reused is None:
            ahead = later()
            if ahead and ahead != tokens and ahead not in self._slots:
                self._fill(ahead, 0)
            reused = self._fill(tokens, _PATIENCE)
        return self._slots[tokens], bool(reused)

    def clear(self) -> None:
        """Drop all slots."""
        self._slots.clear()

    def _fill(self, tokens: Tokens, patience: float) -> bool | None:
        """Read or compute a prefix, and return whether it was read; null if another worker is computing it.

        With some patience there is a slot in any case.
        """
        slot = self._ragged.slot(len(tokens), ())
        if self._files is None:
            self._compute(tokens, slot)
            return self._keep(tokens, slot, read=False)
        if self._files.read(tokens, slot):
            return self._keep(tokens, slot, read=True)
        with self._files.claim(tokens, patience) as mine:
            if not mine and not patience:
                self._ragged.release(slot)
                return None
            if self._files.read(tokens, slot):  # another worker has written it since
                return self._keep(tokens, slot, read=True)
            self._compute(tokens, slot)
            self._files.write(tokens, slot)
        return self._keep(tokens, slot, read=False)

    def _compute(self, tokens: Tokens, slot: Slot) -> None:
        most = self._scheme.rows or len(tokens)
        for start in range(0, len(tokens), most):
            self._ragged.forward([(slot, tokens[start : start + most])])

    def _keep(self, tokens: Tokens, slot: Slot, *, read: bool) -> bool:
        slot.length = len(tokens)
        self._slots[tokens] = slot
        while len(self._slots) > _MOST:
            self._ragged.release(self._slots.popitem(last=False)[1])
        return read
