"""Labels and patterns: names of targets and of the other nodes of the graph, as text and as values. Pure.

`//package:name/part`; nodes are `//SOURCE:DOSSIER/DOCUMENT`, `//prompt:NAME`, `//schema:NAME`, `//toolchain:NAME`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable

import msgspec

from gsum.rules.nearest import nearest as _nearest
from gsum.store.errors import ExitCode, GsumError

RESERVED = ("prompt", "schema", "toolchain")
"""Label packages that name nodes and can be neither a package nor a source."""

PACKAGE_SEGMENT = re.compile(r"(?!\.+$)[A-Za-z0-9._-]+")
NAME = re.compile(r"""(?!\.)[^\s/:()+^,'"`*\x00-\x1f\x7f-\x9f]+""")
"""Names of dossiers: any script, but nothing that labels, patterns or queries give a meaning."""

_UNFIT_IN_LABEL = re.compile(r"[%\s/\x00-\x1f\x7f-\x9f]")
_ROOT = "root"


class LabelError(GsumError):
    """A label or pattern that is malformed or names nothing."""

    exit_code = ExitCode.USAGE


class Label(msgspec.Struct, frozen=True, order=True):
    """A parsed label; `part` is '' for prompts, schemas and toolchains."""

    package: str
    name: str
    part: str = ""

    def __str__(self) -> str:
        return f"//{self.package}:{self.name}/{self.part}" if self.part else f"//{self.package}:{self.name}"


class Extent(enum.Enum):
    """How much a pattern covers."""

    TARGET = "target"
    """`//p:n/part`."""
    ROOT = "root"
    """`//p:n`: its root."""
    PARTS = "parts"
    """`//p:n/...`: all parts of one."""
    ROOTS = "roots"
    """`//p:all`: the roots of all."""
    PACKAGE = "package"
    """`//p:...`: all parts of all."""
    TREE = "tree"
    """`//...`, `//p/...`: all parts of all, in every package at or below a folder."""


class Pattern(msgspec.Struct, frozen=True):
    """A parsed pattern. `package` is '' for `//...`; `name` and `part` are '' where the extent needs none."""

    text: str
    extent: Extent
    package: str
    name: str = ""
    part: str = ""

    def covers_package(self, package: str) -> bool:
        """Whether the pattern may match targets of a package."""
        if self.extent is not Extent.TREE:
            return package == self.package
        return not self.package or package == self.package or package.startswith(self.package + "/")


def parse_label(text: str) -> Label:
    """Parse a label that names exactly one target or node.

    Raises:
        LabelError: if the text is malformed or is a pattern for several targets.
    """
    pattern = parse_pattern(text)
    if pattern.extent not in (Extent.TARGET, Extent.ROOT):
        raise _error(
            text, 0, len(text), "names many targets where one is needed", "give one label, as `//package:name/root`"
        )
    return Label(pattern.package, pattern.name, pattern.part)


def parse_target(text: str) -> Label:
    """Parse the label of one target: `//p:n` means `//p:n/root`."""
    label = parse_label(text)
    return label if label.part else Label(label.package, label.name, _ROOT)


def parse_pattern(text: str) -> Pattern:
    """Parse a target pattern.

    Raises:
        LabelError: with a caret under the place where the text stops being a pattern.
    """
    if not text.startswith("//"):
        raise _error(text, 0, len(text), "does not start with `//`", "write `//package:name/part`")
    package, colon, rest = text[2:].partition(":")
    if not colon:
        return _tree(text, package)
    _check_package(text, package, 2)
    start = 3 + len(package)
    if rest == "all":
        return Pattern(text, Extent.ROOTS, package)
    if rest == "...":
        return Pattern(text, Extent.PACKAGE, package)
    name, slash, part = rest.partition("/")
    if not NAME.fullmatch(name):
        bad = NAME.match(name)
        raise _error(
            text, start + (bad.end() if bad else 0), 1, "has no valid name after `:`", "write `//package:name/part`"
        )
    if not slash:
        return Pattern(text, Extent.ROOT, package, name)
    if part == "...":
        return Pattern(text, Extent.PARTS, package, name)
    wrong = re.search(r"[\s\x00-\x1f\x7f-\x9f]", part)
    if not part or wrong:
        at = start + len(name) + 1 + (wrong.start() if wrong else 0)
        raise _error(
            text, at, 1, "has no valid part after `/`", f"write `//{package}:{name}/root` or `//{package}:{name}/...`"
        )
    return Pattern(text, Extent.TARGET, package, name, part)


def document_label(source: str, dossier: str, document: str) -> Label:
    """Return the node label of a document; what a label can't hold in its id is percent-escaped."""
    escaped = document
    if _UNFIT_IN_LABEL.search(document):
        escaped = _UNFIT_IN_LABEL.sub(lambda match: "".join(f"%{b:02X}" for b in match[0].encode()), document)
    return Label(source, dossier, "%2E%2E%2E" if escaped == "..." else escaped)


def nearest(label: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most like a label, or None where none is near."""
    return _nearest(label, candidates)


def unknown(text: str, message: str, near: str | None, otherwise: str) -> LabelError:
    """Return the error for a well-formed label that names nothing, with the nearest label as hint."""
    return LabelError(message, facts={"label": text}, hint=f"did you mean `{near}`?" if near else otherwise)


def _tree(text: str, package: str) -> Pattern:
    if package == "...":
        return Pattern(text, Extent.TREE, "")
    folder = package.removesuffix("/...")
    if folder != package:
        _check_package(text, folder, 2)
        return Pattern(text, Extent.TREE, folder)
    hint = (
        f"write `//{package}:name`, `//{package}:all` or `//{package}:...`"
        if package
        else "write `//package:name/part`"
    )
    raise _error(text, len(text), 1, "has no `:`", hint)


def _check_package(text: str, package: str, offset: int) -> None:
    for segment in package.split("/"):
        if not PACKAGE_SEGMENT.fullmatch(segment):
            good = PACKAGE_SEGMENT.match(segment)
            at = offset + (good.end() if good else 0)
            hint = "package names are letters, digits, `.`, `_` and `-`, with `/` between folders"
            raise _error(text, at, 1, "has no valid package", hint)
        offset += len(segment) + 1


def _error(text: str, start: int, length: int, message: str, hint: str) -> LabelError:
    shown = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    return LabelError(f"`{shown}` {message}", hint=hint, excerpt=f"{shown}\n{' ' * start}{'^' * max(1, length)}")
