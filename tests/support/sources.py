"""The meaning of Python source: a digest of its syntax without comments, docstrings and layout."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from blake3 import blake3

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _shape(value: object) -> object:
    """Return nested lists of names and constants; absent parts are left out, so that Python versions agree."""
    if isinstance(value, list):
        return [_shape(item) for item in value]
    if not isinstance(value, ast.AST):
        return repr(value)
    parts: list[object] = [type(value).__name__]
    for name, part in ast.iter_fields(value):
        if part not in (None, []) and name not in ("kind", "type_comment", "ctx"):
            parts.append([name, _shape(part)])
    return parts


def _without_bare_strings(tree: ast.AST) -> ast.AST:
    """Drop statements that are a string alone: docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED):
            node.body = [statement for statement in node.body if not _is_bare_string(statement)]
    return tree


def _is_bare_string(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def meaning_digest(sources: list[tuple[str, str]]) -> str:
    """Return a BLAKE3 digest over the names and syntax of modules, in the order given."""
    shapes = [[name, _shape(_without_bare_strings(ast.parse(text)))] for name, text in sources]
    return blake3(repr(shapes).encode()).hexdigest()


def closure(module: str, root: Path, leave_out: frozenset[str]) -> list[str]:
    """Return the modules of `gsum` that a module imports at its top, transitively and itself, sorted by name."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found and name not in leave_out:
            found.add(name)
            waiting.extend(_imports(root, name))
    return sorted(found)


def path_of(root: Path, module: str) -> Path:
    """Return the file of a module `gsum.X.Y`."""
    base = root.joinpath(*module.split(".")[1:])
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


def _imports(root: Path, module: str) -> Iterator[str]:
    tree = ast.parse(path_of(root, module).read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("gsum."):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if path_of(root, inner).is_file() else node.module
