"""Strict parsing of a generation to raw claims. Pure; never raises, whatever the text.

A generation is data, not trust: nothing is guessed and only two repairs exist. Diagnostics say what is wrong and
where, and never repeat a word of the text.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

import msgspec

from gsum.rules.config import SchemaSection
from gsum.rules.facts import admits
from gsum.store.records import StopReason

OUTER_WHITESPACE = "outer whitespace stripped"
JSON_FENCE = "json fence removed"
_FENCE = re.compile(r"```json[ \t]*\r?\n(?P<body>.*)\n[ \t]*```", re.DOTALL)
_FENCE_LINE = re.compile(r"^[ \t]*```", re.MULTILINE)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_MAX_DIGITS = 9
_CLAIMS = "claims"
_EVIDENCE = "evidence"
_PLAIN: msgspec.json.Decoder[dict[str, list[dict[str, str | list[int]]]]] = msgspec.json.Decoder(
    dict[str, list[dict[str, str | list[int]]]]
)


class RawClaim(msgspec.Struct, frozen=True):
    """A claim as generated: values in the schema's field order, and the numbers of the lines or claims it cites."""

    values: dict[str, str]
    evidence: tuple[int, ...]


class Parsed(msgspec.Struct, frozen=True):
    """The outcome: claims, or a diagnostic and none; and the repairs that were made on the way."""

    claims: tuple[RawClaim, ...]
    diagnostic: str | None
    repairs: tuple[str, ...]


class _RefusedError(Exception):
    """Carries a diagnostic out of the checks below; never leaves this module."""


def parse(text: str, stop: StopReason, schema: SchemaSection, citable: int) -> Parsed:
    """Parse a generation against a schema; evidence must be among the numbers 1 to `citable`."""
    body, repairs = _repair(text)
    try:
        if stop is StopReason.LENGTH:
            raise _RefusedError("the generation ended at its length limit")
        claims = _plain_claims(body, schema, citable)
        if claims is None:
            claims = _claims(_load(body), schema, citable)
        return Parsed(claims, None, repairs)
    except _RefusedError as refusal:
        return Parsed((), str(refusal), repairs)


def _repair(text: str) -> tuple[str, tuple[str, ...]]:
    """Make the two permitted repairs; a fence must be the only one and enclose everything."""
    repairs: list[str] = []
    body = text.strip()
    if body != text:
        repairs.append(OUTER_WHITESPACE)
    fence = _FENCE.fullmatch(body)
    if fence is not None and _FENCE_LINE.search(fence["body"]) is None:
        body = fence["body"].strip()
        repairs.append(JSON_FENCE)
    return body, tuple(repairs)


def _plain_claims(body: str, schema: SchemaSection, citable: int) -> tuple[RawClaim, ...] | None:
    """Return the claims of an answer without escapes that is admitted; null: look again, more slowly, and say why.

    Without escapes each quotation mark opens or closes a string, so that a key given twice shows in their number.
    """
    if "\\" in body:
        return None
    try:
        answer = _PLAIN.decode(body)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    items = answer.get(_CLAIMS)
    if items is None or len(answer) != 1 or len(items) > schema.max_claims:
        return None
    strings = 1 + len(items) * (2 * len(schema.fields) + 1)
    if body.count('"') != 2 * strings:
        return None
    claims = []
    for item in items:
        claim = _plain_claim(item, schema, citable)
        if claim is None:
            return None
        claims.append(claim)
    return tuple(claims)


def _plain_claim(item: dict[str, str | list[int]], schema: SchemaSection, citable: int) -> RawClaim | None:
    cited = item.get(_EVIDENCE)
    values = {name: value for name in schema.fields if isinstance(value := item.get(name), str)}
    if not isinstance(cited, list) or len(item) != len(schema.fields) + 1 or len(values) != len(schema.fields):
        return None
    if not admits(schema, values) or not 1 <= len(cited) == len(set(cited)) <= schema.max_evidence:
        return None
    fits = min(cited) >= 1 and max(cited) <= citable and max(cited) < 10**_MAX_DIGITS
    return RawClaim(values, tuple(cited)) if fits else None


def _load(body: str) -> object:
    """Decode JSON, refusing what Python's decoder admits beyond the standard, and duplicate keys."""
    try:
        value: object = json.loads(
            body, object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_small_int, parse_float=_no_fraction
        )
    except json.JSONDecodeError as error:
        raise _RefusedError(
            f"not JSON: {error.msg.partition(chr(58))[0]} at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise _RefusedError("not JSON that can be read: nested too deeply") from None
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _RefusedError("an object has a key twice")
    return members


def _no_constant(_: str) -> NoReturn:
    raise _RefusedError("a number is not finite")


def _no_fraction(_: str) -> NoReturn:
    raise _RefusedError("a number is not an integer")


def _small_int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise _RefusedError(f"an integer has more than {_MAX_DIGITS} characters")
    return int(digits)


def _claims(value: object, schema: SchemaSection, citable: int) -> tuple[RawClaim, ...]:
    if not isinstance(value, dict):
        raise _RefusedError("the answer is not an object")
    if set(value) != {_CLAIMS}:
        raise _RefusedError(f"the answer is not an object with exactly the key `{_CLAIMS}`")
    items = value[_CLAIMS]
    if not isinstance(items, list):
        raise _RefusedError(f"`{_CLAIMS}` is not an array")
    if len(items) > schema.max_claims:
        raise _RefusedError(f"{len(items)} claims, at most {schema.max_claims} are allowed")
    return tuple(_claim(item, f"claim {n}", schema, citable) for n, item in enumerate(items, 1))


def _claim(item: object, place: str, schema: SchemaSection, citable: int) -> RawClaim:
    if not isinstance(item, dict):
        raise _RefusedError(f"{place} is not an object")
    for name in (*schema.fields, _EVIDENCE):
        if name not in item:
            raise _RefusedError(f"{place}: `{name}` is missing")
    if len(item) != len(schema.fields) + 1:
        raise _RefusedError(f"{place} has a key that the schema does not declare")
    values = {name: _value(item[name], f"{place}, field `{name}`", name, schema) for name in schema.fields}
    return RawClaim(values, _citations(item[_EVIDENCE], f"{place}, `{_EVIDENCE}`", schema, citable))


def _value(value: object, place: str, name: str, schema: SchemaSection) -> str:
    if not isinstance(value, str):
        raise _RefusedError(f"{place} is not a string")
    if name in schema.enums:
        if value not in schema.enums[name]:
            raise _RefusedError(f"{place} is none of the values that the schema admits")
        return value
    if not 1 <= len(value) <= schema.max_length:
        raise _RefusedError(f"{place} has {len(value)} characters, 1 to {schema.max_length} are allowed")
    if _SURROGATE.search(value) is not None:
        raise _RefusedError(f"{place} holds a lone surrogate")
    return value


def _citations(value: object, place: str, schema: SchemaSection, citable: int) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise _RefusedError(f"{place} is not an array")
    if not 1 <= len(value) <= schema.max_evidence:
        raise _RefusedError(f"{place} has {len(value)} numbers, 1 to {schema.max_evidence} are allowed")
    numbers: list[int] = []
    for item in value:
        if not isinstance(item, int) or isinstance(item, bool):
            raise _RefusedError(f"{place} holds something that is not an integer")
        if not 1 <= item <= citable:
            given = f"only 1 to {citable} were" if citable else "none was"
            raise _RefusedError(f"{place} cites a number that was not given, {given}")
        numbers.append(item)
    if len(set(numbers)) != len(numbers):
        raise _RefusedError(f"{place} cites a number twice")
    return tuple(numbers)
