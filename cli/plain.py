"""`gsum build PATTERN…`, with no option but `--quiet`, where there is nothing to do: answered without click.

Whatever else is on the command line, and whatever there is to do, is for `gsum.cli.group`; both say the same.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gsum.cli.light import counts_line
from gsum.cli.nothing import NullBuild, null_build
from gsum.cli.streams import PIPE_CLOSED, silence
from gsum.engine.index.quick import Looked
from gsum.store.errors import ExitCode

_QUIET = ("-q", "--quiet")
_COMPLETION = "_GSUM_COMPLETE"
"""A variable that makes a question for completions of any command line."""
_SAFE = frozenset("_@%+=:,./-")
"""Beside letters and digits of ASCII, what needs no quotes on a command line."""


def plain_patterns(arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the patterns of a plain build; None for any other command line."""
    if arguments[:1] != ["build"] or _COMPLETION in environ:
        return None
    patterns = tuple(word for word in arguments[1:] if word not in _QUIET)
    if not patterns or not all(word.startswith("//") and _is_safe(word) for word in patterns):
        return None
    return patterns


def plain_build(patterns: Sequence[str], environ: Mapping[str, str]) -> int | Looked | None:
    """Build, print the summary and return the exit code, if there is nothing to do; else what was seen of it."""
    try:
        cwd, store = Path.cwd(), environ.get("GSUM_STORE")
        where = cwd / store if store else None
        built = null_build(cwd, patterns, store=where, principal=None, toolchain=None)
    except OSError:  # the proper look meets it too, and says what it is
        return None
    if not isinstance(built, NullBuild):
        return built
    done = built.done
    counts = counts_line(done.targets, done.targets, 0, 0, (), 0, built.seconds)
    colored = sys.stdout.isatty() and not environ.get("NO_COLOR")
    lines = [f"\x1b[32m\x1b[1mok\x1b[0m: {counts}" if colored else f"ok: {counts}"]
    lines += [f"next: gsum show {label}" for label in done.alone]
    return _print("".join(f"{line}\n" for line in lines))


def _print(text: str) -> int:
    """Print, and return the exit code."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        silence()
        return PIPE_CLOSED
    except OSError as error:
        silence()
        sys.stderr.write(f"error: the system refused: {error.strerror}\n")
        return int(ExitCode.ACTION_FAILED)
    return 0


def _is_safe(word: str) -> bool:
    return word.isascii() and all(character.isalnum() or character in _SAFE for character in word)
