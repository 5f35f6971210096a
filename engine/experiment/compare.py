"""Two finished runs over the same snapshots, paired: exact McNemar tests, Holm-corrected, with confidence intervals.

Statistics are scipy's and statsmodels' (the extra `stats`); the counts under every figure are given with it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from gsum.engine.experiment.loading import Run, load_run
from gsum.engine.experiment.records import RunError, StageRecord
from gsum.engine.experiment.setup import Scenario
from gsum.engine.inputs import decode_result
from gsum.rules.claims import Result
from gsum.rules.config import SchemaSection, Workspace
from gsum.rules.gold import Gold, decode_gold
from gsum.rules.loader import load_workspace
from gsum.rules.metrics import Fact, fact_of, gold_facts
from gsum.rules.snapshot import Scope
from gsum.store.api import Store
from gsum.store.digests import Digest, Key
from gsum.store.errors import ExitCode, GsumError
from gsum.store.local import open_store

COMPARE_SCHEMA = 1
LEVEL = 0.95
SERVED, RECALLED = "root served", "gold fact recalled"


class ExtraMissing(GsumError):
    """The libraries of an extra are not installed."""

    exit_code = ExitCode.USAGE


class Interval(msgspec.Struct, frozen=True):
    """A share and its confidence interval at `LEVEL`."""

    share: float
    low: float
    high: float


class PairedTest(msgspec.Struct, frozen=True):
    """One paired comparison: `measure` over all units of a stage, in the four cells of A and B.

    `p` is McNemar's exact two-sided, `p_holm` corrected over all tests of the comparison. `a` and `b` are the shares
    with Wilson intervals; `a_of_discordant` is only_a / (only_a + only_b) with a Clopper–Pearson interval, null where
    the two never differ.
    """

    stage: str
    measure: str
    units: int
    both: int
    only_a: int
    only_b: int
    neither: int
    a: Interval
    b: Interval
    a_of_discordant: Interval | None
    p: float
    p_holm: float


class Comparison(msgspec.Struct, frozen=True):
    """All tests of two runs, and what the runs are of."""

    a: dict[str, str]
    b: dict[str, str]
    dossiers: int
    level: float
    tests: tuple[PairedTest, ...]
    note: str = (
        "facts of one dossier are not independent, and the stages of one dossier are not either: "
        "p is exact for the pairs counted and says nothing of other dossiers"
    )
    schema: int = COMPARE_SCHEMA


Cells = tuple[int, int, int, int]
"""both, only A, only B, neither."""


def compare_runs(a: Path, b: Path) -> Comparison:
    """Compare the mutation runs in two folders, stage by stage.

    Raises:
        ExtraMissing: if scipy or statsmodels are not installed.
        RunError: if one is not there or not finished, or they are not of the same snapshots.
    """
    stats = _statistics()
    one, other = _load(a), _load(b)
    _require_same(one, other)
    found: list[tuple[str, str, Cells]] = []
    with open_store(one.store, read_only=True) as one_store, open_store(other.store, read_only=True) as other_store:
        workspaces = _workspace(one), _workspace(other)
        for one_stage, other_stage in zip(one.stages, other.stages, strict=True):
            _require_same_texts(one_stage.stage, _read(one_stage, one_store), _read(other_stage, other_store))
            views = (
                dict(_outcomes(one, one_stage, one_store, workspaces[0])),
                dict(_outcomes(other, other_stage, other_store, workspaces[1])),
            )
            found += [(one_stage.stage, name, cells) for name, cells in _cells(*views)]
    ps = [float(stats.mcnemar([[c[0], c[1]], [c[2], c[3]]], exact=True).pvalue) for _, _, c in found]
    holm = stats.multipletests(ps, method="holm")[1]
    tests = tuple(_test(stats, *item, p, float(q)) for item, p, q in zip(found, ps, holm, strict=True))
    return Comparison(_described(one), _described(other), len(one.declaration.dossiers), LEVEL, tests)


class _Outcome(msgspec.Struct, frozen=True):
    """One root: whether it may be served, and which facts of its gold it holds."""

    served: bool
    gold: frozenset[Fact]
    recalled: frozenset[Fact]


class _Statistics(msgspec.Struct, frozen=True):
    mcnemar: Any
    multipletests: Any
    proportion_confint: Any
    binomtest: Any


def _statistics() -> _Statistics:
    try:
        tables = importlib.import_module("statsmodels.stats.contingency_tables")
        multiple = importlib.import_module("statsmodels.stats.multitest")
        proportion = importlib.import_module("statsmodels.stats.proportion")
        scipy = importlib.import_module("scipy.stats")
    except ImportError as error:
        raise ExtraMissing(
            "comparing runs needs scipy and statsmodels",
            facts={"missing": error.name or "unknown"},
            hint="pip install 'gsum[stats]'",
        ) from None
    return _Statistics(tables.mcnemar, multiple.multipletests, proportion.proportion_confint, scipy.binomtest)


def _load(out: Path) -> Run:
    run = load_run(out, Scenario.MUTATIONS)
    if run is None:
        error = RunError(
            "there is no run of `mutations` to compare",
            facts={"folder": out},
            hint=f"gsum experiment run mutations --out {out}",
        )
        error.exit_code = ExitCode.STALE
        raise error
    return run


def _require_same(one: Run, other: Run) -> None:
    a, b = one.declaration, other.declaration
    for name in ("dossiers", "mutated", "principal", "edits"):
        if getattr(a, name) != getattr(b, name):
            raise _not_paired(name)


class _Preimage(msgspec.Struct, frozen=True):
    """What of an action's preimage says which text it read."""

    source: Scope | None


_PREIMAGES = msgspec.json.Decoder(_Preimage)

_Read = dict[str, tuple[str, str | None, Digest | None]]
"""By leaf: its document, version and text; of one that may not be read, neither."""


def _read(stage: StageRecord, store: Store) -> _Read:
    """Return what the leaves of a stage read, as their keys say it: facts can be equal where texts are not."""
    found = {}
    for node in stage.incremental.nodes:
        source = _PREIMAGES.decode(store.get_record(Key(node.key)).data).source
        if source is not None:
            found[node.label] = (source.id, source.version, source.text)
    return found


def _require_same_texts(stage: str, one: _Read, other: _Read) -> None:
    for label in sorted({*one, *other}):
        if one.get(label) != other.get(label):
            raise _not_paired(f"what `{label}` read in stage `{stage}`")


def _not_paired(what: str) -> RunError:
    error = RunError(
        "the two runs can't be paired",
        facts={"they differ in": what},
        hint="compare runs over the same dossiers, edits and texts",
    )
    error.exit_code = ExitCode.USAGE
    return error


def _workspace(run: Run) -> Workspace:
    return load_workspace(run.folder / "workspace")


def _outcomes(run: Run, stage: StageRecord, store: Store, workspace: Workspace) -> Iterable[tuple[str, _Outcome]]:
    """Yield the outcome of each root of a stage, by dossier, from the results and the gold that were kept."""
    package = run.declaration.package
    schema = workspace.schemas[workspace.packages[package].schema]
    roots = {node.label: node for node in stage.incremental.nodes}
    for key in map(Key, stage.incremental.audit_keys.values()):
        entry = store.entries([key])[key]
        gold = decode_gold(store.get_blob(entry.sources[0]).decode())
        root = roots[f"//{package}:{gold.dossier}/root"]
        yield gold.dossier, _outcome(decode_result(store.get_blob(Digest(root.result))), gold, schema)


def _outcome(result: Result, gold: Gold, schema: SchemaSection) -> _Outcome:
    facts = gold_facts(gold, schema)
    recalled = facts & {fact_of(claim, schema) for claim in result.claims}
    return _Outcome(result.status.value != "INVALID", facts, recalled)


def _cells(one: dict[str, _Outcome], other: dict[str, _Outcome]) -> Iterable[tuple[str, Cells]]:
    served, recalled = [0, 0, 0, 0], [0, 0, 0, 0]
    for dossier, mine in one.items():
        theirs = other[dossier]
        if mine.gold != theirs.gold:
            raise _not_paired(f"the gold of {dossier}")
        served[_cell(mine.served, theirs.served)] += 1
        for fact in mine.gold:
            recalled[_cell(fact in mine.recalled, fact in theirs.recalled)] += 1
    yield SERVED, (served[0], served[1], served[2], served[3])
    yield RECALLED, (recalled[0], recalled[1], recalled[2], recalled[3])


def _cell(a: bool, b: bool) -> int:
    return (0 if b else 1) if a else (2 if b else 3)


def _test(stats: _Statistics, stage: str, measure: str, cells: Cells, p: float, p_holm: float) -> PairedTest:
    both, only_a, only_b, neither = cells
    units, discordant = sum(cells), only_a + only_b
    split = None
    if discordant:
        bounds = stats.binomtest(only_a, discordant).proportion_ci(LEVEL, method="exact")
        split = Interval(only_a / discordant, float(bounds.low), float(bounds.high))
    return PairedTest(
        stage=stage,
        measure=measure,
        units=units,
        both=both,
        only_a=only_a,
        only_b=only_b,
        neither=neither,
        a=_wilson(stats, both + only_a, units),
        b=_wilson(stats, both + only_b, units),
        a_of_discordant=split,
        p=p,
        p_holm=p_holm,
    )


def _wilson(stats: _Statistics, part: int, whole: int) -> Interval:
    low, high = stats.proportion_confint(part, whole, alpha=1 - LEVEL, method="wilson")
    return Interval(part / whole, float(low), float(high))


def _described(run: Run) -> dict[str, str]:
    declared = run.declaration
    return {"toolchain": declared.toolchain, "toolchain_key": declared.toolchain_key, "workspace": declared.workspace}
