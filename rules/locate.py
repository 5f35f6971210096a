"""Where a path of TOML data stands in its text: line, column, length. Pure; knows no declaration.

tree-sitter is imported only when an error is rendered, so a build without errors never loads it.
"""

from __future__ import annotations

import enum
import tomllib
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tree_sitter import Node

Step = str | int
Path = tuple[Step, ...]
"""Keys and array indices from the top of a TOML document."""

_KEYS = ("bare_key", "quoted_key", "dotted_key")
_CONTEXT = 100
_DEPTH = 32
"""Keys of one dotted key that are looked at; no declaration nests so deeply."""


class Point(enum.Enum):
    """What of an entry is meant: its key or its value."""

    KEY = "key"
    VALUE = "value"


class Span(msgspec.Struct, frozen=True):
    """A place in a text: line and column count characters from 1; `length` stays within the line."""

    line: int
    column: int
    length: int


class _Entry(msgspec.Struct, frozen=True):
    key: Span | None
    value: Span


class _Index:
    """All entries of one parsed TOML text, by path."""

    def __init__(self, text: str) -> None:
        self.lines = text.encode().split(b"\n")
        self.entries: dict[Path, _Entry] = {}
        self._tables: Counter[Path] = Counter()

    def add_document(self, root: Node) -> None:
        """Record every entry below a document node."""
        for child in root.named_children:
            if child.type == "pair":
                self._add_pair((), child)
            elif child.type in ("table", "table_array_element"):
                self._add_table(child)

    def _add_table(self, node: Node) -> None:
        header = next((child for child in node.named_children if child.type in _KEYS), None)
        if header is None:
            return
        keys = _key_nodes(header)
        path: Path = ()
        for number, key in enumerate(keys):
            path = (*path, _key_text(key))
            span = self._span(key)
            self.entries.setdefault(path, _Entry(span, self._span(header)))
            last = number == len(keys) - 1
            if last and node.type == "table_array_element":
                self._tables[path] += 1
            if self._tables[path]:
                path = (*path, self._tables[path] - 1)
                self.entries.setdefault(path, _Entry(span, self._span(header)))
        for child in node.named_children:
            if child.type == "pair":
                self._add_pair(path, child)

    def _add_pair(self, base: Path, pair: Node) -> None:
        named = [child for child in pair.named_children if child.type != "comment"]
        if len(named) < 2:
            return
        key_nodes = _key_nodes(named[0])
        path = base
        for key in key_nodes:
            path = (*path, _key_text(key))
            self.entries.setdefault(path, _Entry(self._span(key), self._span(named[1])))
        self._add_value(path, named[1])

    def _add_value(self, path: Path, value: Node) -> None:
        if value.type == "inline_table":
            for child in value.named_children:
                if child.type == "pair":
                    self._add_pair(path, child)
        elif value.type == "array":
            items = [child for child in value.named_children if child.type != "comment"]
            for number, item in enumerate(items):
                self.entries[*path, number] = _Entry(None, self._span(item))
                self._add_value((*path, number), item)

    def _span(self, node: Node) -> Span:
        row, start = node.start_point
        line = self.lines[row]
        end = node.end_point[1] if node.end_point[0] == row else len(line.rstrip(b"\r"))
        column = len(line[:start].decode(errors="replace")) + 1
        return Span(row + 1, column, max(1, len(line[start:end].decode(errors="replace"))))


def find(text: str, path: Path, point: Point = Point.VALUE) -> Span:
    """Return the place of the entry at `path`, or of the nearest table above it that the text holds."""
    # The one lazy import of rules: the parser is heavy and only errors need it.
    import tree_sitter  # noqa: PLC0415
    import tree_sitter_toml  # noqa: PLC0415

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_toml.language()))
    index = _Index(text)
    index.add_document(parser.parse(text.encode()).root_node)
    for length in range(len(path), 0, -1):
        entry = index.entries.get(path[:length])
        if entry is not None:
            exact = length == len(path)
            return entry.key if entry.key is not None and (point is Point.KEY or not exact) else entry.value
    return Span(1, 1, 1)


def excerpt(text: str, span: Span) -> str:
    """Return the line of a span with a caret line under it; long lines are cut around the span."""
    lines = text.split("\n")
    raw = lines[span.line - 1].rstrip("\r") if span.line <= len(lines) else ""
    start = span.column - 1
    first = max(0, start - _CONTEXT // 2) if len(raw) > _CONTEXT else 0
    shown = raw[first : first + _CONTEXT]
    before, after = ("…" if first else ""), ("…" if first + _CONTEXT < len(raw) else "")
    pad = "".join("\t" if character == "\t" else " " for character in before + raw[first:start])
    width = max(1, min(span.length, len(shown) - (start - first)))
    clean = "".join(c if c == "\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
    margin = " " * len(str(span.line))
    return f"{margin} |\n{span.line} | {before}{clean}{after}\n{margin} | {pad}{'^' * width}"


def _key_nodes(node: Node) -> list[Node]:
    """Return the single keys of a bare, quoted or dotted key, in order."""
    found: list[Node] = []
    stack = [node]
    while stack:
        top = stack.pop()
        if top.type == "dotted_key":
            stack += reversed(top.named_children)
        else:
            found.append(top)
    return found[:_DEPTH]


def _key_text(node: Node) -> str:
    raw = (node.text or b"").decode(errors="replace")
    if node.type == "bare_key":
        return raw
    try:
        return next(iter(tomllib.loads(f"{raw} = 0")))
    except tomllib.TOMLDecodeError:
        return raw
