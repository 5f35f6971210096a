"""TOML text to typed values, with errors that show the place. Pure; what the values mean is the callers' concern.

Used for BUILD.toml and dossier.toml alike.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import TypeVar

import msgspec

from gsum.rules.locate import Path, Point, Span, excerpt, find
from gsum.rules.nearest import suggest
from gsum.rules.shape import choices, field_names, full_path, is_table
from gsum.store.errors import ExitCode, GsumError

T = TypeVar("T")

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_TWICE = re.compile(r"^Cannot declare \((.*?),?\) twice$")
_AT = re.compile(r"^(?P<what>.*?)(?: - at `\$(?P<path>[^`]*)`)?$", re.DOTALL)
_KINDS = {
    "int": "an integer",
    "str": "a string",
    "bool": "true or false",
    "float": "a fraction",
    "object": "a table",
    "array": "an array",
    "null": "absent",
}


class DeclarationError(GsumError):
    """BUILD.toml, a manifest or the files they name can't be used as they stand."""

    exit_code = ExitCode.DECLARATION


class TomlText(msgspec.Struct, frozen=True):
    """A TOML text and the name of its file as shown in errors (POSIX, relative to the workspace root)."""

    file: str
    text: str

    def error(
        self, message: str, path: Path, *, point: Point = Point.VALUE, hint: str | None = None
    ) -> DeclarationError:
        """Return an error that shows the entry at `path`."""
        return self.error_at(message, find(self.text, path, point), hint)

    def error_at(self, message: str, span: Span, hint: str | None = None) -> DeclarationError:
        """Return an error that shows a span."""
        facts = {"file": self.file, "line": span.line, "column": span.column}
        return DeclarationError(message, facts=facts, hint=hint, excerpt=excerpt(self.text, span))


def decode(source: TomlText, kind: type[T]) -> T:
    """Parse and validate a TOML text.

    Raises:
        DeclarationError: on a syntax error, an unknown or missing key or a wrong value, with its place.
    """
    data = _parse(source)
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise _invalid(source, data, kind, str(error)) from None


def dotted(path: Path) -> str:
    """Return a path as TOML writes it, with array indices in brackets."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            key = step if re.fullmatch(r"[A-Za-z0-9_-]+", step) else json.dumps(step, ensure_ascii=False)
            text += f".{key}" if text else key
    return text


def _parse(source: TomlText) -> dict[str, object]:
    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax(source, str(error)) from None
    except RecursionError:
        raise DeclarationError(
            f"`{source.file}` nests arrays or tables too deeply", facts={"file": source.file}, hint="flatten it"
        ) from None
    except ValueError as error:  # an integer beyond Python's digit limit
        raise DeclarationError(
            f"`{source.file}` holds a value that can't be read", facts={"file": source.file, "why": str(error)}
        ) from None


def _syntax(source: TomlText, text: str) -> DeclarationError:
    place = _PLACE.search(text)
    reason = text[: place.start()] if place else text
    lines = source.text.split("\n")
    if place and place[1]:
        span = Span(int(place[1]), int(place[2]), 1)
    else:
        last = len(source.text.rstrip().split("\n"))
        span = Span(last, max(1, len(lines[last - 1].rstrip())), 1)
    twice = _TWICE.match(reason)
    if twice or reason == "Cannot overwrite a value":
        raw = lines[span.line - 1]
        key = raw.split("=")[0].strip()
        name = key.strip("[] ") if not twice else dotted(tuple(re.findall(r"'([^']*)'", twice[1])))
        span = Span(span.line, len(raw) - len(raw.lstrip()) + 1, max(1, len(key)))
        return source.error_at(f"`{name}` is declared twice", span, "keep one of the two")
    return source.error_at(f"`{source.file}` is not valid TOML: {reason[:1].lower()}{reason[1:]}", span)


def _invalid(source: TomlText, data: dict[str, object], kind: type[object], text: str) -> DeclarationError:
    match = _AT.match(text)
    what, raw = (match["what"], match["path"] or "") if match else (text, "")
    path = full_path(data, kind, text, raw)
    name = dotted(path)
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", what, re.DOTALL):
        where = f"`{name}`" if path else f"`{source.file}`"
        hint = suggest(unknown[1], field_names(kind, data, path), "the keys there are")
        return source.error(f"{where} has no key `{unknown[1]}`", (*path, unknown[1]), point=Point.KEY, hint=hint)
    if missing := re.fullmatch(r"Object missing required field `(.*)`", what):
        where = f"`{name}`" if path else f"`{source.file}`"
        hint = _addition(data, kind, path, missing[1])
        return source.error(f"{where} lacks `{missing[1]}`", path, point=Point.KEY, hint=hint)
    if value := re.fullmatch(r"Invalid (?:enum )?value (.*)", what, re.DOTALL):
        given = value[1].strip("'\"")
        admitted = choices(kind, data, path)
        only = f"the only `{path[-1]}` is `{admitted[0]}`" if len(admitted) == 1 and path else None
        hint = only or suggest(given, admitted, "the choices are")
        return source.error(f"`{name}` can't be `{given}`", path, hint=hint)
    return source.error(f"`{name}` {_expectation(what)}", path)


def _addition(data: dict[str, object], kind: type[object], path: Path, name: str) -> str:
    """Return how to add a missing key: a table as a section, a value where its table is."""
    full = (*path, name)
    if is_table(kind, data, full) and not any(isinstance(step, int) for step in path):
        return f"add a section `[{dotted(full)}]`"
    return f"add `{name} = …` there" if path else f"add `{name} = …` above the first section"


def _expectation(what: str) -> str:
    """Turn msgspec's "Expected `int` >= 2, got `str`" to our words."""
    match = re.fullmatch(r"Expected `([^`]*)`(.*?)(?:, got `([^`]*)`)?", what, re.DOTALL)
    if match is None:
        return f"is refused: {what}"
    wanted = " or ".join(_KINDS.get(part, part) for part in match[1].split(" | ") if part != "null")
    limits = re.sub(r"matching regex '(.*)'", r"matching `\1`", match[2])
    return f"must be {wanted}{limits}" + (f", not {_KINDS.get(match[3], match[3])}" if match[3] else "")
