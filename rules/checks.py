"""Cross-checks of declarations that a type can't express: schemas, toolchains, and what fits what. Pure."""

from __future__ import annotations

import re

from gsum.rules.config import (
    CommandToolchain,
    ExtractPackage,
    GrammarSection,
    LocalToolchain,
    NumericsSection,
    PackageSection,
    SchemaSection,
    Strength,
    ToolchainSection,
)
from gsum.rules.locate import Path, Point
from gsum.rules.nearest import suggest
from gsum.rules.toml import TomlText, dotted


def check_schema(text: TomlText, at: Path, schema: SchemaSection) -> None:
    """Refuse fields that can't be told apart, enumerations of no field, and a pattern that doesn't give the fields.

    Raises:
        DeclarationError: with the place.
    """
    seen: set[str] = set()
    for number, field in enumerate(schema.fields):
        if field == "evidence":
            raise text.error(
                "a field can't be named `evidence`", (*at, "fields", number), hint="every claim has `evidence` anyway"
            )
        if field in seen:
            raise text.error(f"field `{field}` is declared twice", (*at, "fields", number))
        seen.add(field)
    for field, values in schema.enums.items():
        if field not in seen:
            hint = suggest(field, schema.fields, "the fields are")
            raise text.error(
                f"`{dotted(at)}` has no field `{field}`", (*at, "enums", field), point=Point.KEY, hint=hint
            )
        if not values or len(set(values)) < len(values):
            raise text.error(
                f"the values of field `{field}` are empty or not distinct", (*at, "enums", field), hint="list each once"
            )
    for number, field in enumerate(schema.reduce_once):
        if field not in seen:
            hint = suggest(field, schema.fields, "the fields are")
            raise text.error(f"`{dotted(at)}` has no field `{field}`", (*at, "reduce_once", number), hint=hint)
        if field in schema.reduce_once[:number]:
            raise text.error(
                f"field `{field}` stands twice in `{dotted(at)}.reduce_once`", (*at, "reduce_once", number)
            )
    if schema.fact_pattern is not None:
        _check_pattern(text, (*at, "fact_pattern"), schema.fact_pattern, schema.fields)


def check_toolchain(
    text: TomlText, at: Path, toolchain: ToolchainSection, numerics: dict[str, NumericsSection]
) -> None:
    """Refuse a toolchain without the numerics, grammar backend or epoch that its key needs.

    Raises:
        DeclarationError: with the place.
    """
    _check_grammar(text, (*at, "grammar"), toolchain.grammar)
    match toolchain:
        case LocalToolchain(numerics=name) if name not in numerics:
            hint = suggest(name, numerics, "the profiles declared are")
            raise text.error(f"numerics profile `{name}` is not declared", (*at, "numerics"), hint=hint)
        case CommandToolchain(reproducible=False, epoch=None):
            raise text.error(
                f"`{dotted(at)}` is not reproducible and has no epoch",
                (*at, "reproducible"),
                hint='add `epoch = "1"` and raise it to disown earlier generations',
            )
        case _:
            pass


def mismatch(package: PackageSection, schema: SchemaSection, strength: Strength | None) -> str | None:
    """Return why a package can't use its schema under a grammar strength, or None."""
    if schema.fact_pattern is not None:
        return None
    if isinstance(package, ExtractPackage):
        return f"rule `extract` needs a `fact_pattern` in schema `{package.schema}`"
    if strength is Strength.PATTERN:
        return f"grammar strength `pattern` needs a `fact_pattern` in schema `{package.schema}`"
    return None


def _check_pattern(text: TomlText, at: Path, pattern: str, fields: tuple[str, ...]) -> None:
    try:
        groups = re.compile(pattern).groupindex
    except (re.error, RecursionError, OverflowError) as error:
        raise text.error(f"`{dotted(at)}` is no regular expression: {error}", at) from None
    if set(groups) != set(fields):
        have, want = (", ".join(f"`{name}`" for name in names) or "none" for names in (groups, fields))
        raise text.error(
            f"the named groups of `{dotted(at)}` are {have} and the fields are {want}",
            at,
            hint="name one group `(?P<field>…)` for each field",
        )


def _check_grammar(text: TomlText, at: Path, grammar: GrammarSection) -> None:
    declared = [key for key in ("backend", "version") if getattr(grammar, key) is not None]
    if grammar.strength is Strength.NONE and declared:
        hint = "remove it, or choose a strength"
        raise text.error(f"a grammar of strength `none` has no `{declared[0]}`", (*at, declared[0]), hint=hint)
    if grammar.strength is not Strength.NONE and len(declared) < 2:
        raise text.error(
            f"a grammar of strength `{grammar.strength.value}` needs `backend` and `version`",
            (*at, "strength"),
            hint='add `backend = "llguidance"` and its `version`',
        )
