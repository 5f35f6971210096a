"""What a run keeps on disk: its declaration, one record a stage, and the times apart. Structs, and whole-file writes.

Records hold no time and no invocation: the same run gives the same bytes, however often it was stopped.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

import msgspec

from gsum.rules.audit import Audit
from gsum.store.errors import ExitCode, GsumError

RUN_SCHEMA = 1
"""Version of the folder of a run and of every file in it."""

DECLARATION = "run.json"
BEFORE, RECORD, TIMES, ATTEMPTS = "before.json", "record.json", "times.json", "attempts.txt"
CACHED = "cached"

T = TypeVar("T")


class RunError(GsumError):
    """A run's folder is of another schema or another run, or not finished."""


class RunDeclaration(msgspec.Struct, frozen=True):
    """What a run is of. It goes on only if all of this is as it was.

    `workspace` digests every file that was copied, `edits` the edits; `mutated` are the dossiers that steps edit,
    `audit` and `baseline` the audit packages (of the summaries, of the extractive baseline).
    """

    scenario: str
    toolchain: str
    toolchain_key: str
    principal: str
    package: str
    audit: str
    baseline: str | None
    dossiers: tuple[str, ...]
    mutated: tuple[str, ...]
    stages: tuple[str, ...]
    workspace: str
    edits: str
    schema: int = RUN_SCHEMA


class Refusal(msgspec.Struct, frozen=True):
    """What asking for an old summary gave, before it was built again. It holds no claim."""

    label: str
    state: str
    exit_code: int
    key: str
    previous: str | None


class Before(msgspec.Struct, frozen=True):
    """What was found after a stage's edit and before its build: refusals, the targets without a result, and the digest
    of the main evaluation's records (null where there is none).
    """

    refusals: tuple[Refusal, ...]
    to_run: tuple[str, ...]
    main: str | None
    schema: int = RUN_SCHEMA


class Node(msgspec.Struct, frozen=True):
    """A target as it stands after a build. `how` is `cached`, or how it was recomputed; `tokens` counts token ids."""

    label: str
    key: str
    how: str
    status: str
    result: str
    request: str | None
    generation: str | None
    tokens: int


class Counters(msgspec.Struct, frozen=True):
    """targets = hits + recomputed; recomputed = model_calls + cut_off + ineligible + pure.

    `new_tokens` are those of the model calls alone.
    """

    targets: int
    hits: int
    recomputed: int
    model_calls: int
    cut_off: int
    ineligible: int
    pure: int
    new_tokens: int


class Side(msgspec.Struct, frozen=True):
    """One build of a stage: its counters, its nodes in graph order, audits of its roots with their keys, by label."""

    counters: Counters
    nodes: tuple[Node, ...]
    audits: dict[str, Audit]
    audit_keys: dict[str, str]


class Pair(msgspec.Struct, frozen=True):
    """A dossier's incremental and full trees, compared node by node: how many are equal in what.

    `tokens_compared` counts the nodes that have a generation on both sides.
    """

    dossier: str
    nodes: int
    keys: int
    statuses: int
    claims: int
    tokens_compared: int
    tokens: int

    @property
    def equal(self) -> bool:
        """Whether all keys, statuses and claims are equal."""
        return self.keys == self.statuses == self.claims == self.nodes

    @property
    def equal_tokens(self) -> bool:
        """Whether all generations that both sides have are of the same token ids."""
        return self.tokens == self.tokens_compared


class NodeDifference(msgspec.Struct, frozen=True):
    """A node that differs between the two builds, in `what`: `key`, `status`, `claims`, `tokens`."""

    label: str
    what: tuple[str, ...]


class StageRecord(msgspec.Struct, frozen=True):
    """A finished stage. The first stage has one build, `incremental`, and neither refusals nor `full`.

    `unexpected` names the dossiers in which other parts were recomputed than the step declares.
    """

    scenario: str
    stage: str
    title: str
    dossiers: tuple[str, ...]
    incremental: Side
    full: Side | None
    extractive: dict[str, Audit]
    refusals: tuple[Refusal, ...]
    pairs: tuple[Pair, ...]
    differences: tuple[NodeDifference, ...]
    unexpected: tuple[str, ...]
    main_before: str | None
    """The digest of the main evaluation's records before and after an exercise's stage; null where there is none."""
    main_after: str | None
    schema: int = RUN_SCHEMA


class SideTimes(msgspec.Struct, frozen=True):
    """What one build took, over all its attempts; token counts as observed, seconds as measured.

    `seconds` adds up the attempts that ended; `unfinished` counts those that were killed, whose time is not known.
    """

    attempts: int
    unfinished: int
    seconds: float
    executions: int
    model_seconds: float
    prompt_tokens: int
    prefilled: int
    reused: int
    forced: int
    sampled: int
    devices: tuple[str, ...]
    versions: dict[str, str]


class StageTimes(msgspec.Struct, frozen=True):
    """The times of a stage's builds, apart from its record."""

    stage: str
    incremental: SideTimes
    full: SideTimes | None
    schema: int = RUN_SCHEMA


def stage_folder(run: Path, number: int, name: str) -> Path:
    """Return the folder of a stage."""
    return run / "stages" / f"{number:02}-{name}"


def write_whole(path: Path, data: bytes) -> None:
    """Put a file in place whole: a kill leaves the old one, or none, or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def write_record(path: Path, record: object) -> None:
    """Write a record whole."""
    write_whole(path, encode_record(record))


def encode_record(record: object) -> bytes:
    """Return a record as indented JSON, in declared order."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def read_record(path: Path, kind: type[T]) -> T | None:
    """Read a record; null where there is no such file.

    Raises:
        RunError: if it is of another schema, or no record of this kind.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    found: object = None
    why = "it is not JSON"
    try:
        raw = msgspec.json.decode(data)
        found = raw.get("schema", RUN_SCHEMA) if isinstance(raw, dict) else None
        if found == RUN_SCHEMA:
            return msgspec.convert(raw, kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = str(error) if isinstance(error, msgspec.ValidationError) else why
    if found not in (None, RUN_SCHEMA):
        why = f"it is of schema {found}, and this version reads {RUN_SCHEMA}"
    error_ = RunError(
        f"`{path.name}` is no record of a run that can be read",
        facts={"file": path, "why": why},
        hint="use the version of gsum that wrote it, or run into another folder with `--out`",
    )
    error_.exit_code = ExitCode.STALE
    raise error_
