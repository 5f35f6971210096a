"""The worker process: it owns one model, has no network, and writes no document text anywhere but in its answers.

`python -m gsum.engine.llm.worker` answers one client on standard input and output, and ends with it. With `--socket
FOLDER NAME` its standard input is a listening socket, and it stays for the next client.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
from pathlib import Path
from types import TracebackType

from gsum.engine.executors.runtime import Runtime
from gsum.engine.llm.bench import Bench
from gsum.engine.llm.fit import code_digest, fingerprint, substance
from gsum.engine.llm.hermetic import limit_memory, refuse_network
from gsum.engine.llm.imports import uncollected
from gsum.engine.llm.kept import started
from gsum.engine.llm.post import Door, Letter, Post, Tally
from gsum.engine.llm.serve import Served, open_model
from gsum.engine.llm.wire import OUTDATED, SOCKET_OPTION, Ask, Drop, Hello, Ready, Refused, State, Status
from gsum.store.version import VERSION

_UNUSED = ("scipy", "sklearn", "pandas", "PIL", "torchvision", "torchaudio")
"""Packages that transformers imports where it finds them, for what no worker does: 0.5 s of a start."""
_CHANGED = "a file of the model has changed since the worker read it"


def main() -> None:
    """Greet, then answer until nobody is left."""
    sys.excepthook = report_bug
    for name in _UNUSED:
        sys.modules[name] = None  # type: ignore[assignment]  # it is not to be found
    tally, code = Tally(), code_digest()
    post = _post(tally, sys.argv[1:])
    isolation = refuse_network()
    post.start()
    letter = post.inbox.get()
    while not isinstance(letter.message, Hello):  # a first client that went at once
        letter = post.inbox.get()
    first = letter.message
    tally.toolchain, tally.device = first.name, first.toolchain.device.value
    with uncollected():
        served = open_model(first, started(code, os.environ))
    if isinstance(served, Served):
        served.observed["network"] = isolation.value
        served = limit_memory_of(served, first)
    reception = Reception(first, served, code)
    if isinstance(served, Refused):
        post.retire()
        post.send(letter.client, served)
        while True:
            _greet(post, reception, post.inbox.get())
    post.send(letter.client, reception.answer(first))
    tally.ready = True
    _serve(post, reception, Bench(served), tally)


class Reception:
    """Whom a worker serves: clients that want just what it was started for, while its files are what they were."""

    def __init__(self, first: Hello, served: Served | Refused, code: str) -> None:
        """`code`: the digest of our code when it was loaded."""
        self._first, self._served, self._code = first, served, code

    def answer(self, hello: Hello) -> Ready | Refused:
        """Return the answer to a greeting."""
        if isinstance(self._served, Refused):
            return self._served
        other = hello.code not in ("", self._code) or substance(hello) != substance(self._first)
        if other:
            facts = {"gsum of the worker": VERSION}
            return Refused("mismatch", "the worker is of another version than its client", facts, "gsum worker stop")
        if fingerprint(list(self._served.files)) != tuple(self._served.files.values()):
            facts = {"model": hello.model}
            return Refused(OUTDATED, _CHANGED, facts, "gsum worker stop; the next build reads and checks them anew")
        return Ready(self._served.observed, os.getpid())


def _serve(post: Post, reception: Reception, bench: Bench, tally: Tally) -> None:
    while True:
        while bench.idle or not post.inbox.empty():
            letter = post.inbox.get()
            if letter.message is None:
                bench.leave(letter.client)
            elif isinstance(letter.message, Hello):
                _greet(post, reception, letter)
            else:
                bench.take(letter.client, letter.message)
            tally.at_hand = bench.at_hand
        for client, said in bench.step():
            tally.served += 1
            tally.at_hand = bench.at_hand
            post.send(client, said)


def _greet(post: Post, reception: Reception, letter: Letter) -> None:
    """Answer a greeting; before a refusal, close the door: whoever comes again shall have a worker that reads anew."""
    if isinstance(letter.message, Ask | Drop) or letter.message is None:
        return
    answer = reception.answer(letter.message)
    if isinstance(answer, Refused):
        post.retire()
    post.send(letter.client, answer)


def limit_memory_of(served: Served, hello: Hello) -> Served | Refused:
    """Bound what the process may take from now on, as its toolchain says."""
    allowed = hello.toolchain.memory_mb
    if served.loaded.device != "cpu" and allowed is None:
        return served
    if needed := limit_memory(allowed):
        facts = {"allowed": f"{allowed} MB", "taken by the model": f"{needed} MB"}
        hint = f"raise `memory_mb` of `[toolchain.{hello.name}]` in BUILD.toml, or leave it out"
        return Refused("memory", "the model does not fit the memory that its worker may take", facts, hint)
    return served


def _post(tally: Tally, arguments: list[str]) -> Post:
    """Return the connections that the command line asks for."""

    def describe(clients: int, age: float, alone: float, ending: bool) -> Status:
        working = State.WORKING if tally.at_hand else State.IDLE
        return Status(
            pid=os.getpid(),
            state=State.ENDING if ending else working if tally.ready else State.STARTING,
            toolchain=tally.toolchain,
            device=tally.device,
            gsum=VERSION,
            age=age,
            idle=alone,
            idle_seconds=tally.idle_seconds,
            memory=_resident(),
            clients=clients,
            at_hand=tally.at_hand,
            served=tally.served,
        )

    if arguments[:1] == [SOCKET_OPTION]:
        folder, name = arguments[1:]
        os.chdir("/")  # hold no folder of a client
        runtime = Runtime(Path(folder))
        listener = socket.socket(fileno=os.dup(0))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        return Post(tally, describe, door=Door(listener, runtime, name, runtime.inode(name)))
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints goes to standard error
    sys.stdout = sys.stderr
    return Post(tally, describe, pipes=(0, answers))


def _resident() -> int | None:
    """Return what the process has in memory now, or its highest where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return None


def report_bug(kind: type[BaseException], error: BaseException, place: TracebackType | None) -> None:  # noqa: ARG001
    """Say what ended the worker, and where: never the error's text, which may quote a document."""
    places = []
    while place is not None:
        code = place.tb_frame.f_code
        places.append(f"{Path(code.co_filename).name}:{place.tb_lineno} {code.co_name}")
        place = place.tb_next
    print(f"{kind.__name__} at {' > '.join(places[-6:])}", file=sys.stderr)  # noqa: T201 - its log


if __name__ == "__main__":
    main()
