"""What an explanation says: root causes, each once, and the tree that leads from a target down to them. Pure values."""

from __future__ import annotations

import enum

import msgspec
from msgspec import UNSET, UnsetType

from gsum.rules.toml import dotted
from gsum.store.digests import Key


class FieldChange(msgspec.Struct, frozen=True):
    """One field that differs between two preimages; a side that lacks it is unset."""

    path: tuple[str, ...]
    before: object | UnsetType = UNSET
    after: object | UnsetType = UNSET

    @property
    def name(self) -> str:
        """The field's path as TOML would write it."""
        return dotted(self.path)


class CauseKind(enum.Enum):
    """What a root cause is, in the order in which causes are listed."""

    NEVER_BUILT = "never_built"
    DOCUMENT = "document"
    """Another version or text of a document."""
    WITHDRAWN = "withdrawn"
    RESTORED = "restored"
    ACCESS = "access"
    ADDED = "added"
    REMOVED = "removed"
    REPLACED = "replaced"
    """Another document stands in a leaf's place, as far as the leaf alone can tell."""
    REORDERED = "reordered"
    PROMPT = "prompt"
    SCHEMA = "schema"
    TOOLCHAIN = "toolchain"
    SETTING = "setting"
    """Any other field of a preimage."""
    INCOMPLETE = "incomplete"
    """The key did not change; something that its entry refers to is lost."""
    FORCED = "forced"
    """A full build reads no entry."""
    UNKNOWN = "unknown"
    """A preimage that is not kept, so that nothing can be compared."""


class Cause(msgspec.Struct, frozen=True):
    """A root cause, and which targets run because of it, children before parents.

    `subject` names what changed (a document's label, a prompt's name, a field); `details` are lines of a unified
    diff; `note` says why a person may not expect this to matter.
    """

    kind: CauseKind
    subject: str
    text: str
    fields: tuple[FieldChange, ...] = ()
    details: tuple[str, ...] = ()
    note: str | None = None
    targets: tuple[str, ...] = ()

    @property
    def identity(self) -> tuple[CauseKind, str, str]:
        """What makes two findings one cause."""
        return (self.kind, self.subject, self.text)


class Node(msgspec.Struct, frozen=True):
    """A target on the way to a cause. `runs`: it has no entry itself; else only its key changed.

    `causes` are places in the explanation's list: those found at this very target, not below it.
    """

    label: str
    key: Key
    previous: Key | None
    runs: bool
    causes: tuple[int, ...] = ()
    children: tuple[Node, ...] = ()


class Counterfactual(msgspec.Struct, frozen=True):
    """The fewest causes that, all put back, give a target an earlier key again: that of build `invocation`, of which
    the whole entry is kept. Verified by recomputing.
    """

    key: Key
    invocation: str
    causes: tuple[Cause, ...]


class Verdict(enum.Enum):
    """What became, or would become, of what was asked about."""

    CURRENT = "CURRENT"
    STALE = "STALE"
    NOT_BUILT = "NOT BUILT"
    INCOMPLETE = "INCOMPLETE"
    RAN = "RAN"
    """For a past invocation: something ran."""
    SERVED = "SERVED"
    """For a past invocation: nothing ran."""
    DIFFERS = "DIFFERS"
    """Between two invocations: the keys differ."""
    SAME = "SAME"
    """Between two invocations: the key is the same."""


class Explanation(msgspec.Struct, frozen=True):
    """Why a target would run now, why targets ran in `invocation`, or what changed from `before` to `invocation`."""

    label: str | None
    verdict: Verdict
    principal: str
    toolchain: str | None
    runs: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    nodes: tuple[Node, ...] = ()
    invocation: str | None = None
    before: str | None = None
    way_back: Counterfactual | None = None
