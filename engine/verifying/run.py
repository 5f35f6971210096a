"""Drives a verification: asks executors round by round, keeps every output beside what is stored, compares, reports.

Nothing is overwritten and nothing that is served changes: what differs is an equivocation, as in a full build.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gsum.engine.clock import Clock
from gsum.engine.commit import Committer
from gsum.engine.events import Equivocation, Event
from gsum.engine.executors.protocol import ExecRequest, Executor, Failed, FailureReason, Generated, Outcome
from gsum.engine.report import new_invocation
from gsum.engine.universe import Universe
from gsum.engine.verifying.plan import Round, Stored, choose, divergence, plan_rounds
from gsum.engine.verifying.report import (
    Failure,
    Finding,
    RequestFailed,
    RequestVerified,
    RoundFinished,
    RoundReport,
    VerifyFinished,
    VerifyOptions,
    VerifyReport,
    VerifyStarted,
    VerifyStatus,
)
from gsum.engine.verifying.stored import Found, load_request, promises, stored_requests
from gsum.store.api import GenerationPut, Store
from gsum.store.digests import Key
from gsum.store.errors import ExitCode, GsumError

_POLL_SECONDS = 0.1


class NothingToVerify(GsumError):
    """No answer is stored under the targets asked for."""

    exit_code = ExitCode.STALE


class PromisesNothing(GsumError):
    """All that is stored comes from toolchains whose answers may differ."""

    exit_code = ExitCode.USAGE


class Verification:
    """One verification of a universe's targets against a store."""

    def __init__(
        self,
        *,
        universe: Universe,
        store: Store,
        executor_for: Callable[[str], Executor],
        emit: Callable[[Event], None],
        interrupted: Callable[[], bool],
        clock: Clock,
        options: VerifyOptions,
    ) -> None:
        self._universe, self._store, self._options, self._clock = universe, store, options, clock
        self._executor_for, self._emit, self._interrupted = executor_for, emit, interrupted
        self.invocation = new_invocation(clock)
        self._committer = Committer(store, universe.keys, self.invocation)
        self._rounds: list[RoundReport] = []
        self._findings: list[Finding] = []
        self._failures: list[Failure] = []
        self._executions = 0
        self._new_tokens = 0

    def run(self) -> VerifyReport:
        """Ask and compare.

        Raises:
            NothingToVerify: if none of the targets has a current result.
            PromisesNothing: if all stored answers are of opaque toolchains, and these were not asked for.
        """
        began = self._clock.monotonic()
        found = stored_requests(self._universe, self._store)
        askable = [one for one in found.requests if self._options.opaque or self._promised(one.toolchain)]
        self._require(found, askable)
        chosen = choose(askable, self._options.sample, self._options.seed)
        options = self._options
        self._emit(VerifyStarted(self.invocation, options.patterns, len(chosen), options.rounds, options.seed))
        for toolchain in dict.fromkeys(one.toolchain for one in chosen):
            self._verify(toolchain, {one.request: one for one in chosen if one.toolchain == toolchain})
        status, exit_code = self._verdict()
        report = VerifyReport(
            invocation=self.invocation,
            status=status,
            exit_code=exit_code,
            stored=len(found.requests),
            requests=len(chosen),
            not_built=found.not_built,
            left_out=len(found.requests) - len(askable),
            executions=self._executions,
            same=self._executions - len(self._findings),
            rounds=tuple(self._rounds),
            differing=tuple(self._findings),
            failures=tuple(self._failures),
            new_tokens=self._new_tokens,
            seconds=round(self._clock.monotonic() - began, 3),
        )
        self._emit(VerifyFinished(self.invocation, status.value, exit_code, report.seconds))
        return report

    def _promised(self, toolchain: str) -> bool:
        return promises(self._universe.workspace.toolchains[toolchain])

    def _require(self, found: Found, askable: Sequence[Stored]) -> None:
        if not found.requests and found.not_built:
            raise NothingToVerify(
                "none of the targets has a current result",
                facts={"stale or not built": found.not_built},
                hint=f"gsum build {' '.join(self._options.patterns)}",
            )
        if found.requests and not askable:
            names = dict.fromkeys(one.toolchain for one in found.requests)
            raise PromisesNothing(
                "the toolchain of these targets promises nothing: equal requests may give different answers",
                facts={"toolchain": ", ".join(names), "stored requests": len(found.requests)},
                hint="`--opaque` asks it again all the same, and publishes what differs",
            )

    def _verify(self, toolchain: str, stored: dict[Key, Stored]) -> None:
        executor = self._executor_for(toolchain)
        rounds = plan_rounds(stored, rounds=self._options.rounds, seed=self._options.seed, capacity=executor.capacity)
        for planned in rounds:
            if not self._round(executor, toolchain, planned, stored):
                return

    def _round(self, executor: Executor, toolchain: str, planned: Round, stored: dict[Key, Stored]) -> bool:
        """Ask a round's batches; return whether it makes sense to go on."""
        executions, differing = self._executions, len(self._findings)
        for batch in planned.batches:
            if self._interrupted():
                return False
            started = self._clock.now()
            outcomes = self._ask(executor, [stored[key] for key in batch])
            puts = self._keep([one for one in outcomes if isinstance(one, Generated)], started)
            for one in outcomes:
                if isinstance(one, Generated):
                    self._compare(one, puts[one.key], stored[one.key], planned.number, batch)
                else:
                    self._fail(one, stored[one.key], planned.number)
            if any(isinstance(one, Failed) and one.exit_code is ExitCode.TOOLCHAIN for one in outcomes):
                return False
        if self._interrupted():
            return False
        executions, differing = self._executions - executions, len(self._findings) - differing
        self._rounds.append(RoundReport(toolchain, planned.number, planned.widths, executions, executions - differing))
        self._emit(RoundFinished(toolchain, planned.number, planned.widths, executions, executions - differing))
        return True

    def _ask(self, executor: Executor, batch: Sequence[Stored]) -> list[Outcome]:
        """Hand requests over together and return all outcomes; after an interruption, those that were there."""
        timeout = self._universe.workspace.toolchains[batch[0].toolchain].timeout_seconds
        executor.submit([ExecRequest(one.request, load_request(self._store, one.request), timeout) for one in batch])
        outcomes: list[Outcome] = []
        while len(outcomes) < len(batch) and not self._interrupted():
            outcomes += executor.wait(_POLL_SECONDS)
        if len(outcomes) < len(batch):
            executor.cancel()
            outcomes += executor.wait(0)
        return [one for one in outcomes if isinstance(one, Generated) or one.reason is not FailureReason.CANCELLED]

    def _keep(self, made: Sequence[Generated], started: str) -> dict[Key, GenerationPut]:
        """Keep outputs beside what is stored, durably: each cost a model call."""
        with self._store.transaction(durable=bool(made)):
            kept = [(self._store.get_record(one.key), one, started) for one in made]
            puts = self._committer.generations(kept)
        return {one.key: put for one, put in zip(made, puts, strict=True)}

    def _compare(
        self, made: Generated, put: GenerationPut, stored: Stored, number: int, batch: tuple[Key, ...]
    ) -> None:
        self._executions += 1
        self._new_tokens += made.forced + made.sampled
        differs = None
        if put.digest != stored.generation:
            differs = divergence(self._committer.load_generation(stored.generation), made.generation)
        if differs is not None:
            promised = self._promised(stored.toolchain)
            self._findings.append(Finding(stored, number, batch, put.digest, differs, promised))
            self._emit(Equivocation(stored.labels[0], stored.request, stored.generation, put.digest))
        self._emit(
            RequestVerified(
                label=stored.labels[0],
                request=stored.request,
                round=number,
                width=len(batch),
                same=differs is None,
                token=None if differs is None else differs.token,
                seconds=made.seconds,
                new_tokens=made.forced + made.sampled,
            )
        )

    def _fail(self, failed: Failed, stored: Stored, number: int) -> None:
        failure = Failure(
            stored=stored,
            round=number,
            reason=failed.reason.value,
            message=failed.message,
            exit_code=int(failed.exit_code),
            facts=failed.facts,
            hint=failed.hint,
        )
        self._failures.append(failure)
        self._emit(RequestFailed(stored.labels[0], stored.request, number, failure.reason, failure.message))

    def _verdict(self) -> tuple[VerifyStatus, int]:
        if self._interrupted():
            return VerifyStatus.INTERRUPTED, int(ExitCode.INTERRUPTED)
        if any(finding.promised for finding in self._findings):
            return VerifyStatus.DIFFERS, int(ExitCode.NOT_REPRODUCIBLE)
        if self._failures:
            codes = {failure.exit_code for failure in self._failures}
            return VerifyStatus.FAILED, codes.pop() if len(codes) == 1 else int(ExitCode.ACTION_FAILED)
        return VerifyStatus.DIFFERS if self._findings else VerifyStatus.OK, int(ExitCode.OK)
