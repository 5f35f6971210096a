"""The grammar of a generation, as Lark text in llguidance's dialect, by strength (DESIGN §4). Pure.

Answers are compact JSON, `evidence` last in each claim: a small model copies a fact and then says where it stands,
but cites at random when asked for the number first (S-037, leaves: 0 of 39 claims supported, against 39 of 48). Literal
text is JSON-escaped as an encoder writes it (non-ASCII as it is), then quoted for Lark in ASCII. A grammar helps the
model and proves nothing: what comes back is parsed and checked as if there were none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from gsum.rules.claims import Claim
from gsum.rules.config import SchemaSection, Strength
from gsum.rules.documents import Line
from gsum.rules.facts import read_fact

GRAMMAR_VERSION = 1
"""Stands in the first line of every grammar, hence in every request's bytes.

llguidance's default limits admit some 1,900 citable lines a leaf (2,000 parser items a row); beyond that it refuses
the grammar, which is a failed action like any other input that is too large.
"""

_OPEN, _CLOSE = '{"claims":[', "]}"
# A word is a run of letters and digits with single joiners inside it (`P-37-05`, `1,440`, `12:30`, `don't`); scripts
# written without spaces go by character; every other character stands alone.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_LETTER = rf"(?:[^\W{_UNSPACED}][\u0300-\u036f]*)"
_CHUNK = re.compile(rf"{_LETTER}+(?:[-'’.,/&+]{_LETTER}+|(?<=\d):(?=\d){_LETTER}+)*|\s+|.", re.DOTALL)
# One character of a JSON string body: as it is, or as the escape that an encoder writes.
_JSON_CHARACTER = r"([^\x00-\x1f\x22\\]|\\[\x22\\bfnrt]|\\u00[01][0-9a-f])"
_TRIMMED = r"/\S(.*\S)?/s"


def leaf_grammar(schema: SchemaSection, strength: Strength, lines: Sequence[Line]) -> str | None:
    """Return the grammar of a leaf's answer over its numbered lines; null for strength `none`."""
    if strength is Strength.NONE:
        return None
    if strength is Strength.SCHEMA:
        return _schema_grammar(schema, len(lines))
    if strength is Strength.LITERAL:
        return _literal_grammar(schema, lines)
    facts = [(line.number, read_fact(schema, line.text)) for line in lines]
    return _choice_grammar(schema, strength, [(number, values) for number, values in facts if values is not None])


def reduction_grammar(schema: SchemaSection, strength: Strength, claims: Sequence[Claim]) -> str | None:
    """Return the grammar of a reduction's answer over its children's claims, numbered from 1; null for `none`.

    Under `literal` and `pattern` it chooses whole claims, each at most once, in the order in which they are numbered;
    of equal claims the first stands for all.
    """
    if strength is Strength.NONE:
        return None
    if strength is Strength.SCHEMA:
        return _schema_grammar(schema, len(claims))
    first: dict[tuple[tuple[str, str], ...], int] = {}
    for number, claim in enumerate(claims, 1):
        first.setdefault(tuple(claim.values.items()), number)
    return _choice_grammar(schema, strength, [(number, dict(values)) for values, number in first.items()])


def answer_text(claims: Sequence[tuple[Sequence[int], dict[str, str]]]) -> str:
    """Write claims, each its evidence numbers and its values, in the one form that the grammars admit."""
    return _json({"claims": [{**values, "evidence": list(numbers)} for numbers, values in claims]})


def chunks(text: str) -> tuple[str, ...]:
    """Split a line into words, whitespace runs and single other characters; joined they are the line."""
    return tuple(_CHUNK.findall(text))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _quoted(text: str) -> str:
    """Quote text for Lark: llguidance reads string literals as JSON strings."""
    return json.dumps(text).replace("\x7f", "\\u007f")


def _grammar(strength: Strength, rules: Sequence[str]) -> str:
    return "\n".join((f"// gsum grammar {GRAMMAR_VERSION} {strength.value}", *rules, ""))


def _nothing(strength: Strength) -> str:
    return _grammar(strength, [f"start: {_quoted(_OPEN + _CLOSE)}"])


def _list_of_claims(schema: SchemaSection) -> str:
    more = f' ("," claim){{0,{schema.max_claims - 1}}}' if schema.max_claims > 1 else ""
    return f"start: {_quoted(_OPEN)} (claim{more})? {_quoted(_CLOSE)}"


def _picks(items: Sequence[str], most: int) -> list[str]:
    """Return rules whose first, `pick_0_N`, admits 1 to `most` of the items, comma-separated, in strict order.

    `pick_I_P` admits up to P of the items from I on: it takes item I or passes it over. P times the number of items
    rules, each of constant size.
    """
    rules: list[str] = []
    for left in range(min(most, len(items)), 0, -1):
        for index, item in enumerate(items):
            last = index + 1 == len(items)
            more = f' ("," pick_{index + 1}_{left - 1})?' if left > 1 and not last else ""
            passed = "" if last else f" | pick_{index + 1}_{left}"
            rules.append(f"pick_{index}_{left}: {item}{more}{passed}")
    return rules


def _choice_grammar(schema: SchemaSection, strength: Strength, choices: Sequence[tuple[int, dict[str, str]]]) -> str:
    """Admit up to `max_claims` of the given claims, whole, each at most once."""
    if not choices:
        return _nothing(strength)
    most = min(schema.max_claims, len(choices))
    claims = [f"c{n}: {_quoted(_json({**values, 'evidence': [n]}))}" for n, values in choices]
    start = f"start: {_quoted(_OPEN)} pick_0_{most}? {_quoted(_CLOSE)}"
    return _grammar(strength, [start, *_picks([f"c{n}" for n, _ in choices], most), *claims])


def _schema_grammar(schema: SchemaSection, citable: int) -> str:
    """Admit the schema's JSON shape, its enumerations and the evidence numbers given, each once a claim."""
    if citable == 0:
        return _nothing(Strength.SCHEMA)
    most = min(schema.max_evidence, citable)
    numbers = _picks([_quoted(str(n)) for n in range(1, citable + 1)], most)
    claim = _claim_rule(schema, "claim", "TEXT", f"pick_0_{most}")
    text = f"TEXT: /{_JSON_CHARACTER}{{1,{schema.max_length}}}/"
    return _grammar(Strength.SCHEMA, [_list_of_claims(schema), claim, *numbers, text, *_enum_rules(schema)])


def _literal_grammar(schema: SchemaSection, lines: Sequence[Line]) -> str:
    """Admit, for each claim, one line and fields that are runs of its words."""
    bodies: list[str] = []
    for line in lines:
        terminal = _words_terminal(f"T{line.number}", chunks(line.text), schema.max_length)
        if terminal:
            bodies.append(_claim_rule(schema, f"c{line.number}", f"T{line.number}", _quoted(str(line.number))))
            bodies.extend(terminal)
    names = [body.partition(":")[0] for body in bodies if body.startswith("c")]
    if not names:
        return _nothing(Strength.LITERAL)
    claim = f"claim: {' | '.join(names)}"
    return _grammar(Strength.LITERAL, [_list_of_claims(schema), claim, *bodies, *_enum_rules(schema)])


def _words_terminal(name: str, words: Sequence[str], max_length: int) -> list[str]:
    """Return the terminal of all runs of whole words of a line that fit, trimmed; none if no word fits."""
    if not any(len(word) <= max_length and not word.isspace() for word in words):
        return []
    escaped = [_json(word)[1:-1] for word in words]
    limit = f" & /{_JSON_CHARACTER}{{1,{max_length}}}/" if sum(map(len, words)) > max_length else ""
    return [
        f"{name}: W{name[1:]} & {_TRIMMED}{limit}",
        f'W{name[1:]}: %regex {{ "substring_chunks": {json.dumps(escaped)} }}',
    ]


def _claim_rule(schema: SchemaSection, name: str, text: str, numbers: str) -> str:
    """Return the rule of one claim: the fields in order, each a `text` or of its enumeration, then its evidence."""
    parts: list[str] = []
    literal = "{"
    for index, field in enumerate(schema.fields):
        literal += f"{_json(field)}:"
        if field in schema.enums:
            parts.append(f"{_quoted(literal)} enum_{index}")
            literal = ","
        else:
            parts.append(f"{_quoted(literal + chr(34))} {text}")
            literal = '",'
    literal += '"evidence":['
    return f"{name}: {' '.join(parts)} {_quoted(literal)} {numbers} {_quoted(']}')}"


def _enum_rules(schema: SchemaSection) -> list[str]:
    return [
        f"enum_{index}: {' | '.join(_quoted(_json(value)) for value in schema.enums[field])}"
        for index, field in enumerate(schema.fields)
        if field in schema.enums
    ]
