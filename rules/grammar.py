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

from gsum.rules.claims import Claim
from gsum.rules.clauses import Citable, Clause, read_line, word_shapes
from gsum.rules.config import SchemaSection, Strength
from gsum.rules.documents import Line
from gsum.rules.facts import read_fact

GRAMMAR_VERSION = 2
"""Stands in the first line of every grammar, hence in every request's bytes.

llguidance's default limits admit some 1,900 clauses a leaf (2,000 parser items a row); beyond that it refuses the
grammar, which is a failed action like any other input that is too large.
"""

_SETS = 320
"""Up to so many sets of used groups, claims stand in any order: 4 of 12, say."""
_ORDERED = 3_200
"""Up to so many rules, claims stand in the order of their groups; a longer document's may repeat."""

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

    Under `literal` and `pattern` it chooses whole claims, each at most once; of equal claims the first stands for all.
    """
    if strength is Strength.NONE:
        return None
    if strength is Strength.SCHEMA:
        return _schema_grammar(schema, len(claims))
    first: dict[tuple[tuple[str, str], ...], int] = {}
    for number, claim in enumerate(claims, 1):
        first.setdefault(tuple(claim.values.items()), number)
    return _choice_grammar(schema, strength, [(number, dict(values)) for values, number in first.items()])


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
    """Admit up to `max_claims` of the given claims, whole.

    They are about as many subjects as there are: of the claims that share their names one can be chosen where enough
    others are left; else of those that share names and enumerations; in a schema without such fields, of equal ones.
    """
    names = [field for field in schema.fields if field in word_shapes(schema)]
    texts = [field for field in schema.fields if field not in names and field not in schema.enums]
    keys: list[Sequence[str]] = [schema.fields]
    if names and texts:
        keys = [names, [field for field in schema.fields if field not in texts]]
    for key in keys:
        alike: dict[tuple[str, ...], list[str]] = {}
        for number, values in choices:
            alike.setdefault(tuple(values[field] for field in key), []).append(f"c{number}")
        if len(alike) >= schema.max_claims:
            break
    claims = [f"c{n}: {_quoted(_json({**values, 'evidence': [n]}))}" for n, values in choices]
    return _grammar(strength, [*_once_each(schema, list(alike.values())), *claims])


def _schema_grammar(schema: SchemaSection, citable: int) -> str:
    """Admit the schema's JSON shape, its enumerations and the evidence numbers given, each once a claim."""
    if citable == 0:
        return _nothing(Strength.SCHEMA)
    most = min(schema.max_evidence, citable)
    numbers = _picks([_quoted(str(n)) for n in range(1, citable + 1)], most)
    texts = dict.fromkeys(schema.fields, "TEXT")
    claim = _claim_rule(schema, "claim", texts, {}, f"pick_0_{most}")
    text = f"TEXT: /{_JSON_CHARACTER}{{1,{schema.max_length}}}/"
    return _grammar(Strength.SCHEMA, [_list_of_claims(schema), claim, *numbers, text, *_enum_rules(schema)])


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
    return _grammar(Strength.LITERAL, [*_once_each(schema, list(groups.values())), *rules])


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


def _once_each(schema: SchemaSection, groups: Sequence[Sequence[str]]) -> list[str]:
    """Return rules whose first admits up to `max_claims` claims, each of another group.

    In any order where the sets of groups already used are few; else in the groups' order; of too many groups freely.
    """
    if not groups:
        return [f"start: {_quoted(_OPEN + _CLOSE)}"]
    names = [f"g{index}" for index in range(len(groups))]
    rules = [f"{name}: {' | '.join(group)}" for name, group in zip(names, groups, strict=True)]
    most = min(schema.max_claims, len(groups))
    if sum(math.comb(len(groups), used) for used in range(most)) <= _SETS:
        return [f"start: {_quoted(_OPEN)} set_0? {_quoted(_CLOSE)}", *_sets(names, most), *rules]
    if most * len(groups) <= _ORDERED:
        return [f"start: {_quoted(_OPEN)} pick_0_{most}? {_quoted(_CLOSE)}", *_picks(names, most), *rules]
    return [_list_of_claims(schema), f"claim: {' | '.join(names)}", *rules]


def _sets(items: Sequence[str], most: int) -> list[str]:
    """Return rules whose first, `set_0`, admits 1 to `most` of the items, comma-separated, each once, in any order.

    `set_N` admits what may follow when the items of the binary number N are used.
    """
    rules: list[str] = []
    for size in range(most):
        for used in itertools.combinations(range(len(items)), size):
            mask = sum(1 << index for index in used)
            more = {i: f' ("," set_{mask | 1 << i})?' if size + 1 < most else "" for i in range(len(items))}
            left = [f"{items[i]}{more[i]}" for i in range(len(items)) if i not in used]
            rules.append(f"set_{mask}: {' | '.join(left)}")
    return rules


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
