"""One generation's grammar, enforced by llguidance: what is forced, what is admitted, where it ends.

States and errors are told by kind and position only: a grammar holds document text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from llguidance import LLMatcher
    from transformers import PreTrainedTokenizerFast

_BUILDER = "this is a fault of the grammar's builder"
_SHORTER = "split the document into shorter ones"
_TOO_LARGE = re.compile(r"too (?:big|large|many|complex)|limit|max is", re.IGNORECASE)
_PLACE = re.compile(r"\d+\(\d+\)|line \d+")


class GrammarError(Exception):
    """A grammar that does not compile, or that admits nothing; `facts` say which and where, without its text."""

    def __init__(self, message: str, facts: dict[str, str], hint: str = _BUILDER) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts
        self.hint = hint


class GrammarCompiler:
    """Compiles Lark text against one tokenizer. `vocab_size` is the model's, which may exceed the tokenizer's."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, vocab_size: int, end_ids: Sequence[int]) -> None:
        import llguidance.hf  # noqa: PLC0415

        self.vocab_size = vocab_size
        self._tokenizer = llguidance.hf.from_tokenizer(tokenizer, n_vocab=vocab_size, eos_token=sorted(end_ids))

    def start(self, lark: str) -> GrammarState:
        """Return a fresh state of a grammar; raises GrammarError if it does not compile."""
        import llguidance  # noqa: PLC0415

        grammar = llguidance.LLMatcher.grammar_from_lark(lark)
        matcher = llguidance.LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            place = _PLACE.search(matcher.get_error())
            facts = {"place": place[0] if place else "unknown"}
            raise _failure(matcher, "the grammar does not compile", facts)
        return GrammarState(matcher, self.vocab_size)


class GrammarState:
    """Where one generation stands in its grammar."""

    def __init__(self, matcher: LLMatcher, vocab_size: int) -> None:
        import torch  # noqa: PLC0415

        self._matcher = matcher
        self._vocab_size = vocab_size
        self._bits = torch.zeros((vocab_size + 31) // 32, dtype=torch.int32)
        self._shifts = torch.arange(32, dtype=torch.int32)
        self._taken = 0

    @property
    def ended(self) -> bool:
        """Whether nothing may follow."""
        return bool(self._matcher.is_stopped()) and not self._matcher.is_error()

    def forced(self) -> list[int]:
        """Return the tokens that must come next, without taking them."""
        return [int(token) for token in self._matcher.compute_ff_tokens()]

    def take(self, tokens: Sequence[int]) -> None:
        """Advance by tokens that were forced or chosen."""
        if not self._matcher.consume_tokens(list(tokens)):
            raise self._error("the grammar refused a token it had admitted")
        self._taken += len(tokens)

    def admits(self, token: int) -> bool:
        """Whether a token may come next."""
        return 0 <= token < self._vocab_size and int(self._matcher.validate_tokens([token])) == 1

    def fork(self) -> GrammarState:
        """Return another that stands at the same place, to look ahead with."""
        return GrammarState(self._matcher.deep_copy(), self._vocab_size)

    def admitted(self) -> torch.Tensor:
        """Return a boolean tensor over the vocabulary: what may come next.

        Raises:
            GrammarError: if nothing may.
        """
        bits = self._bits
        self._matcher.unsafe_compute_mask_ptr(bits.data_ptr(), bits.numel() * bits.element_size())
        mask = ((bits.unsqueeze(1) >> self._shifts) & 1).bool().flatten()[: self._vocab_size]
        if self._matcher.is_error() or not bool(mask.any()):
            raise self._error("the grammar admits nothing more")
        return mask

    def _error(self, message: str) -> GrammarError:
        facts = {"after tokens": str(self._taken), "state": str(self._matcher.stop_reason())}
        return _failure(self._matcher, message, facts)


def _failure(matcher: LLMatcher, message: str, facts: dict[str, str]) -> GrammarError:
    """Tell a grammar past the backend's limits, which its document's length explains, from one that is wrong."""
    if _TOO_LARGE.search(matcher.get_error().partition("\n")[0]):
        return GrammarError(
            "the input has too many lines for its grammar", facts, "split the document into shorter ones"
        )
    return GrammarError(message, facts)
