"""What a worker has at hand: requests at work in its decoder, and those that wait for a place, client by client.

Used by one thread. It knows clients as numbers, and lets each have its turn.
"""

from __future__ import annotations

import contextlib
from collections import deque

import msgspec

from gsum.engine.llm.decode import Decoded, Decoder, GrammarError, NotANumber, OverBudget
from gsum.engine.llm.serve import Served
from gsum.engine.llm.tokenize import TemplateError
from gsum.engine.llm.verify import settings
from gsum.engine.llm.wire import Answer, Ask, Drop, Refused

_CLEAN_PASSES = 256
"""So many passes after memory ran out, one more request at a time is tried."""
_MEMORY_SIGNS = ("out of memory", "can't allocate memory", "not enough memory")

Said = tuple[int, Answer | Refused]
"""A client, and what it is told."""


class _Order(msgspec.Struct, frozen=True):
    """A request and who wants it. Two clients may want the same: each has its own."""

    client: int
    ask: Ask


class Bench:
    """The requests of a worker."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.decoder = Decoder(served.loaded, served.scheme, served.prefixes)
        self._limit = served.scheme.width
        self._clean = 0
        self._begun: str | None = None
        """The request that the decoder is just taking on."""
        self._orders: dict[str, _Order] = {}
        self._waiting: dict[int, deque[str]] = {}
        self._said: list[Said] = []

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do and nothing to say."""
        return not (self._orders or self._said)

    @property
    def at_hand(self) -> int:
        """How many requests have no answer."""
        return len(self._orders)

    def take(self, client: int, message: Ask | Drop) -> None:
        """Put a request behind the client's others, or give one up."""
        key = f"{client} {message.key}"
        if isinstance(message, Ask):
            self._orders[key] = _Order(client, message)
            self._waiting.setdefault(client, deque()).append(key)
        elif key in self._orders:
            self._forget(key)
            self._said.append((client, Refused("cancelled", "the request was given up", key=message.key)))

    def leave(self, client: int) -> None:
        """Drop all that a client wanted."""
        for key in [key for key, order in self._orders.items() if order.client == client]:
            self._forget(key)
        self._said = [said for said in self._said if said[0] != client]

    def step(self) -> list[Said]:
        """Fill the free places, run one pass, and return what is to be said."""
        try:
            while len(self.decoder.keys) < self._limit and not self.decoder.full and (key := self._next()):
                self._begin(key)
            for key, done in self.decoder.step():
                self._say(key, _answer(self._served, self._orders[key].ask, done))
            self._widen()
        except (MemoryError, RuntimeError) as error:
            if not is_memory(error):
                raise
            self._out_of_memory()
        said, self._said = self._said, []
        return said

    def _next(self) -> str | None:
        """Take the oldest waiting request of the client that has the fewest at work."""
        at_work = {client: 0 for client, waiting in self._waiting.items() if waiting}
        if not at_work:
            return None
        for key in self.decoder.keys:
            client = self._orders[key].client
            if client in at_work:
                at_work[client] += 1
        return self._waiting[min(at_work, key=at_work.__getitem__)].popleft()

    def _begin(self, key: str) -> None:
        ask = self._orders[key].ask
        self._begun = key
        try:
            self.decoder.add(key, ask.request, ask.draft, ask.then)
        except OverBudget as error:
            self._say(key, _over_budget(ask.key, error))
        except GrammarError as error:
            self._say(key, _grammar_failed(ask.key, error))
        except TemplateError as error:
            self._say(key, Refused("error", "the prompt could not be rendered", {"reason": str(error)}, None, ask.key))
        self._begun = None

    def _widen(self) -> None:
        """After many passes in which memory did not run out, allow one more request at a time."""
        self._clean += 1
        if self._clean >= _CLEAN_PASSES:
            self._clean = 0
            self._limit = min(self._served.scheme.width, self._limit + 1)

    def _out_of_memory(self) -> None:
        """Begin again with half as many at a time; a request that does not fit by itself fails."""
        begun, self._begun, self._clean = self._begun, None, 0
        at_work = self.decoder.keys
        if begun is not None and begun not in at_work:
            at_work.append(begun)
        self.decoder.give_back_memory()
        if len(at_work) > 1:
            self._limit = max(1, len(at_work) // 2)
            for key in reversed(at_work):
                self._waiting[self._orders[key].client].appendleft(key)
            return
        facts = {"device": self._served.loaded.device}
        for key in at_work:
            said = Refused("memory", "the machine ran out of memory", facts, None, self._orders[key].ask.key)
            self._say(key, said)

    def _forget(self, key: str) -> None:
        client = self._orders.pop(key).client
        self.decoder.drop(key)
        waiting = self._waiting[client]
        with contextlib.suppress(ValueError):
            waiting.remove(key)
        if not any(order.client == client for order in self._orders.values()):
            del self._waiting[client]

    def _say(self, key: str, said: Answer | Refused) -> None:
        client = self._orders[key].client
        self._forget(key)
        self._said.append((client, said))


def _answer(served: Served, ask: Ask, done: Decoded | GrammarError | NotANumber) -> Answer | Refused:
    """Return the line that says what became of a request."""
    if isinstance(done, GrammarError):
        return _grammar_failed(ask.key, done)
    if isinstance(done, NotANumber):
        return Refused("error", "the model's logits are not numbers", {"dtype": served.dtype}, None, ask.key)
    return Answer(
        key=ask.key,
        token_ids=done.token_ids,
        text=done.text,
        stop=done.stop,
        seconds=done.seconds,
        device=served.device,
        dtype=served.dtype,
        versions=served.versions,
        settings=settings(ask.request.max_new_tokens, served.loaded.end_ids, served.backend),
        prompt_tokens=done.prompt_tokens,
        prefilled=done.prefilled,
        reused=done.reused,
        forced=done.forced,
        sampled=done.sampled,
        drafted=done.drafted,
    )


def is_memory(error: Exception) -> bool:
    """Whether an exception says that the machine or the device has no memory left."""
    return isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in _MEMORY_SIGNS)


def _grammar_failed(key: str, error: GrammarError) -> Refused:
    return Refused("error", error.message, error.facts, error.hint, key)


def _over_budget(key: str, error: OverBudget) -> Refused:
    needed = f"at least {error.needed}" if error.at_least else str(error.needed)
    if error.context:
        message, hint = "the input and its answer do not fit the model's context", "give fewer or shorter documents"
    else:
        message = "the input is longer than its budget"
        hint = "raise the package's input budget in BUILD.toml, or split the document"
    return Refused(
        "over_budget", message, {"budget": f"{error.budget} tokens", "needed": f"{needed} tokens"}, hint, key
    )
