"""`executor = "local"` with a worker that stays for the next build: `LocalDialect` over a socket. No model library.

Whoever asks first starts it; others find it by a name that holds all that would make it another worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from gsum.engine.executors.channel import Channel
from gsum.engine.executors.dialect import Refusal
from gsum.engine.executors.local import LocalDialect, read_line
from gsum.engine.executors.protocol import FailureReason, WorkerNotice
from gsum.engine.executors.runtime import Runtime, RuntimeRefused
from gsum.engine.executors.slots import Slot
from gsum.engine.executors.warm import WarmChannel, find_or_start
from gsum.engine.llm.fit import TOLD, code_digest, worker_name
from gsum.engine.llm.wire import SOCKET_OPTION, Hello, Ready
from gsum.rules.config import LocalToolchain, NumericsSection

_ELSEWHERE = "end what holds the folder, or name another one for the sockets: GSUM_RUNTIME_DIR=DIR gsum …"


class Warm(msgspec.Struct, frozen=True):
    """Where workers that stay are found, how long they stay, and who is told of them."""

    folder: Path
    idle_seconds: int
    tell: Callable[[WorkerNotice], None] = lambda _: None


class WarmDialect(LocalDialect):
    """The lines of a worker that stays."""

    def __init__(
        self,
        name: str,
        toolchain: LocalToolchain,
        numerics: NumericsSection,
        *,
        cache_dir: Path,
        workspace_root: Path,
        environ: Mapping[str, str],
        warm: Warm,
        slot: Slot,
    ) -> None:
        super().__init__(name, toolchain, numerics, cache_dir=cache_dir, workspace_root=workspace_root, environ=environ)
        self._told = {one: environ[one] for one in TOLD if one in environ}
        self._toolchain_called = name
        self._warm, self._slot = warm, slot
        self._runtime: Runtime | None = None
        self._hello: Hello | None = None
        self._channel: WarmChannel | None = None
        self._opened = 0.0

    def greeting(self) -> bytes | Refusal:
        """Look whether the sockets' folder can be used, and say what the worker is to be."""
        try:
            self._runtime = self._runtime or Runtime(self._warm.folder)
        except RuntimeRefused as error:
            facts = {name: str(value) for name, value in error.facts.items()}
            return Refusal(FailureReason.MISMATCH, error.message, facts, error.hint)
        hello = self.hello()
        if isinstance(hello, Refusal):
            return hello
        self._hello = hello = msgspec.structs.replace(hello, code=code_digest(), idle_seconds=self._warm.idle_seconds)
        return msgspec.json.encode(hello)

    def open(self) -> Channel:
        """Connect to the worker that was greeted, started first unless it is there."""
        if self._runtime is None or self._hello is None:
            raise ValueError("a worker is opened after its greeting was made")
        argv, env, _ = self.launch()
        name = self._name_for(self._hello)
        self._opened = time.monotonic()
        command = [*argv, SOCKET_OPTION, str(self._warm.folder), name]
        self._channel = find_or_start(self._runtime, name, command, env)
        self._tell(self._channel, None)
        return self._channel

    def missing(self, error: OSError) -> Refusal:
        """The interpreter could not be started, or the folder of the sockets is held by another process or user."""
        if error.errno is not None:
            return super().missing(error)
        facts = {"reason": str(error) or type(error).__name__, "folder": str(self._warm.folder)}
        return Refusal(FailureReason.ERROR, "the model's worker could not be reached", facts, _ELSEWHERE)

    def greeted(self, line: bytes) -> Refusal | None:
        """Ready, or a typed refusal; keep the process id of a worker that was found."""
        refusal = super().greeted(line)
        answer = read_line(line)
        if isinstance(answer, Ready) and self._channel is not None:
            self._channel.pid = answer.pid
            self._tell(self._channel, time.monotonic() - self._opened)
        return refusal

    def is_there(self) -> bool:
        """Whether the worker runs already."""
        if isinstance(self.greeting(), Refusal) or self._runtime is None or self._hello is None:
            return False
        try:
            with self._runtime.lock():
                sock = self._runtime.connect(self._name_for(self._hello))
        except OSError:
            return False
        if sock is not None:
            sock.close()
        return sock is not None

    def _tell(self, channel: WarmChannel, seconds: float | None) -> None:
        self._warm.tell(WorkerNotice(self._toolchain_called, self._slot.number, channel.found, seconds))

    def _name_for(self, hello: Hello) -> str:
        return worker_name(hello, self._told, self._slot.number)
