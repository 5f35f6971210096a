"""The worker process: `python -m gsum.engine.llm.worker`, the lines of `wire.py` on standard input and output.

It owns one model, has no network, and ends when its input does, even in the middle of a generation. It writes no
document text anywhere but in its answers.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from collections import deque
from typing import BinaryIO, NoReturn

import msgspec

from gsum.engine.llm.decode import Decoded, Decoder, GrammarError, NotANumber, OverBudget
from gsum.engine.llm.hermetic import limit_memory, refuse_network
from gsum.engine.llm.serve import Served, open_model
from gsum.engine.llm.tokenize import TemplateError
from gsum.engine.llm.verify import settings
from gsum.engine.llm.wire import TO_WORKER, Answer, Ask, Drop, FromWorker, Hello, Ready, Refused, ToWorker

_HEADROOM = 4 << 30
"""What a worker on the CPU may take beside its model: the decoder's bound on keys and values, and as much again."""
_MEMORY_SIGNS = ("out of memory", "can't allocate memory", "not enough memory")


def main() -> None:
    """Greet, then answer until the input ends."""
    answers = _take_stdout()
    isolation = refuse_network()
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_lines, args=(lines,), daemon=True).start()
    hello = TO_WORKER.decode(lines.get())
    if not isinstance(hello, Hello):
        raise SystemExit("the first line must be a greeting")
    served = open_model(hello)
    if isinstance(served, Refused):
        _send(answers, served)
        return
    if served.loaded.device == "cpu":
        limit_memory(_HEADROOM)
    _send(answers, Ready({**served.observed, "network": isolation.value}))
    bench = Bench(served)
    while True:
        while not lines.empty() or bench.idle:
            bench.take(TO_WORKER.decode(lines.get()))
        for said in bench.step():
            _send(answers, said)


class Bench:
    """What a worker has at hand: requests at work in its decoder, and those that wait for a place."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.decoder = Decoder(served.loaded, served.scheme)
        self._limit = served.scheme.width
        self._asked: dict[str, Ask] = {}
        self._waiting: deque[str] = deque()
        self._said: list[Answer | Refused] = []

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do and nothing to say."""
        return not (self._asked or self._said)

    def take(self, message: ToWorker) -> None:
        """Put a request behind the others, or give one up."""
        if isinstance(message, Ask):
            self._asked[message.key] = message
            self._waiting.append(message.key)
        elif isinstance(message, Drop) and message.key in self._asked:
            self.decoder.drop(message.key)
            with contextlib.suppress(ValueError):
                self._waiting.remove(message.key)
            self._say(message.key, Refused("cancelled", "the request was given up", key=message.key))

    def step(self) -> list[Answer | Refused]:
        """Fill the free places, run one pass, and return what is to be said."""
        try:
            while self._waiting and len(self.decoder.keys) < self._limit and not self.decoder.full:
                self._begin(self._waiting.popleft())
            for key, done in self.decoder.step():
                self._say(key, _answer(self._served, self._asked[key], done))
        except (MemoryError, RuntimeError) as error:
            if not is_memory(error):
                raise
            self._out_of_memory()
        said, self._said = self._said, []
        return said

    def _begin(self, key: str) -> None:
        try:
            self.decoder.add(key, self._asked[key].request)
        except OverBudget as error:
            self._say(key, _over_budget(key, error))
        except GrammarError as error:
            self._say(key, _grammar_failed(key, error))
        except TemplateError as error:
            self._say(key, Refused("error", "the prompt could not be rendered", {"reason": str(error)}, None, key))

    def _out_of_memory(self) -> None:
        """Begin again with half as many at a time; a request that does not fit by itself fails."""
        at_work = self.decoder.keys
        self.decoder.give_back_memory()
        if len(at_work) > 1:
            self._limit = max(1, len(at_work) // 2)
            self._waiting.extendleft(reversed(at_work))
            return
        facts = {"device": self._served.loaded.device}
        for key in at_work:
            self._say(key, Refused("memory", "the machine ran out of memory", facts, None, key))

    def _say(self, key: str, said: Answer | Refused) -> None:
        del self._asked[key]
        self._said.append(said)


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


def _take_stdout() -> BinaryIO:
    """Keep standard output for answers alone; whatever a library prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return answers


def _read_lines(lines: queue.SimpleQueue[bytes]) -> NoReturn:
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)  # the client is gone: nobody wants the generation in progress


def _send(answers: BinaryIO, message: FromWorker) -> None:
    try:
        answers.write(msgspec.json.encode(message) + b"\n")
        answers.flush()
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    main()
