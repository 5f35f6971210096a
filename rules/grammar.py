"""The grammar of a generation, as Lark text in llguidance's dialect, by strength. Pure.

Answers are compact JSON, `evidence` last in each claim: a small model copies a fact and then says where it stands,
but cites at random when asked for the number first. Literal text is JSON-escaped as an encoder writes it (non-ASCII as
it is), then quoted for Lark in ASCII. A grammar helps the model and proves nothing: what comes back is parsed and
checked as if there were none.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence

from gsum.rules.choice import Limit, list_rules, picks
from gsum.rules.claims import Claim
from gsum.rules.clauses import Citable, Clause, read_line, word_shapes
from gsum.rules.config import SchemaSection, Strength
from gsum.rules.documents import Line
from gsum.rules.facts import read_fact

GRAMMAR_VERSION = 3
"""Stands in the first line of every grammar, hence in every request's bytes.

llguidance's default limits admit some 1,900 clauses a leaf (2,000 parser items a row); beyond that it refuses the
grammar, which is a failed action like any other input that is too large.
"""

_NUMBERED = 500
"""Of up to so many lines, an answer under `schema` cites each once a claim and in order.

A longer chain of rules would exhaust the stack of the grammar's compiler; of more lines any numbers are admitted, and
an answer that cites one twice is INVALID.
"""
_COMBINATIONS = 256
"""So many combinations of enumerated values are told apart under `schema`."""

_OPEN, _CLOSE = '{"claims":[', "]}"
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

    Under `literal` and `pattern` it chooses whole claims, each at most once as far as a grammar of bounded size can
    hold that (`choice.list_rules`); of equal claims the first stands for all.
    """
    if strength is Strength.NONE:
        return None
    if strength is Strength.SCHEMA:
        return _schema_grammar(schema, len(claims), reduces=True)
    first: dict[tuple[tuple[str, str], ...], int] = {}
    for number, claim in enumerate(claims, 1):
        first.setdefault(tuple(claim.values.items()), number)
    chosen = [(number, dict(values)) for values, number in first.items()]
    return _choice_grammar(schema, strength, chosen, reduces=True)


def answer_text(claims: Sequence[tuple[Sequence[int], Mapping[str, str]]]) -> str:
    """Write claims, each its evidence numbers and its values, in the one form that the grammars admit."""
    return _json({"claims": [{**values, "evidence": list(numbers)} for numbers, values in claims]})


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _body(text: str) -> str:
    """Return text as the body of a JSON string."""
    return _json(text)[1:-1]


def _quoted(text: str) -> str:
    """Quote text for Lark: llguidance reads string literals as JSON strings."""
    return json.dumps(text).replace("\x7f", "\\u007f")


_START = f"start: {_quoted(_OPEN)} some? {_quoted(_CLOSE)}"
_NOTHING = f"start: {_quoted(_OPEN + _CLOSE)}"


def _grammar(strength: Strength, rules: Sequence[str]) -> str:
    return "\n".join((f"// gsum grammar {GRAMMAR_VERSION} {strength.value}", *rules, ""))


def _choice_grammar(
    schema: SchemaSection, strength: Strength, choices: Sequence[tuple[int, dict[str, str]]], *, reduces: bool = False
) -> str:
    """Admit up to `max_claims` of the given claims, whole; of claims about the same thing one, up to some 800 things.

    That is what they say by names and enumerations; in a schema without names or without other texts, all they say.
    A choice that `reduces` keeps to what the schema declares of reductions.
    """
    varied = schema.reduce_once if reduces else ()
    names = [field for field in schema.fields if field in word_shapes(schema)]
    texts = [field for field in schema.fields if field not in names and field not in schema.enums]
    about = [field for field in schema.fields if field not in texts] if names and texts else schema.fields
    told = [field for field in schema.fields if field in about or field in varied]
    groups: dict[tuple[str, ...], list[str]] = {}
    for number, values in choices:
        groups.setdefault(tuple(values[field] for field in told), []).append(f"c{number}")
    if not groups:
        return _grammar(strength, [_NOTHING])
    things = [dict(zip(told, key, strict=True)) for key in groups]
    once = _limits(things, about, 1) if len(told) > len(about) else ()
    claims = [f"c{n}: {_quoted(_json({**values, 'evidence': [n]}))}" for n, values in choices]
    attempts = [(*once, *limits) for limits in _varied(things, varied, schema.max_claims)]
    full = reduces and schema.reduce_full
    return _grammar(strength, [*_some_of(schema, list(groups.values()), attempts, full=full), *claims])


def _varied(things: Sequence[Mapping[str, str]], varied: Sequence[str], most: int) -> list[list[Limit]]:
    """Return the limits that share out the values of all varied fields, then of all but the last, and so on to none.

    No value is claimed twice; of fewer values than a list has claims, each as often as an even share is, rounded up.
    """
    limits = [_limits(things, [field], -(-most // len({values[field] for values in things}))) for field in varied]
    return [list(itertools.chain.from_iterable(limits[:count])) for count in range(len(varied), -1, -1)]


def _limits(things: Sequence[Mapping[str, str]], fields: Sequence[str], quota: int) -> list[Limit]:
    """Return the limits by which, of things with equal values of these fields, so many are listed."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for place, values in enumerate(things):
        alike.setdefault(tuple(values[field] for field in fields), []).append(place)
    return [Limit(quota, tuple(places)) for places in alike.values()]


def _schema_grammar(schema: SchemaSection, citable: int, *, reduces: bool = False) -> str:
    """Admit the schema's JSON shape, its enumerations and the evidence numbers given, each once a claim.

    Of the fields that a reduction says once, the enumerations are shared out; texts can't be. One that is full makes no
    more claims than it was given.
    """
    if citable == 0:
        return _grammar(Strength.SCHEMA, [_NOTHING])
    cited, numbers = _numbers(citable, min(schema.max_evidence, citable))
    texts = dict.fromkeys(schema.fields, "TEXT")
    text = f"TEXT: /{_JSON_CHARACTER}{{1,{schema.max_length}}}/"
    told = [field for field in schema.reduce_once if reduces and field in schema.enums]
    while math.prod(len(schema.enums[field]) for field in told) > _COMBINATIONS:
        told.pop()
    fixed = [dict(zip(told, chosen, strict=True)) for chosen in itertools.product(*(schema.enums[f] for f in told))]
    names = [f"claim_{place}" for place in range(len(fixed))]
    claims = [_claim_rule(schema, name, texts, values, cited) for name, values in zip(names, fixed, strict=True)]
    full = reduces and schema.reduce_full
    most = min(schema.max_claims, citable) if full else schema.max_claims
    attempts = _varied(fixed, told, most)
    listed = list_rules(names, most, attempts, repeated=True, full=full)
    return _grammar(Strength.SCHEMA, [_START, *listed, *claims, *numbers, text, *_enum_rules(schema)])


def _numbers(citable: int, most: int) -> tuple[str, list[str]]:
    """Return the name of the rule of up to `most` numbers from 1 to `citable`, and the rules it needs."""
    if citable <= _NUMBERED:
        return f"pick_0_{most}", picks([_quoted(str(n)) for n in range(1, citable + 1)], most)
    digits = str(citable)
    ways = [f"[1-9][0-9]{{0,{len(digits) - 2}}}", digits]
    for place, digit in enumerate(digits):
        lowest, rest = int(place == 0), len(digits) - place - 1
        if int(digit) > lowest:
            ways.append(f"{digits[:place]}[{lowest}-{int(digit) - 1}]" + (f"[0-9]{{{rest}}}" if rest else ""))
    return "numbers", [f'numbers: NUMBER ("," NUMBER){{0,{most - 1}}}', f"NUMBER: /{'|'.join(ways)}/"]


def _literal_grammar(schema: SchemaSection, lines: Sequence[Line]) -> str:
    """Admit claims whose texts are copied from the line they cite; of claims about the same thing one."""
    shapes = word_shapes(schema)
    rules: list[str] = []
    groups: dict[tuple[str, ...], list[str]] = {}
    for line in lines:
        found = read_line(schema, shapes, line.text)
        if found is not None:
            rules += _text_rules(schema, line.number, found)
            for about, name, rule in _line_claims(schema, line.number, found):
                groups.setdefault(about, []).append(name)
                rules.append(rule)
    return _grammar(Strength.LITERAL, [*_some_of(schema, list(groups.values())), *rules])


def _some_of(
    schema: SchemaSection,
    groups: Sequence[Sequence[str]],
    attempts: Sequence[Sequence[Limit]] = ((),),
    *,
    full: bool = False,
) -> list[str]:
    """Return rules whose first admits up to `max_claims` claims, each of another group."""
    if not groups:
        return [_NOTHING]
    names = [f"g{index}" for index in range(len(groups))]
    rules = [f"{name}: {' | '.join(group)}" for name, group in zip(names, groups, strict=True)]
    return [_START, *list_rules(names, schema.max_claims, attempts, full=full), *rules]


def _text_rules(schema: SchemaSection, number: int, found: Citable) -> list[str]:
    """Return the rules of a line's clauses, and of any of them."""
    rules = [rule for k, clause in enumerate(found.clauses) for rule in _clause_rules(f"{number}_{k}", clause, schema)]
    if found.clauses:
        rules.append(f"a{number}: {' | '.join(f't{number}_{k}' for k in range(len(found.clauses)))}")
    return rules


def _line_claims(schema: SchemaSection, number: int, found: Citable) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield the claims that a line admits: what each is about, the name of its rule and the rule.

    A claim has one of the line's words for each field of a word's shape, one of the admitted values for each
    enumeration (the one by which a label names the clause), and the clause for its last other text. Those before are
    of any clause of the line. It is about its words and enumerations; in a schema without such words, about the clause.
    """
    free = [field for field in schema.fields if field not in schema.enums and field not in found.names]
    for k, clause in enumerate(found.clauses or [Clause(())]):
        choices = [
            found.names.get(field) or ([clause.named[field]] if field in clause.named else schema.enums[field])
            for field in schema.fields
            if field not in free
        ]
        texts = dict.fromkeys(free, f"a{number}") | ({free[-1]: f"t{number}_{k}"} if free else {})
        for place, chosen in enumerate(itertools.product(*choices)):
            fixed = dict(zip((field for field in schema.fields if field not in free), chosen, strict=True))
            about = chosen if found.names else (*chosen, str(number), str(k))
            name = f"c{number}_{k}_{place}"
            yield about, name, _claim_rule(schema, name, texts, fixed, _quoted(str(number)))


def _clause_rules(name: str, clause: Clause, schema: SchemaSection) -> list[str]:
    """Return the rule of a clause's text and its terminals: as a whole, or all runs of whole words that fit."""
    if clause.whole:
        return [f"t{name}: {_quoted(_body(''.join(clause.words)))}"]
    escaped = [_body(word) for word in clause.words]
    long = sum(map(len, clause.words)) > schema.max_length
    limit = f" & /{_JSON_CHARACTER}{{1,{schema.max_length}}}/" if long else ""
    return [
        f"t{name}: T{name}",
        f"T{name}: W{name} & {_TRIMMED}{limit}",
        f'W{name}: %regex {{ "substring_chunks": {json.dumps(escaped)} }}',
    ]


def _claim_rule(schema: SchemaSection, name: str, texts: Mapping[str, str], fixed: Mapping[str, str], ends: str) -> str:
    """Return the rule of one claim: each field as fixed, of its enumeration, or by its text's rule; its evidence."""
    parts: list[str] = []
    literal = "{"
    for index, field in enumerate(schema.fields):
        literal += f"{_json(field)}:"
        if field in fixed:
            literal += f"{_json(fixed[field])},"
        elif field in schema.enums:
            parts.append(f"{_quoted(literal)} enum_{index}")
            literal = ","
        else:
            parts.append(f"{_quoted(literal + chr(34))} {texts[field]}")
            literal = '",'
    literal += '"evidence":['
    return f"{name}: {' '.join(parts)} {_quoted(literal)} {ends} {_quoted(']}')}"


def _enum_rules(schema: SchemaSection) -> list[str]:
    return [
        f"enum_{index}: {' | '.join(_quoted(_json(value)) for value in schema.enums[field])}"
        for index, field in enumerate(schema.fields)
        if field in schema.enums
    ]
