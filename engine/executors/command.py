"""`executor = "command"`: a user's program answers JSON lines, protocol 1. Knows no model.

Request line: {"protocol":1,"key":str,"messages":[{"role":str,"content":str}…],"grammar":str|null,
"max_new_tokens":int,"input_tokens":int}. Answer line: {"key":str,"text":str,"stop":"eos"|"grammar"|"length",
"token_ids":[int…]?,"prompt_tokens":int?} or {"key":str,"error":str,"reason":"error"|"over_budget"|"memory"?}.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from gsum.engine.executors.channel import Channel
from gsum.engine.executors.client import LineExecutor
from gsum.engine.executors.dialect import ProtocolError, Refusal
from gsum.engine.executors.pace import Pace
from gsum.engine.executors.process import ChildProcess
from gsum.engine.executors.protocol import ExecRequest, Failed, FailureReason, Generated, Outcome
from gsum.rules.config import CommandToolchain
from gsum.store.digests import Key
from gsum.store.records import Generation, StopReason

PROTOCOL = 1
_START_SECONDS = 60
_ERROR_WIDTH = 400
Token = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
_REASONS = {
    "error": FailureReason.ERROR,
    "over_budget": FailureReason.OVER_BUDGET,
    "memory": FailureReason.MEMORY,
}


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer line as sent; `text` with `stop`, or `error`.

    `token_ids` are held to `max_new_tokens`. Without them they are the text's UTF-8 bytes, which are no tokens: that
    bound is then the program's to keep.
    """

    key: str
    text: str | None = None
    stop: StopReason | None = None
    token_ids: tuple[Token, ...] | None = None
    prompt_tokens: Count = 0
    error: str | None = None
    reason: str = "error"


_DECODER = msgspec.json.Decoder(Answer)
_PLACE = re.compile(rf" - at `\$\.({'|'.join(Answer.__struct_fields__)})(?:\[\.\.\.\])?`\Z")


class CommandDialect:
    """The lines of protocol 1, spoken with one declared program."""

    start_seconds = _START_SECONDS

    def __init__(self, toolchain: CommandToolchain, workspace_root: Path) -> None:
        self._toolchain = toolchain
        self._root = workspace_root
        self._versions = {"identity": toolchain.identity}
        self._settings: dict[str, str | int | bool | None] = {"method": toolchain.decoding.method}

    @property
    def name(self) -> str:
        """The program's name in messages."""
        return f"`{self._toolchain.command[0]}`"

    def open(self) -> Channel:
        """The declared arguments, the inherited environment, the workspace as working directory."""
        return ChildProcess(self._toolchain.command, env=None, cwd=self._root)

    def missing(self, error: OSError) -> Refusal:
        """The program is not there, or may not be run."""
        return Refusal(
            FailureReason.MODEL_MISSING,
            f"{self.name} could not be started",
            {"reason": error.strerror or type(error).__name__, "directory": str(self._root)},
            "check `command` of the toolchain in BUILD.toml; it is run without a shell, from the workspace root",
        )

    def greeting(self) -> None:
        """Protocol 1 begins with the first request."""

    def greeted(self, line: bytes) -> Refusal | None:  # noqa: ARG002 - the protocol's signature
        """Never called: there is no greeting."""
        raise ProtocolError("a line came although nothing was asked")

    def encode(self, request: ExecRequest) -> bytes:
        """Return the request line."""
        asked = request.request
        return msgspec.json.encode(
            {
                "protocol": PROTOCOL,
                "key": request.key,
                "messages": asked.messages,
                "grammar": asked.grammar,
                "max_new_tokens": asked.max_new_tokens,
                "input_tokens": asked.input_tokens,
            }
        )

    def drop(self, request: ExecRequest) -> None:
        """Protocol 1 can't give a request up: the program is ended."""

    def decode(self, asked: Mapping[Key, ExecRequest], line: bytes, seconds: float) -> Outcome:
        """Return the generation or the failure that an answer line holds."""
        try:
            answer = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ProtocolError(_without_values(error)) from None
        request = asked.get(Key(answer.key))
        if request is None:
            raise ProtocolError("the key is not the one that was asked")
        if answer.error is not None:
            return _error(request, self.name, answer)
        if answer.text is None or answer.stop is None:
            raise ProtocolError("neither `error` nor `text` with `stop` is given")
        tokens = tuple(answer.text.encode()) if answer.token_ids is None else answer.token_ids
        if len(tokens) > request.request.max_new_tokens and answer.token_ids is not None:
            raise ProtocolError(f"{len(tokens)} tokens are more than the {request.request.max_new_tokens} asked for")
        return Generated(
            key=request.key,
            generation=Generation(tokens, answer.text, answer.stop),
            seconds=seconds,
            device="command",
            dtype="undeclared",
            versions=self._versions,
            settings=self._settings,
            prompt_tokens=answer.prompt_tokens,
            prefilled=answer.prompt_tokens,
            reused=0,
            forced=0,
            sampled=len(tokens),
        )


def command_executor(toolchain: CommandToolchain, workspace_root: Path) -> LineExecutor:
    """Return the executor of a declared program; nothing is started before the first request."""
    dialect = CommandDialect(toolchain, workspace_root)
    return LineExecutor(dialect, reproducible=toolchain.reproducible, network=toolchain.network, pace=Pace())


def _error(request: ExecRequest, name: str, answer: Answer) -> Failed:
    text = " ".join((answer.error or "").split())[:_ERROR_WIDTH]
    reason = _REASONS.get(answer.reason)
    if reason is None:
        raise ProtocolError("`reason` is none of `error`, `over_budget`, `memory`")
    return Failed(request.key, reason, f"{name} answered with an error", {"error": text})


def _without_values(error: Exception) -> str:
    """Say where a line is malformed, by the name of a field of protocol 1 and nothing else of msgspec's message: that
    may quote what the line says, which may be a document.
    """
    if not isinstance(error, msgspec.ValidationError):
        return "the line is not JSON"
    place = _PLACE.search(str(error))
    return "the line is not an answer of protocol 1" + (f", at `{place[1]}`" if place else "")
