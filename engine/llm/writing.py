"""One request at work: what it has said, what is to be fed next, what a draft says of the time after. No tensors.

A generation is a row of chunks: each a chosen token and those that its grammar forces behind it. A draft foretells
chunks; they are computed ahead, and kept only where they are what is chosen without it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gsum.engine.llm.attend import Slot
from gsum.engine.llm.constrain import GrammarState
from gsum.engine.llm.draft import Draft
from gsum.engine.llm.tokenize import PromptTokens
from gsum.rules.requests import Message, Request
from gsum.store.records import StopReason

_REACH = 64
"""How many chunks are foretold at a time, to begin with; after a wrong one it is one, then twice as many each time."""


class Writing(msgspec.Struct, eq=False):
    """A request at work. `pending` is fed next; `ids` is what has been generated; `drafted` of them were foretold.

    `fed`: the pass that it was last part of, or that ran before it came.
    """

    key: str
    request: Request
    prompt: PromptTokens
    grammar: GrammarState | None
    draft: Draft | None
    end_ids: frozenset[int]
    pending: list[int]
    ids: list[int] = []
    stop: StopReason | None = None
    slot: Slot | None = None
    reused: int = 0
    forced: int = 0
    sampled: int = 0
    drafted: int = 0
    seconds: float = 0.0
    reach: int = _REACH
    fed: int = 0
    then: tuple[Message, ...] = ()

    def choose(self, token: int) -> None:
        """Take a chosen token, and follow it as far as the grammar forces.

        Raises:
            GrammarError: if the grammar had not admitted it.
        """
        self.sampled += 1
        self._say([token])
        if token in self.end_ids:
            self.stop = StopReason.EOS
            return
        if self.grammar is not None:
            self.grammar.take([token])
        self.settle()

    def settle(self) -> None:
        """Take what the grammar forces; stop where nothing may follow, or no more is allowed."""
        most = self.request.max_new_tokens
        if self.grammar is not None:
            forced = self.grammar.forced()[: most - len(self.ids)]
            self.grammar.take(forced)
            self._say(forced)
            self.forced += len(forced)
            if self.grammar.ended:
                self.stop = StopReason.GRAMMAR
                return
        if len(self.ids) >= most:
            self.stop = StopReason.LENGTH

    def foretold(self, rows: int) -> list[list[int]]:
        """Return the chunks that the draft says come after those pending, of `rows` tokens at most together.

        A chunk that would end the answer is none: it costs no pass.
        """
        if self.draft is None:
            return []
        draft, grammar = self.draft.fork(), None if self.grammar is None else self.grammar.fork()
        most = self.request.max_new_tokens - len(self.ids)
        chunks: list[list[int]] = []
        while len(chunks) < self.reach:
            chunk = _chunk(draft, grammar, most, self.end_ids)
            most -= len(chunk)
            rows -= len(chunk)
            if not chunk or most <= 0 or rows < 0 or (grammar is not None and grammar.ended):
                break
            draft.follow(chunk)
            chunks.append(chunk)
        return chunks

    def confirm(self, chunk: Sequence[int]) -> bool:
        """Whether what is pending is what was foretold, and so has been fed already."""
        agrees = self.pending == chunk
        if agrees:
            self.pending = []
            self.drafted += 1
        self.reach = min(_REACH, 2 * self.reach) if agrees else 1
        return agrees

    def _say(self, tokens: list[int]) -> None:
        self.ids += tokens
        self.pending += tokens
        if self.draft is not None:
            self.draft.follow(tokens)


def _chunk(draft: Draft, grammar: GrammarState | None, most: int, end_ids: frozenset[int]) -> list[int]:
    """Return the next chunk by a draft's word, as `choose` would make it; an empty one if it can't be."""
    token = draft.next
    if token is None or token in end_ids or most < 1:
        return []
    if grammar is None:
        return [token]
    if not grammar.admits(token):
        return []
    grammar.take([token])
    forced = grammar.forced()[: most - 1]
    grammar.take(forced)
    return [token, *forced]
