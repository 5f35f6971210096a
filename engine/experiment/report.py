"""The report of finished runs as one document: counters, groups, comparisons, differences, the reference beside. Pure.

Counts are added up first and divided after. Nothing here is rounded but ratios and seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from gsum.engine.experiment import reference
from gsum.engine.experiment.loading import Run
from gsum.engine.experiment.records import Counters, RunDeclaration, Side, SideTimes, StageRecord, StageTimes
from gsum.engine.experiment.setup import Scenario
from gsum.rules.audit import Audit, Total, total
from gsum.store.records import How
from gsum.store.version import VERSION

REPORT_SCHEMA = 1
_SPLITS = {"development": "initial-development", "test": "initial-test"}


class Group(msgspec.Struct, frozen=True):
    """The audits of a group and system, added up; `reference` as published, null where it is not.

    Groups: `initial-SPLIT`, `mutations-test`; systems: `model`, `incremental`, `full`, `extractive`.
    """

    group: str
    system: str
    total: Total
    reference: reference.Published | None


class Compared(msgspec.Struct, frozen=True):
    """How incremental and full builds compare: pairs are dossiers at a stage, nodes are targets."""

    pairs: int
    equal: int
    equal_tokens: int
    nodes: int
    generations_compared: int
    generations_equal: int


class Different(msgspec.Struct, frozen=True):
    """A node that differs between the incremental and the full build of a stage."""

    stage: str
    label: str
    what: tuple[str, ...]


class StageReport(msgspec.Struct, frozen=True):
    """A stage: counters of its builds, the targets that were cut off, refusals of what was old."""

    stage: str
    title: str
    dossiers: int
    incremental: Counters
    full: Counters | None
    cut_off: tuple[str, ...]
    roots: int
    refused: int
    refused_stale: int
    unexpected: tuple[str, ...]
    seconds: float
    full_seconds: float | None


class Took(msgspec.Struct, frozen=True):
    """What all builds of one kind took after the initial stage."""

    seconds: float
    model_seconds: float
    executions: int
    unfinished: int
    prompt_tokens: int
    reused: int
    forced: int
    sampled: int


class Section(msgspec.Struct, frozen=True):
    """One scenario. Counters are sums over all stages but the first; so are `took`, by kind of build."""

    declaration: RunDeclaration
    counters: dict[str, Counters]
    took: dict[str, Took]
    initial: Counters
    initial_took: Took
    stages: tuple[StageReport, ...]
    groups: tuple[Group, ...]
    compared: Compared
    differences: tuple[Different, ...]
    devices: tuple[str, ...]
    versions: dict[str, str]
    main_unchanged: bool | None
    """Of an exercise: whether the main evaluation's records are, byte for byte, as before; null without any."""


class Report(msgspec.Struct, frozen=True):
    """All that was run, beside the reference. `generations` counts model calls over all builds of all scenarios."""

    gsum: str
    mutations: Section | None
    exercise: Section | None
    generations: int
    pairs: int
    equal_pairs: int
    equal_token_pairs: int
    reference: reference.Figures
    sample: str | None
    """The digest of the sample that is set aside for a reader; it is PENDING here."""
    unread: int = 0
    """The claims of that sample: nobody has read them for this report."""
    not_run: tuple[str, ...] = ()
    """The scenarios that were not run: no figure here counts them, and those of the reference do."""
    schema: int = REPORT_SCHEMA


def make_report(mutations: Run | None, exercise: Run | None, sample: str | None, unread: int) -> Report:
    """Return the report of finished runs. `sample` is the digest of the sample, `unread` counts its claims."""
    runs = {Scenario.MUTATIONS: mutations, Scenario.EXERCISE: exercise}
    parts = [None if run is None else _section(run) for run in (mutations, exercise)]
    sections = [part for part in parts if part is not None]
    calls = [counters.model_calls for part in sections for counters in (part.initial, *part.counters.values())]
    return Report(
        gsum=VERSION,
        mutations=parts[0],
        exercise=parts[1],
        generations=sum(calls),
        pairs=sum(part.compared.pairs for part in sections),
        equal_pairs=sum(part.compared.equal for part in sections),
        equal_token_pairs=sum(part.compared.equal_tokens for part in sections),
        reference=reference.figures(),
        sample=sample,
        unread=unread,
        not_run=tuple(scenario.value for scenario, run in runs.items() if run is None),
    )


def added(counters: Iterable[Counters]) -> Counters:
    """Return the sums of counters, name by name."""
    taken = list(counters)
    return Counters(**{name: sum(getattr(one, name) for one in taken) for name in Counters.__struct_fields__})


def _section(run: Run) -> Section:
    later, later_times = run.stages[1:], run.times[1:]
    full = [stage.full for stage in later if stage.full is not None]
    times = [time for one in run.times for time in (one.incremental, one.full) if time is not None]
    mains = [(stage.main_before, stage.main_after) for stage in run.stages]
    return Section(
        declaration=run.declaration,
        counters={
            "incremental": added(stage.incremental.counters for stage in later),
            "full": added(side.counters for side in full),
        },
        took={
            "incremental": _took(time.incremental for time in later_times),
            "full": _took(time.full for time in later_times if time.full is not None),
        },
        initial=run.stages[0].incremental.counters,
        initial_took=_took([run.times[0].incremental]),
        stages=tuple(_stage(*pair) for pair in zip(run.stages, run.times, strict=True)),
        groups=tuple(_groups(run)),
        compared=_compared(later),
        differences=tuple(
            Different(stage.stage, found.label, found.what) for stage in later for found in stage.differences
        ),
        devices=tuple(sorted({device for time in times for device in time.devices})),
        versions=dict(sorted({name: value for time in times for name, value in time.versions.items()}.items())),
        main_unchanged=None if mains[0][0] is None else len({digest for pair in mains for digest in pair}) == 1,
    )


def _took(times: Iterable[SideTimes]) -> Took:
    taken = list(times)

    def whole(name: str) -> int:
        return sum(getattr(one, name) for one in taken)

    return Took(
        seconds=round(sum(one.seconds for one in taken), 3),
        model_seconds=round(sum(one.model_seconds for one in taken), 3),
        executions=whole("executions"),
        unfinished=whole("unfinished"),
        prompt_tokens=whole("prompt_tokens"),
        reused=whole("reused"),
        forced=whole("forced"),
        sampled=whole("sampled"),
    )


def _stage(stage: StageRecord, times: StageTimes) -> StageReport:
    return StageReport(
        stage=stage.stage,
        title=stage.title,
        dossiers=len(stage.dossiers),
        incremental=stage.incremental.counters,
        full=None if stage.full is None else stage.full.counters,
        cut_off=tuple(node.label for node in stage.incremental.nodes if node.how == How.CUT_OFF.value),
        roots=len(stage.dossiers),
        refused=len(stage.refusals),
        refused_stale=sum(refusal.state == "STALE" for refusal in stage.refusals),
        unexpected=stage.unexpected,
        seconds=times.incremental.seconds,
        full_seconds=None if times.full is None else times.full.seconds,
    )


def _compared(stages: Sequence[StageRecord]) -> Compared:
    pairs = [pair for stage in stages for pair in stage.pairs]
    return Compared(
        pairs=len(pairs),
        equal=sum(pair.equal for pair in pairs),
        equal_tokens=sum(pair.equal_tokens for pair in pairs),
        nodes=sum(pair.nodes for pair in pairs),
        generations_compared=sum(pair.tokens_compared for pair in pairs),
        generations_equal=sum(pair.tokens for pair in pairs),
    )


def _groups(run: Run) -> Iterable[Group]:
    """Yield the groups of a run: the initial stage by split, then all later stages together."""
    first, later = run.stages[0], run.stages[1:]
    for split in sorted({audit.split for audit in first.incremental.audits.values()}):
        name = _SPLITS.get(split, f"initial-{split}")
        if run.declaration.scenario == "exercise":
            name = "exercise-initial"
        for system, audits in (("model", first.incremental.audits), ("extractive", first.extractive)):
            yield from _group(name, system, [audit for audit in audits.values() if audit.split == split])
    name = "mutations-test" if run.declaration.scenario == "mutations" else "exercise"
    full = [stage.full for stage in later if stage.full is not None]
    yield from _group(name, "incremental", _all(stage.incremental for stage in later))
    yield from _group(name, "full", _all(full))
    yield from _group(name, "extractive", [audit for stage in later for audit in stage.extractive.values()])


def _all(sides: Iterable[Side]) -> list[Audit]:
    return [audit for side in sides for audit in side.audits.values()]


def _group(name: str, system: str, audits: Sequence[Audit]) -> Iterable[Group]:
    if audits:
        yield Group(name, system, total(audits), reference.GROUPS.get((name, system)))
