"""Greedy generation of one request at a time, over a shared prefix that is prefilled once.

Token ids depend on the request alone: the prompt is always split at the same place, the prefix always prefilled by
itself, forced tokens always fed as one chunk; a warm prefix holds the very values a cold one would compute.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec

from gsum.engine.llm.constrain import GrammarCompiler, GrammarError, GrammarState
from gsum.engine.llm.load import LoadedModel
from gsum.engine.llm.tokenize import PromptTokenizer, PromptTokens
from gsum.rules.requests import Request
from gsum.store.records import StopReason

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache

_PREFIXES = 4
"""How many prefixes are kept: a build has one a prompt."""


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
    """A finished generation. `token_ids` include the end token if the model chose it."""

    token_ids: tuple[int, ...]
    text: str
    stop: StopReason
    seconds: float
    prompt_tokens: int
    prefilled: int
    reused: int
    forced: int
    sampled: int


class _Written(msgspec.Struct):
    """What has been generated so far; `fed` of the ids are already in the cache."""

    ids: list[int]
    fed: int = 0
    forced: int = 0
    sampled: int = 0


class Decoder:
    """A loaded model that answers requests. Used by one thread."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._model = loaded.model
        self._device = loaded.device
        self._end_ids = loaded.end_ids
        self._tokens = PromptTokenizer(loaded.tokenizer)
        self._context = int(getattr(loaded.model.config.get_text_config(), "max_position_embeddings", 0)) or None
        self._compiler: GrammarCompiler | None = None
        self._loaded = loaded
        self._prefixes: OrderedDict[tuple[int, ...], list[tuple[torch.Tensor, torch.Tensor]]] = OrderedDict()

    def generate(self, request: Request) -> Decoded:
        """Answer one request by pure argmax, ties to the lowest id.

        Raises:
            OverBudget: before anything is computed.
            GrammarError: if the grammar does not compile or admits nothing.
            NotANumber: if the logits are no numbers.
            TemplateError: if the chat template does not carry the messages.
        """
        import torch  # noqa: PLC0415

        began = time.monotonic()
        prompt = self._within_budget(request)
        grammar = self._grammar(request)
        with torch.inference_mode():
            cache, reused = self._cache_after(prompt.shared)
            written = _Written([])
            stop = self._write(request, prompt, cache, grammar, written)
        content = written.ids[:-1] if stop is StopReason.EOS else written.ids
        return Decoded(
            token_ids=tuple(written.ids),
            text=self._tokens.text(content),
            stop=stop,
            seconds=time.monotonic() - began,
            prompt_tokens=prompt.total,
            prefilled=prompt.total - reused,
            reused=reused,
            forced=written.forced,
            sampled=written.sampled,
        )

    def _write(
        self,
        request: Request,
        prompt: PromptTokens,
        cache: DynamicCache,
        grammar: GrammarState | None,
        written: _Written,
    ) -> StopReason:
        pending = list(prompt.rest)
        most = request.max_new_tokens
        while True:
            if grammar is not None:
                forced = grammar.forced()[: most - len(written.ids)]
                grammar.take(forced)
                written.ids += forced
                written.forced += len(forced)
                if grammar.ended:
                    return StopReason.GRAMMAR
            if len(written.ids) >= most:
                return StopReason.LENGTH
            pending += written.ids[written.fed :]
            written.fed = len(written.ids)
            chosen = self._choose(self._forward(pending, cache), grammar)
            pending = []
            written.ids.append(chosen)
            written.sampled += 1
            if chosen in self._end_ids:
                return StopReason.EOS
            if grammar is not None:
                grammar.take([chosen])

    def _choose(self, logits: torch.Tensor, grammar: GrammarState | None) -> int:
        if bool(logits.isnan().any()):
            raise NotANumber
        if grammar is not None:
            logits = logits.masked_fill(~grammar.admitted().to(logits.device), float("-inf"))
        return int(logits.argmax())  # the first of equal maxima, hence the lowest id

    def _forward(self, ids: list[int] | tuple[int, ...], cache: DynamicCache) -> torch.Tensor:
        """Feed ids after what the cache holds; return the logits that follow the last one, on the CPU, in float32."""
        import torch  # noqa: PLC0415

        fed = torch.tensor([list(ids)], dtype=torch.long, device=self._device)
        out = self._model(input_ids=fed, cache=cache, use_cache=True, logits_to_keep=1)
        return out.logits[0, -1].float().cpu()

    def _cache_after(self, shared: tuple[int, ...]) -> tuple[DynamicCache, int]:
        """Return a cache that holds the shared tokens, and how many of them were not computed for it."""
        from transformers import DynamicCache  # noqa: PLC0415

        if not shared:
            return DynamicCache(config=self._model.config), 0
        reused = len(shared) if shared in self._prefixes else 0
        if not reused:
            first = DynamicCache(config=self._model.config)
            self._forward(shared, first)
            self._prefixes[shared] = [(layer.keys.clone(), layer.values.clone()) for layer in first.layers]
            while len(self._prefixes) > _PREFIXES:
                self._prefixes.popitem(last=False)
        self._prefixes.move_to_end(shared)
        cache = DynamicCache(config=self._model.config)
        for index, (keys, values) in enumerate(self._prefixes[shared]):
            cache.update(keys.clone(), values.clone(), index)
        return cache, reused

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


__all__ = ["Decoded", "Decoder", "GrammarError", "NotANumber", "OverBudget"]
