"""A worker whose batches are wrong on purpose: it pads short chunks to the longest one and lets the padding be seen.

That is what happens to a batch whose attention mask was forgotten. Alone, no request is padded, so nothing shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gsum.engine.llm import decode
from gsum.engine.llm.ragged import RaggedModel, Slot
from gsum.engine.llm.worker import main


class BadlyPadded(RaggedModel):
    """Feeds filler tokens before each chunk that is shorter than the longest of its pass."""

    def forward(self, fed: Sequence[tuple[Slot, Sequence[int]]], *given: Any, **named: Any) -> Any:
        longest = max(len(tokens) for _, tokens in fed)
        return super().forward([(slot, _padded(slot, tokens, longest)) for slot, tokens in fed], *given, **named)


def _padded(slot: Slot, tokens: Sequence[int], longest: int) -> list[int]:
    room = slot.capacity - slot.length - len(tokens) - 64  # what is still to be generated must fit
    return [0] * max(0, min(longest - len(tokens), room)) + list(tokens)


decode.RaggedModel = BadlyPadded  # type: ignore[misc]
main()
