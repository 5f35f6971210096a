"""The lines between the local executor and its worker, as tagged structs. Pure; imports no model library.

Greeting: `Hello`, answered by `Ready` or `Refused`. Then any number of `Ask`, several in flight, each answered once
and in any order by `Answer` or `Refused`. A `Drop` gives a request up: if it was not yet answered, it is refused.
"""

from __future__ import annotations

import msgspec

from gsum.rules.config import LocalToolchain, NumericsSection
from gsum.rules.requests import Request
from gsum.store.records import StopReason

WIRE_VERSION = 2


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


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The worker has loaded and checked the model; `observed` is what it found."""

    observed: dict[str, str]


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The worker, or one request, can't be served. `reason` is a `FailureReason` value; `key` null for the worker."""

    reason: str
    message: str
    facts: dict[str, str] = {}
    hint: str | None = None
    key: str | None = None


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """One request to generate."""

    key: str
    request: Request


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


ToWorker = Hello | Ask | Drop
FromWorker = Ready | Refused | Answer
TO_WORKER: msgspec.json.Decoder[ToWorker] = msgspec.json.Decoder(ToWorker)
FROM_WORKER: msgspec.json.Decoder[FromWorker] = msgspec.json.Decoder(FromWorker)
