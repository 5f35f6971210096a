"""The action graph: what analysis yields and keys, plan and queries walk. Pure, static, acyclic."""

from __future__ import annotations

import enum

import msgspec

from gsum.rules.snapshot import Scope


class ActionKind(enum.Enum):
    """What an action does."""

    MAP = "map"
    REDUCE = "reduce"
    EXTRACT = "extract"
    MERGE = "merge"
    AUDIT = "audit"


class Action(msgspec.Struct, frozen=True):
    """One action. Leaves (MAP, EXTRACT) have a scope and no children; the others have children and no scope.
    An AUDIT has both: its child is the summary, and its scope and path are those of the gold (`gsum.rules.gold`).

    `label` is the target's label as text; `children` are labels in slot order. `prompt`, `schema`, `toolchain` are full
    declared names, null where the kind has none. `path` is the document's file relative to the workspace root.
    """

    label: str
    kind: ActionKind
    rule: str
    package: str
    dossier: str
    source: str
    principal: str
    children: tuple[str, ...]
    scope: Scope | None
    path: str | None
    prompt: str | None
    schema: str
    toolchain: str | None
    input_tokens: int | None
    fan_in: int | None


class ActionGraph(msgspec.Struct, frozen=True):
    """Actions by label, children before parents, the labels that were asked for, and the titles of their dossiers by
    source and name.
    """

    actions: dict[str, Action]
    requested: tuple[str, ...]
    titles: dict[tuple[str, str], str] = {}
