"""Greedy generation of several requests at once, over shared prefixes that are prefilled once.

Token ids depend on the request alone: its prompt is always split at the same place, the prefix prefilled by itself,
each chosen token fed with the forced ones behind it as one chunk; a warm prefix holds what a cold one would compute.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from gsum.engine.llm.constrain import GrammarCompiler, GrammarError, GrammarState
from gsum.engine.llm.draft import Draft
from gsum.engine.llm.load import LoadedModel
from gsum.engine.llm.prefixes import PrefixFiles
from gsum.engine.llm.ragged import RaggedModel, Slot
from gsum.engine.llm.schemes import SINGLE, Scheme
from gsum.engine.llm.shared import SharedSlots
from gsum.engine.llm.tokenize import PromptTokenizer, PromptTokens, TemplateError
from gsum.engine.llm.writing import Writing
from gsum.rules.requests import Message, Request
from gsum.store.records import StopReason

if TYPE_CHECKING:
    import torch

_SLOT_BYTES = 2 << 30
"""Memory for keys and values beyond which no further request is taken on."""


class OverBudget(Exception):
    """A prompt longer than its budget or the model's context. `needed` is exact, or a bound if `at_least`."""

    def __init__(self, budget: int, needed: int, *, at_least: bool = False, context: bool = False) -> None:
        super().__init__("over budget")
        self.budget = budget
        self.needed = needed
        self.at_least = at_least
        self.context = context


class NotANumber(Exception):
    """The model gave logits that are no numbers."""


class Decoded(msgspec.Struct, frozen=True):
    """A finished generation. `token_ids` include the end token if the model chose it.

    `seconds` is its share of the passes it was in, by rows: those of all generations add up to the time it took.
    """

    token_ids: tuple[int, ...]
    text: str
    stop: StopReason
    seconds: float
    prompt_tokens: int
    prefilled: int
    reused: int
    forced: int
    sampled: int
    drafted: int = 0
    """How many of the sampled tokens a draft foretold: so many passes were saved."""


Ended = tuple[str, Decoded | GrammarError | NotANumber]
"""A request's key and its generation, or why it has none."""


class Decoder:
    """A loaded model that answers requests, up to a scheme's width at a time. Used by one thread."""

    def __init__(self, loaded: LoadedModel, scheme: Scheme = SINGLE, files: PrefixFiles | None = None) -> None:
        self.scheme = scheme
        self._ragged = RaggedModel(loaded.model, loaded.attention, loaded.device, scheme)
        self._shared = SharedSlots(self._ragged, scheme, files)
        self._end_ids = loaded.end_ids
        self._tokens = PromptTokenizer(loaded.tokenizer)
        self._context = int(getattr(loaded.model.config.get_text_config(), "max_position_embeddings", 0)) or None
        self._compiler: GrammarCompiler | None = None
        self._loaded = loaded
        self._writing: dict[str, Writing] = {}
        self._passes = 0
        self._ended: list[Ended] = []

    @property
    def keys(self) -> list[str]:
        """The requests at work, oldest first."""
        return list(self._writing)

    @property
    def full(self) -> bool:
        """Whether one more request would be too many for the scheme or for memory."""
        tokens = sum(one.prompt.total + one.request.max_new_tokens for one in self._writing.values())
        return len(self._writing) >= self.scheme.width or tokens * self._ragged.bytes_per_token >= _SLOT_BYTES

    def generate(self, request: Request, draft: Sequence[int] = ()) -> Decoded:
        """Answer one request by pure argmax, ties to the lowest id. For a decoder with nothing at work.

        Raises:
            OverBudget, GrammarError, TemplateError: as `add`, before anything is computed.
            GrammarError: also if the grammar comes to admit nothing.
            NotANumber: if the logits are no numbers.
        """
        self.add("", request, draft)
        while not (ended := self.step()):
            pass
        [(_, done)] = ended
        if not isinstance(done, Decoded):
            raise done
        return done

    def add(self, key: str, request: Request, draft: Sequence[int] = (), then: Sequence[Message] = ()) -> None:
        """Take on a request, with nothing computed yet.

        `draft`: the tokens of an answer that it may resemble. `then`: what later requests begin with.

        Raises:
            OverBudget: if it is too long.
            GrammarError: if its grammar does not compile.
            TemplateError: if the chat template does not carry the messages.
        """
        began = time.monotonic()
        prompt = self._within_budget(request)
        grammar = self._grammar(request)
        known = list(itertools.takewhile(lambda token: 0 <= token < self._loaded.vocab_size, draft))
        hoped = Draft(known) if known and self.scheme.drafts else None
        rest, ends = list(prompt.rest), self._end_ids
        writing = Writing(key, request, prompt, grammar, hoped, ends, rest, fed=self._passes, then=tuple(then))
        self._writing[key] = writing
        writing.settle()
        self._end_if_done(writing)
        writing.seconds = time.monotonic() - began

    def drop(self, key: str) -> None:
        """Give up a request, if it is at work or has ended since the last `step`."""
        self._ended = [ended for ended in self._ended if ended[0] != key]
        writing = self._writing.pop(key, None)
        if writing is not None and writing.slot is not None:
            self._ragged.release(writing.slot)

    def give_back_memory(self) -> None:
        """Drop all requests and every tensor that is kept for later ones."""
        self._writing.clear()
        self._shared.clear()
        self._ragged.forget()

    def step(self) -> list[Ended]:
        """Run one pass over what is at work; return what ended. Whatever it raises, all keys are still at work."""
        import torch  # noqa: PLC0415

        if self._writing:
            with torch.inference_mode():
                self._pass()
        ended, self._ended = self._ended, []
        return ended

    def _pass(self) -> None:
        fed = self._gathered()
        rows = sum(len(chunk) for _, _, chunks in fed for chunk in chunks)
        began = time.monotonic()
        logits = iter(self._ragged.forward([(slot, chunk) for _, slot, chunks in fed for chunk in chunks]))
        shared = (time.monotonic() - began) / rows
        for writing, slot, chunks in fed:
            began = time.monotonic()
            writing.seconds += shared * sum(map(len, chunks))
            self._follow(writing, slot, chunks, [next(logits) for _ in chunks])
            writing.seconds += time.monotonic() - began

    def _gathered(self) -> list[tuple[Writing, Slot, list[list[int]]]]:
        """Return what the next pass feeds: of each request the piece of its chunk that fits, and what was foretold.

        What was left out of a pass comes first in the next: no piece waits for others to end.
        """
        taken: list[tuple[Writing, Slot, list[list[int]]]] = []
        left = self.scheme.most
        self._passes += 1
        for writing in sorted(self._writing.values(), key=lambda one: one.fed):
            piece = writing.pending[: self.scheme.rows or None]
            if taken and len(piece) > left:
                continue
            taken.append((writing, writing.slot or self._open(writing), [piece]))
            writing.fed = self._passes
            left -= len(piece)
        for writing, _, chunks in taken:
            if left > 0:
                chunks += writing.foretold(left)
                left -= sum(map(len, chunks[1:]))
        return taken

    def _follow(self, writing: Writing, slot: Slot, chunks: list[list[int]], logits: Sequence[torch.Tensor]) -> None:
        """Choose after each chunk that was fed, as long as the next one is what comes of it; forget the others."""
        piece, *ahead = chunks
        writing.pending = writing.pending[len(piece) :]
        if writing.pending:  # a piece of a chunk: nothing is chosen before its end
            return
        ahead_rows = sum(map(len, ahead))
        for row, chunk in zip(logits, [*ahead, None], strict=True):
            self._extend(writing, row)
            if chunk is None or writing.key not in self._writing or not writing.confirm(chunk):
                break
            ahead_rows -= len(chunk)
        slot.length -= ahead_rows

    def _extend(self, writing: Writing, logits: torch.Tensor) -> None:
        """Choose the next token, and follow it as far as its grammar forces."""
        try:
            writing.choose(self._choose(logits, writing.grammar))
        except (GrammarError, NotANumber) as error:
            self.drop(writing.key)
            self._ended.append((writing.key, error))
            return
        self._end_if_done(writing)

    def _end_if_done(self, writing: Writing) -> None:
        stop = writing.stop
        if stop is None:
            return
        content = writing.ids[:-1] if stop is StopReason.EOS else writing.ids
        total = writing.prompt.total
        done = Decoded(
            token_ids=tuple(writing.ids),
            text=self._tokens.text(content),
            stop=stop,
            seconds=writing.seconds,
            prompt_tokens=total,
            prefilled=total - writing.reused if writing.slot is not None else 0,
            reused=writing.reused,
            forced=writing.forced,
            sampled=writing.sampled,
            drafted=writing.drafted,
        )
        self.drop(writing.key)
        self._ended.append((writing.key, done))

    def _choose(self, logits: torch.Tensor, grammar: GrammarState | None) -> int:
        if bool(logits.isnan().any()):
            raise NotANumber
        if grammar is not None:
            logits = logits.masked_fill(~grammar.admitted(), float("-inf"))
        return int(logits.argmax())  # the first of equal maxima, hence the lowest id

    def _open(self, writing: Writing) -> Slot:
        """Give a request its slot, with the shared tokens in it."""
        shared = writing.prompt.shared
        begun = self._shared.get(shared, lambda: self._expected(writing)) if shared else None
        began = time.monotonic()
        slot = self._ragged.slot(writing.prompt.total + writing.request.max_new_tokens, shared)
        if begun is not None:
            writing.reused = len(shared) if begun.reused else 0
            writing.seconds += begun.seconds
            if slot.length != len(shared):
                slot.begin_with(begun.slot, shared)
        writing.slot = slot
        writing.seconds += time.monotonic() - began
        return slot

    def _expected(self, writing: Writing) -> tuple[int, ...]:
        """Return what later requests begin with, nothing if that can't be told."""
        with contextlib.suppress(Exception):  # a template may raise anything, and these messages are not asked for yet
            return self._tokens.shared(writing.then) if writing.then else ()
        return ()

    def _within_budget(self, request: Request) -> PromptTokens:
        bound = self._tokens.at_least(request)
        if bound > request.input_tokens:
            raise OverBudget(request.input_tokens, bound, at_least=True)
        prompt = self._tokens.prompt(request)
        if prompt.total > request.input_tokens:
            raise OverBudget(request.input_tokens, prompt.total)
        if self._context is not None and prompt.total + request.max_new_tokens > self._context:
            raise OverBudget(self._context, prompt.total + request.max_new_tokens, context=True)
        return prompt

    def _grammar(self, request: Request) -> GrammarState | None:
        if request.grammar is None:
            return None
        if self._compiler is None:
            self._compiler = GrammarCompiler(self._loaded.tokenizer, self._loaded.vocab_size, sorted(self._end_ids))
        return self._compiler.start(request.grammar)


__all__ = ["Decoded", "Decoder", "Ended", "GrammarError", "NotANumber", "OverBudget", "TemplateError"]
