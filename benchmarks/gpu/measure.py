"""Runs requests under a scheme, alone or together, and holds every step's logits to each other, bit by bit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec
import torch
from blake3 import blake3

from gsum.engine.llm.decode import Decoded, Decoder
from gsum.engine.llm.load import LoadedModel
from gsum.engine.llm.schemes import Scheme
from gsum.engine.llm.writing import Writing
from gsum.rules.requests import Request


class Answer(msgspec.Struct, frozen=True):
    """The tokens of one request, and the digest of the logits that each was chosen from."""

    token_ids: tuple[int, ...]
    logits: tuple[str, ...]


class Run(msgspec.Struct, frozen=True):
    """Requests answered under one scheme. `memory`: the device's highest, in bytes; 0 where it does not tell."""

    name: str
    answers: dict[int, Answer]
    prompt_tokens: int
    seconds: float
    memory: int

    def row(self) -> dict[str, Any]:
        """Return what is published."""
        new = sum(len(answer.token_ids) for answer in self.answers.values())
        return {
            "way": self.name,
            "requests": len(self.answers),
            "prompt tokens": self.prompt_tokens,
            "new tokens": new,
            "seconds": round(self.seconds, 2),
            "new tokens a s": round(new / self.seconds, 1),
            "peak memory, MB": round(self.memory / 1e6),
        }


class Recording(Decoder):
    """A decoder that keeps a digest of the logits it chose from."""

    def __init__(self, loaded: LoadedModel, scheme: Scheme) -> None:
        super().__init__(loaded, scheme)
        self.logits: dict[str, list[str]] = {}

    def _extend(self, writing: Writing, logits: torch.Tensor) -> None:
        self.logits.setdefault(writing.key, []).append(blake3(logits.numpy().tobytes()).hexdigest())
        super()._extend(writing, logits)


def answer(
    name: str, loaded: LoadedModel, scheme: Scheme, asked: Sequence[tuple[int, Request]], *, together: bool
) -> Run:
    """Answer numbered requests in their order: one after the other, or as many at a time as the scheme admits."""
    decoder = Recording(loaded, scheme)
    on_cuda = loaded.device == "cuda"
    if on_cuda:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    waiting, done = list(asked), {}
    began = time.monotonic()
    while waiting or decoder.keys:
        while waiting and not decoder.full and (together or not decoder.keys):
            number, request = waiting.pop(0)
            decoder.add(str(number), request)
        for key, outcome in decoder.step():
            if not isinstance(outcome, Decoded):
                raise SystemExit(f"{name}: request {key} failed: {outcome}")
            done[int(key)] = outcome
    seconds = time.monotonic() - began  # every step waits for its logits
    answers = {number: Answer(one.token_ids, tuple(decoder.logits[str(number)])) for number, one in done.items()}
    memory = torch.cuda.max_memory_allocated() if on_cuda else 0
    return Run(name, answers, sum(one.prompt_tokens for one in done.values()), seconds, memory)


def compared(one: Run, other: Run) -> dict[str, Any]:
    """Say how many of the requests that both answered have the same tokens, and the same logits at every step."""
    common = sorted(one.answers.keys() & other.answers.keys())
    tokens = [number for number in common if one.answers[number].token_ids == other.answers[number].token_ids]
    bits = [number for number in common if one.answers[number] == other.answers[number]]
    parted = [_first(one.answers[number].logits, other.answers[number].logits) for number in common]
    return {
        "of": f"{one.name} and {other.name}",
        "requests": len(common),
        "same tokens": len(tokens),
        "same logits at every step": len(bits),
        "earliest step that differs": min((step for step in parted if step is not None), default=None),
    }


def _first(one: Sequence[str], other: Sequence[str]) -> int | None:
    pairs = enumerate(zip(one, other, strict=False))
    return next(
        (step for step, (a, b) in pairs if a != b), None if len(one) == len(other) else min(len(one), len(other))
    )
