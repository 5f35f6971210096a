"""`executor = "local"`: the worker process of `gsum.engine.llm` behind a `LineExecutor`. Imports no model library.

The worker gets a minimal environment with the hubs switched off; the model's files are located here, before it
is started, and hashed there, before they are used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from gsum.engine.executors.channel import Channel
from gsum.engine.executors.dialect import ProtocolError, Refusal
from gsum.engine.executors.process import ChildProcess
from gsum.engine.executors.protocol import ExecRequest, Failed, FailureReason, Generated, Outcome
from gsum.engine.llm.isa import VARIABLES
from gsum.engine.llm.sources import ModelMissing, ToolchainError, locate_model
from gsum.engine.llm.wire import (
    FROM_WORKER,
    OUTDATED,
    Answer,
    Ask,
    Drop,
    FromWorker,
    Hello,
    Ready,
    Refused,
    Status,
)
from gsum.rules.config import LocalToolchain, NumericsSection
from gsum.store.digests import Key
from gsum.store.records import Generation

_START_SECONDS = 900  # a first start may convert the model
_PASSED_ON = ("HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "VIRTUAL_ENV")
_FIXED = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TQDM_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "USE_HUB_KERNELS": "0",
    "PYTHONHASHSEED": "0",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
}


def numerics_environment(numerics: NumericsSection) -> dict[str, str]:
    """Return the variables that make torch's libraries use the declared threads and instruction set.

    A wider machine is held to the declared set; a narrower one is found out by the worker.
    """
    threads = {} if numerics.threads is None else {"OMP_NUM_THREADS": str(numerics.threads)}
    return {**threads, **VARIABLES.get(numerics.instruction_set or "", {})}


class LocalDialect:
    """The lines of `engine.llm.wire`, spoken with our own worker."""

    start_seconds = _START_SECONDS
    name = "the model's worker"

    def __init__(
        self,
        name: str,
        toolchain: LocalToolchain,
        numerics: NumericsSection,
        *,
        cache_dir: Path,
        workspace_root: Path,
        environ: Mapping[str, str],
        keep_prefixes: bool = True,
    ) -> None:
        """`keep_prefixes`: whether the worker may read what earlier ones computed of shared prefixes, and keep it."""
        self._toolchain_name = name
        self._toolchain = toolchain
        self._numerics = numerics
        self._cache_dir = cache_dir
        self._root = workspace_root
        self._environ = environ
        self._keep_prefixes = keep_prefixes

    def launch(self) -> tuple[Sequence[str], Mapping[str, str], Path]:
        """Run this interpreter on the worker module in a minimal environment."""
        argv = [sys.executable, "-P", "-m", "gsum.engine.llm.worker"]
        passed = {name: self._environ[name] for name in _PASSED_ON if name in self._environ}
        return argv, {"PATH": os.defpath, **passed, **_FIXED, **numerics_environment(self._numerics)}, self._root

    def open(self) -> Channel:
        """Start a worker that nobody else knows of, and that ends with its input."""
        argv, env, cwd = self.launch()
        return ChildProcess(argv, env=env, cwd=cwd)

    def is_there(self) -> bool:
        """Whether the worker runs already: never, where nobody else knows of it."""
        return False

    def missing(self, error: OSError) -> Refusal:
        """The interpreter could not be started."""
        facts = {"reason": error.strerror or str(error) or type(error).__name__, "interpreter": sys.executable}
        return Refusal(FailureReason.MODEL_MISSING, "the model's worker could not be started", facts)

    def greeting(self) -> bytes | Refusal:
        """Locate the model's files and say what the worker is to be."""
        hello = self.hello()
        return hello if isinstance(hello, Refusal) else msgspec.json.encode(hello)

    def hello(self) -> Hello | Refusal:
        """Return the greeting, or why there is none."""
        try:
            model = locate_model(
                self._toolchain_name,
                self._toolchain,
                cache_dir=self._cache_dir,
                workspace_root=self._root,
                environ=self._environ,
            )
        except ToolchainError as error:
            facts = {name: str(value) for name, value in error.facts.items()}
            reason = FailureReason.MODEL_MISSING if isinstance(error, ModelMissing) else FailureReason.MISMATCH
            return Refusal(reason, error.message, facts, error.hint)
        return Hello(
            self._toolchain_name,
            self._toolchain,
            self._numerics,
            str(model.folder),
            str(self._cache_dir),
            keep_prefixes=self._keep_prefixes,
        )

    def greeted(self, line: bytes) -> Refusal | None:
        """Ready, or a typed refusal."""
        answer = read_line(line)
        if isinstance(answer, Ready):
            return None
        if isinstance(answer, Refused):
            outdated = answer.reason == OUTDATED
            reason = FailureReason.MISMATCH if outdated else _reason(answer)
            return Refusal(reason, answer.message, answer.facts, answer.hint, again=outdated)
        raise ProtocolError("an answer came before the greeting was answered")

    def encode(self, request: ExecRequest) -> bytes:
        """Return the line that asks for a generation."""
        return msgspec.json.encode(Ask(request.key, request.request, request.draft, request.then))

    def drop(self, request: ExecRequest) -> bytes:
        """Return the line that gives a request up between two passes."""
        return msgspec.json.encode(Drop(request.key))

    def decode(self, asked: Mapping[Key, ExecRequest], line: bytes, seconds: float) -> Outcome:  # noqa: ARG002
        """Return the generation or the failure; its seconds are the worker's own, without the pipe."""
        answer = read_line(line)
        request = None if isinstance(answer, Ready | Status) or answer.key is None else asked.get(Key(answer.key))
        if request is None or isinstance(answer, Ready | Status):
            raise ProtocolError("the key is not one that was asked")
        if isinstance(answer, Refused):
            return Failed(request.key, _reason(answer), answer.message, answer.facts, answer.hint)
        return _generated(request, answer)


def read_line(line: bytes) -> FromWorker:
    """Read a line of a worker. Raises ProtocolError."""
    try:
        return FROM_WORKER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ProtocolError("the worker's line is not one of its messages") from None


def _reason(refused: Refused) -> FailureReason:
    try:
        return FailureReason(refused.reason)
    except ValueError:
        raise ProtocolError("the worker gave an unknown reason") from None


def _generated(request: ExecRequest, answer: Answer) -> Generated:
    return Generated(
        key=request.key,
        generation=Generation(answer.token_ids, answer.text, answer.stop),
        seconds=answer.seconds,
        device=answer.device,
        dtype=answer.dtype,
        versions=answer.versions,
        settings=answer.settings,
        prompt_tokens=answer.prompt_tokens,
        prefilled=answer.prefilled,
        reused=answer.reused,
        forced=answer.forced,
        sampled=answer.sampled,
        drafted=answer.drafted,
    )
