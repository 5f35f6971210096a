"""The worker process: `python -m gsum.engine.llm.worker`, the lines of `wire.py` on standard input and output.

It owns one model, has no network, and ends when its input does, even in the middle of a generation. It writes no
document text anywhere but in its answers.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from typing import BinaryIO, NoReturn

import msgspec

from gsum.engine.llm.decode import Decoder, GrammarError, NotANumber, OverBudget
from gsum.engine.llm.hermetic import refuse_network
from gsum.engine.llm.serve import Served, open_model
from gsum.engine.llm.tokenize import TemplateError
from gsum.engine.llm.verify import settings
from gsum.engine.llm.wire import TO_WORKER, Answer, Ask, FromWorker, Hello, Ready, Refused

_MEMORY_SIGNS = ("out of memory", "can't allocate memory", "not enough memory")


def main() -> None:
    """Greet, then answer until the input ends."""
    answers = _take_stdout()
    refuse_network()
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_lines, args=(lines,), daemon=True).start()
    hello = TO_WORKER.decode(lines.get())
    if not isinstance(hello, Hello):
        raise SystemExit("the first line must be a greeting")
    served = open_model(hello)
    if isinstance(served, Refused):
        _send(answers, served)
        return
    _send(answers, Ready(served.observed))
    decoder = Decoder(served.loaded)
    while True:
        ask = TO_WORKER.decode(lines.get())
        if isinstance(ask, Ask):
            _send(answers, answer(decoder, served, ask))


def answer(decoder: Decoder, served: Served, ask: Ask) -> Answer | Refused:
    """Answer one request: a generation, or why there is none."""
    try:
        done = decoder.generate(ask.request)
    except OverBudget as error:
        return _over_budget(ask.key, error)
    except GrammarError as error:
        return Refused("error", error.message, error.facts, "this is a fault of the grammar's builder", ask.key)
    except TemplateError as error:
        return Refused("error", "The prompt could not be rendered", {"reason": str(error)}, None, ask.key)
    except NotANumber:
        return Refused("error", "The model's logits are not numbers", {"dtype": served.dtype}, None, ask.key)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in _MEMORY_SIGNS):
            return Refused("memory", "The machine ran out of memory", {"device": served.loaded.device}, None, ask.key)
        raise
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


def _over_budget(key: str, error: OverBudget) -> Refused:
    needed = f"at least {error.needed}" if error.at_least else str(error.needed)
    if error.context:
        message, hint = "The input and its answer do not fit the model's context", "give fewer or shorter documents"
    else:
        message = "The input is longer than its budget"
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
