"""What a scenario runs over: packages, dossiers and stages, told from a workspace and its edits. Starts nothing."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gsum.engine.experiment.edits import EditsFile, Step, parse_edits
from gsum.engine.experiment.records import RunDeclaration
from gsum.engine.experiment.scratch import digest_files, needed_files
from gsum.engine.keys import named_record
from gsum.rules.config import AuditPackage, ExtractPackage, SummaryTreePackage, Workspace
from gsum.rules.files import decode_text, read_bytes
from gsum.rules.ingest import list_dossiers
from gsum.rules.labels import LabelError
from gsum.rules.nearest import suggest
from gsum.rules.toml import DeclarationError, TomlText
from gsum.rules.visibility import audited, check_package
from gsum.store.digests import RecordKind, blob_digest, preimage_of

INITIAL = "initial"
EDITS_MAX_BYTES = 1_048_576


class Scenario(enum.Enum):
    """What a run does."""

    MUTATIONS = "mutations"
    EXERCISE = "exercise"


class Stage(msgspec.Struct, frozen=True):
    """One build over all dossiers of a stage, after its step. The initial stage has none."""

    number: int
    name: str
    title: str
    step: Step | None
    dossiers: tuple[str, ...]


class Setup(msgspec.Struct, frozen=True):
    """A run as it is about to go: the workspace it copies, what it declares, its stages."""

    workspace: Workspace
    declaration: RunDeclaration
    stages: tuple[Stage, ...]
    files: tuple[str, ...]
    source_folder: str


def set_up(
    workspace: Workspace,
    scenario: Scenario,
    *,
    edits_path: str,
    package: str,
    toolchain: str | None,
    dossiers: Sequence[str],
) -> Setup:
    """Return what a scenario runs over; without `dossiers`: all of them.

    Raises:
        DeclarationError, LabelError, VisibilityError: if packages, toolchain, dossiers or edits are not as needed.
    """
    summaries = _summaries(workspace, package)
    audit, baseline = _audits(workspace, package, summaries)
    edits, edits_digest = _edits(workspace, edits_path)
    known = list_dossiers(workspace, summaries.sources)
    taken, mutated, steps = _dossiers(edits, scenario, known, dossiers)
    chosen = toolchain or summaries.toolchain or workspace.section.default_toolchain
    if chosen not in workspace.toolchains:
        hint = suggest(chosen, workspace.toolchains, "the toolchains declared are")
        raise LabelError(f"toolchain `{chosen}` is not declared", hint=hint)
    stages = _stages(scenario, taken, mutated, steps)
    audits = workspace.packages[audit]
    assert isinstance(audits, AuditPackage)
    files = needed_files(workspace, (audits,), taken)
    declaration = RunDeclaration(
        scenario=scenario.value,
        toolchain=chosen,
        toolchain_key=preimage_of(RecordKind.TOOLCHAIN, named_record(workspace, RecordKind.TOOLCHAIN, chosen)).key,
        principal=edits.principal,
        package=package,
        audit=audit,
        baseline=baseline,
        dossiers=taken,
        mutated=mutated,
        stages=tuple(stage.name for stage in stages),
        workspace=digest_files(Path(workspace.root), files),
        edits=edits_digest,
    )
    return Setup(workspace, declaration, stages, files, workspace.sources[summaries.sources].path)


def _summaries(workspace: Workspace, name: str) -> SummaryTreePackage:
    package = workspace.packages.get(name)
    if isinstance(package, SummaryTreePackage):
        check_package(workspace, name, audited(workspace))
        return package
    trees = [other for other, found in workspace.packages.items() if isinstance(found, SummaryTreePackage)]
    raise LabelError(
        f"there is no package of summaries `{name}`", hint=suggest(name, trees, "packages of summaries are")
    )


def _audits(workspace: Workspace, name: str, summaries: SummaryTreePackage) -> tuple[str, str | None]:
    """Return the audit package of the summaries, and that of an extractive baseline over the same dossiers."""
    audit = baseline = None
    for other, package in workspace.packages.items():
        if isinstance(package, AuditPackage) and package.sources == summaries.sources:
            if package.targets == name:
                audit = audit or other
            elif isinstance(workspace.packages[package.targets], ExtractPackage):
                baseline = baseline or other
    if audit is None:
        raise DeclarationError(
            f"no package audits `{name}`",
            hint=f'add `[package.eval]` with `rule = "audit"`, `targets = "{name}"` and `labels = …` to BUILD.toml',
        )
    return audit, baseline


def _edits(workspace: Workspace, path: str) -> tuple[EditsFile, str]:
    data = read_bytes(workspace.root, path, EDITS_MAX_BYTES, "edits file")
    return parse_edits(TomlText(path, decode_text(data, path, "edits file"))), blob_digest(data)


def _dossiers(
    edits: EditsFile, scenario: Scenario, known: Sequence[str], asked: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Step, ...]]:
    """Return the dossiers of a run, those that are mutated, and the steps."""
    if scenario is Scenario.EXERCISE:
        _require(known, (edits.exercise.dossier,))
        if tuple(asked) not in ((), (edits.exercise.dossier,)):
            raise LabelError(f"the exercise is of dossier `{edits.exercise.dossier}`", hint="leave `--dossiers` out")
        return (edits.exercise.dossier,), (edits.exercise.dossier,), edits.exercise.steps
    _require(known, asked)
    taken = tuple(name for name in known if not asked or name in asked)
    mutated = tuple(name for name in taken if edits.mutations.first <= name <= edits.mutations.last)
    if not mutated:
        between = f"`{edits.mutations.first}` to `{edits.mutations.last}`"
        raise LabelError("none of the dossiers is mutated", hint=f"take one of {between}")
    return taken, mutated, edits.mutations.steps


def _require(known: Sequence[str], asked: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            raise LabelError(f"there is no dossier `{name}`", hint=suggest(name, known, "the dossiers are"))


def _stages(
    scenario: Scenario, taken: tuple[str, ...], mutated: tuple[str, ...], steps: tuple[Step, ...]
) -> tuple[Stage, ...]:
    title = "All dossiers as they stand" if scenario is Scenario.MUTATIONS else "The dossier as it stands"
    first = Stage(0, INITIAL, title, None, taken)
    return (first, *(Stage(number, step.name, step.title, step, mutated) for number, step in enumerate(steps, 1)))
