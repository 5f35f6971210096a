"""The one root of gsum's errors and its exit codes. Pure; others subclass `GsumError` beside their raisers."""

from __future__ import annotations

import enum
from collections.abc import Mapping


class ExitCode(enum.IntEnum):
    """Process exit codes, documented in the README."""

    OK = 0
    ACTION_FAILED = 1
    USAGE = 2
    DECLARATION = 3
    STALE = 4
    STORE = 5
    TOOLCHAIN = 6
    INVALID = 7
    NOT_REPRODUCIBLE = 8
    BUDGET = 9
    DAMAGE = 10
    INTERRUPTED = 130


class GsumError(Exception):
    """An error a user can act on: one sentence, facts aligned under it, a hint that says what to type.

    `message` has no final period. `facts` maps short names to values and is printed in order.
    `excerpt` is an optional preformatted source excerpt with a caret.
    """

    exit_code: ExitCode = ExitCode.ACTION_FAILED

    def __init__(
        self,
        message: str,
        *,
        facts: Mapping[str, object] | None = None,
        hint: str | None = None,
        excerpt: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.facts: dict[str, object] = dict(facts or {})
        self.hint = hint
        self.excerpt = excerpt


class StoreError(GsumError):
    """The store can't be opened, read or written."""

    exit_code = ExitCode.STORE
