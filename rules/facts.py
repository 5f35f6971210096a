"""The declared fact pattern of a schema: which lines are fact lines, and the values they state. Pure."""

from __future__ import annotations

import re

from gsum.rules.config import SchemaSection


def admits(schema: SchemaSection, values: dict[str, str]) -> bool:
    """Whether values fit the schema: enumerations hold, and every text has 1 to `max_length` characters."""
    return all(
        value in schema.enums[field] if field in schema.enums else 1 <= len(value) <= schema.max_length
        for field, value in values.items()
    )


def read_fact(schema: SchemaSection, text: str) -> dict[str, str] | None:
    """Return the values of a fact line in field order, or null.

    A fact line matches the schema's fact pattern as a whole, every named group takes part in the match, and the
    values fit the schema. A schema without a fact pattern has no fact lines.
    """
    if schema.fact_pattern is None:
        return None
    match = re.fullmatch(schema.fact_pattern, text)
    if match is None:
        return None
    groups = match.groupdict()
    values = {field: groups[field] for field in schema.fields if groups.get(field) is not None}
    return values if len(values) == len(schema.fields) and admits(schema, values) else None
