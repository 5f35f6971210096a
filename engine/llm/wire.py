"""The lines between clients and a worker, as tagged structs. Pure; imports no model library.

Greeting: `Hello`, answered by `Ready` or `Refused`. Then any number of `Ask`, several in flight, each answered once
and in any order by `Answer` or `Refused`. A `Drop` gives a request up: if it was not yet answered, it is refused.
`Probe` and `Stop` need no greeting and are answered at once by `Status`.
"""

from __future__ import annotations

import enum

import msgspec

from gsum.rules.config import LocalToolchain, NumericsSection
from gsum.rules.requests import Message, Request
from gsum.store.records import StopReason

WIRE_VERSION = 5
OUTDATED = "outdated"
"""The reason of a worker that takes no new client since its files may have changed: a fresh one reads them anew."""
SOCKET_OPTION = "--socket"
"""How a worker is told that its standard input is a listening socket: its folder and name follow."""


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """What the worker is to be: the declared toolchain, its numerics, and where the model's files lie."""

    name: str
    toolchain: LocalToolchain
    numerics: NumericsSection
    model: str
    """The folder of the declared files."""
    cache_dir: str
    """Where a converted model is kept."""
    observe: bool = False
    """Load and report, without comparing: for `gsum toolchain pin`."""
    version: int = WIRE_VERSION
    code: str = ""
    """The digest of the client's code (`fit.code_digest`); empty: that of this very installation."""
    idle_seconds: int = 0
    """How long a worker that is found by its socket stays without a client."""
    keep_prefixes: bool = True
    """Whether what earlier workers kept of shared prefixes may be read; if not, nothing is kept either."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The worker has loaded and checked the model; `observed` is what it found."""

    observed: dict[str, str]
    pid: int = 0


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The worker, or one request, can't be served. `reason`: a `FailureReason` value, or `OUTDATED`.

    `key` is null for the worker.
    """

    reason: str
    message: str
    facts: dict[str, str] = {}
    hint: str | None = None
    key: str | None = None


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """One request to generate; `draft` and `then` are what they are in an `ExecRequest`."""

    key: str
    request: Request
    draft: tuple[int, ...] = ()
    then: tuple[Message, ...] = ()


class Drop(msgspec.Struct, frozen=True, tag="drop"):
    """Nobody wants the answer to a request any more."""

    key: str


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    """One generation, with what the worker observed while making it."""

    key: str
    token_ids: tuple[int, ...]
    text: str
    stop: StopReason
    seconds: float
    device: str
    dtype: str
    versions: dict[str, str]
    settings: dict[str, str | int | bool | None]
    prompt_tokens: int
    prefilled: int
    reused: int
    forced: int
    sampled: int
    drafted: int = 0


class Probe(msgspec.Struct, frozen=True, tag="probe"):
    """What are you, and how are you?"""


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """Take no new client, and end when those that you have are done; `now`: end at once."""

    now: bool = False


class State(enum.Enum):
    """What a worker is doing: it loads its model, waits or works, or ends when its clients are done."""

    STARTING = "starting"
    IDLE = "idle"
    WORKING = "working"
    ENDING = "ending"


class Status(msgspec.Struct, frozen=True, tag="status"):
    """How a worker is. Times are in seconds; `memory` is what it has resident, in bytes, null where not told."""

    pid: int
    state: State
    toolchain: str
    device: str
    gsum: str
    age: float
    idle: float
    """How long it has had no client."""
    idle_seconds: int
    """How long it may have none."""
    memory: int | None
    clients: int
    at_hand: int
    """Requests without an answer."""
    served: int
    """Requests answered."""
    wire: int = WIRE_VERSION


ToWorker = Hello | Ask | Drop | Probe | Stop
FromWorker = Ready | Refused | Answer | Status
TO_WORKER: msgspec.json.Decoder[ToWorker] = msgspec.json.Decoder(ToWorker)
FROM_WORKER: msgspec.json.Decoder[FromWorker] = msgspec.json.Decoder(FromWorker)
