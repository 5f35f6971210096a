"""The `Executor` of property tests: answers in process what `fake_model` would, and says what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from support.fake_model import generate

from gsum.engine.executors.protocol import ExecRequest, Failed, FailureReason, Generated, Outcome
from gsum.rules.requests import Request
from gsum.store.records import Generation, StopReason


class FakeExecutor:
    """Answers every request at the next `wait`. `calls` lists the requests executed, in order.

    `fails` decides per request whether it fails and why; `answer` may replace the text; `network` and
    `reproducible` are as declared.
    """

    capacity = 4
    network = False

    def __init__(
        self,
        *,
        seed: str = "",
        max_claims: int = 4,
        answer: Callable[[Request], str] | None = None,
        fails: Callable[[Request], FailureReason | None] = lambda _: None,
        reproducible: bool = True,
    ) -> None:
        self.calls: list[ExecRequest] = []
        self.closed = False
        self.reproducible = reproducible
        self._seed = seed
        self._max_claims = max_claims
        self._answer = answer
        self._fails = fails
        self._pending: list[ExecRequest] = []
        self._cancelled: list[Outcome] = []

    def submit(self, requests: Sequence[ExecRequest]) -> None:
        assert not self.closed, "submitted to a closed executor"
        pending = {r.key for r in self._pending}
        assert not pending & {r.key for r in requests}, "a pending key was submitted again"
        self._pending.extend(requests)

    def wait(self, timeout: float | None) -> list[Outcome]:
        taken, self._pending = self._pending, []
        done, self._cancelled = self._cancelled, []
        return [*done, *(self._run(request) for request in taken)]

    def cancel(self) -> None:
        self._cancelled += [Failed(r.key, FailureReason.CANCELLED, "Cancelled", {}, None) for r in self._pending]
        self._pending.clear()

    def close(self) -> None:
        self._pending.clear()
        self.closed = True

    def _run(self, request: ExecRequest) -> Outcome:
        reason = self._fails(request.request)
        if reason is not None:
            return Failed(request.key, reason, "The fake executor was told to fail", {}, None)
        self.calls.append(request)
        asked = request.request
        last = asked.messages[-1].content
        text = self._answer(asked) if self._answer else generate(last, self._max_claims, self._seed)
        tokens = tuple(text.encode())
        prompt = sum(len(m.content.encode()) for m in asked.messages)
        stop = StopReason.EOS if asked.grammar is None else StopReason.GRAMMAR
        return Generated(
            key=request.key,
            generation=Generation(tokens, text, stop),
            seconds=0.0,
            device="cpu",
            dtype="none",
            versions={"fake_model": "1"},
            settings={"method": "greedy"},
            prompt_tokens=prompt,
            prefilled=prompt,
            reused=0,
            forced=0,
            sampled=len(tokens),
            drafted=sum(old == new for old, new in zip(request.draft, tokens, strict=False)),
        )
