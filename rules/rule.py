"""The protocol of a rule kind: expand a dossier to actions, render an action, resolve a generation. Pure."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import msgspec

from gsum.rules.claims import Result
from gsum.rules.config import PackageSection, Prompt, SchemaSection, Strength
from gsum.rules.documents import Line, lines
from gsum.rules.graph import Action
from gsum.rules.requests import Request
from gsum.rules.snapshot import Snapshot
from gsum.store.records import Generation


class ModelTerms(msgspec.Struct, frozen=True):
    """What a rendering needs of a toolchain: its key, the grammar's strength, the output budget; and the salt."""

    toolchain: str
    strength: Strength
    max_new_tokens: int
    salt: str = ""


class Inputs(msgspec.Struct, frozen=True, dict=True):
    """All that an action reads: its document's text (readable leaves) or its children's results in slot order."""

    schema: SchemaSection
    perimeter: str
    text: str | None = None
    children: tuple[Result, ...] = ()
    prompt: Prompt | None = None
    terms: ModelTerms | None = None

    @cached_property
    def numbered(self) -> tuple[Line, ...]:
        """The non-empty lines of the text: cut once, for the request and again for what the generation cites."""
        if self.text is None:
            raise ValueError("a readable leaf needs its text")
        return lines(self.text)


class Finished(msgspec.Struct, frozen=True):
    """An action that needs no model: its result, and whether because nothing was eligible."""

    result: Result
    ineligible: bool


class Rule(Protocol):
    """A rule kind. All methods are pure."""

    name: str
    version: int
    """In every action key; bumped when the same inputs would give another request or result."""

    def expand(
        self, name: str, package: PackageSection, snapshot: Snapshot, toolchain: str | None
    ) -> tuple[Action, ...]:
        """Return the actions of one dossier, children before parents, the root last."""

    def render(self, action: Action, inputs: Inputs) -> Request | Finished:
        """Return the request of an action, or its result where no model is needed."""

    def resolve(self, action: Action, inputs: Inputs, generation: Generation) -> Result:
        """Parse and validate a generation to a result with full evidence. Never raises on what a model wrote."""
