"""What a claim may copy from a line under strength `literal`: words of a declared shape, runs of a clause. Pure.

It knows the claim schema and the marks by which any text sets its parts apart (stops, colons, columns, quotation
marks), and no wording. What it leaves out a model can't claim; what it lets in may still be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from gsum.rules.config import SchemaSection

# A word is a run of letters and digits with single joiners inside it (`P-37-05`, `1,440`, `12:30`, `don't`); scripts
# written without spaces go by character; every other character stands alone.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_LETTER = rf"(?:[^\W{_UNSPACED}][\u0300-\u036f]*)"
_CHUNK = re.compile(rf"{_LETTER}+(?:[-'’.,/&+]{_LETTER}+|(?<=\d):(?=\d){_LETTER}+)*|\s+|.", re.DOTALL)
_NUMBER = re.compile(r"\d[\d.,]*")
_COLUMN = re.compile(r"\t|\s{2,}")
_PIPE, _COLON, _COMMA = "|", ":", ","
_STOPS = frozenset(".;?!–—•*")
_ENDS = frozenset(".?!")
_CLOSING = {'"': '"', "“": "”", "„": "“", "«": "»"}
_SPOKEN_WORDS = 4
"""From this many words on, what stands in quotation marks is somebody's saying and not a name or a term."""
_WORD_SHAPE = re.compile(r"(?:[\w-]|\\[dw-]|\[(?:[\w-]|\\[dw-])+\]|[+*?]|\{\d+(?:,\d*)?\})+", re.ASCII)


class Clause(msgspec.Struct, frozen=True):
    """Words that a text field may be copied from: as a run of them, or only as a `whole`.

    `named` holds, for an enumerated field, the value by which a label names this clause (`status: sealed`).
    """

    words: tuple[str, ...]
    whole: bool = False
    named: dict[str, str] = {}


class Citable(msgspec.Struct, frozen=True):
    """What a line offers a claim: words for the fields that have a word's shape, and clauses for the other texts."""

    names: dict[str, tuple[str, ...]]
    clauses: tuple[Clause, ...]


class _Part(msgspec.Struct):
    """Words between two marks; `before` and `after` are the marks, empty at the ends of the line."""

    words: tuple[str, ...]
    before: str
    after: str


def chunks(text: str) -> tuple[str, ...]:
    """Split a line into words, whitespace runs and single other characters; joined they are the line."""
    return tuple(_CHUNK.findall(text))


def word_shapes(schema: SchemaSection) -> dict[str, re.Pattern[str]]:
    r"""Return, for each text field whose group in the fact pattern can only match one word, that group's expression.

    A group counts if it is made of letters, digits, `-`, `_`, classes of these and quantifiers alone: `P-\d+-\w+`.
    """
    if schema.fact_pattern is None:
        return {}
    found = {}
    for field in schema.fields:
        group = re.search(rf"\(\?P<{field}>([^()]*)\)", schema.fact_pattern)
        if field not in schema.enums and group is not None and _WORD_SHAPE.fullmatch(group[1]):
            found[field] = re.compile(group[1])
    return found


def read_line(schema: SchemaSection, shapes: dict[str, re.Pattern[str]], text: str) -> Citable | None:
    """Return what a claim may copy from a line; null if some field of a claim finds nothing there."""
    words = _without_sayings(chunks(text))
    fitting = [word for word in words if 0 < len(word) <= schema.max_length]
    names = {field: tuple(dict.fromkeys(filter(shape.fullmatch, fitting))) for field, shape in shapes.items()}
    free = [field for field in schema.fields if field not in schema.enums and field not in shapes]
    taken = {word for found in names.values() for word in found}
    clauses = tuple(_clauses(schema, _stated(_parts(words, taken)), labels=not names)) if free else ()
    if names and any(clause.named for clause in clauses):  # the rest of such a line introduces its labels
        clauses = tuple(clause for clause in clauses if clause.named)
    if not all(names.values()) or (free and not clauses):
        return None
    return Citable(names, clauses)


def _without_sayings(words: Sequence[str]) -> list[str]:
    """Empty every quotation of several words: what a document quotes it does not say itself."""
    kept = list(words)
    opened: int | None = None
    for place, word in enumerate(words):
        if opened is not None and word == _CLOSING[words[opened]]:
            if sum(inner[0].isalnum() for inner in words[opened:place]) >= _SPOKEN_WORDS:
                kept[opened : place + 1] = [""] * (place - opened + 1)
            opened = None
        elif opened is None and word in _CLOSING:
            opened = place
    return kept


def _stated(parts: Sequence[_Part]) -> list[_Part]:
    """Leave out the sentences that ask: a question states nothing."""
    kept: list[_Part] = []
    sentence: list[_Part] = []
    for part in parts:
        sentence.append(part)
        if part.after in _ENDS:
            kept += [] if part.after == "?" else sentence
            sentence = []
    return kept + sentence


def _parts(words: Sequence[str], taken: set[str]) -> list[_Part]:
    """Split words at marks, columns and the names already taken; of several marks side by side a column counts most."""
    parts: list[_Part] = []
    before, held = "", list[str]()
    for word in (*words, ""):
        mark = _mark(word, taken)
        if mark is None:
            held.append(word)
            continue
        if any(one[0].isalnum() for one in held):
            parts.append(_Part(_trimmed(held), before, mark))
            before = mark
        else:
            if parts and parts[-1].after == " " and mark in _ENDS:
                parts[-1].after = mark
            before = _PIPE if _PIPE in (before, mark) else mark if mark != " " else before
        held = []
    return parts


def _mark(word: str, taken: set[str]) -> str | None:
    if word == "":
        return "."
    if word in taken:
        return " "
    if word == _PIPE or _COLUMN.fullmatch(word):
        return _PIPE
    return word if word == _COLON or word in _STOPS else None


def _trimmed(words: Sequence[str]) -> tuple[str, ...]:
    first, last = 0, len(words)
    while first < last and (words[first].isspace() or words[first] == _COMMA):
        first += 1
    while last > first and (words[last - 1].isspace() or words[last - 1] == _COMMA):
        last -= 1
    return tuple(words[first:last])


def _clauses(schema: SchemaSection, parts: Sequence[_Part], *, labels: bool) -> Iterator[Clause]:
    """Return the clauses of a line. A label names the next part; with `labels` texts may be copied from it too."""
    columns = any(_PIPE in (part.before, part.after) for part in parts)
    named: dict[str, str] = {}
    for part in parts:
        label = _label(schema, part) if part.after in (_COLON, _PIPE) else {}
        if label or (part.after == _COLON and not named):
            if labels:
                yield from _prose(schema, part.words[:-1] if label else part.words, {})
            named = label
            continue
        whole = bool(named) or (columns and part.after in (_PIPE, ".") and part.before in (_PIPE, ""))
        if whole and len("".join(part.words)) <= schema.max_length:
            yield Clause(part.words, whole=True, named=named)
        else:
            yield from _prose(schema, part.words, named)
        named = {}


def _label(schema: SchemaSection, part: _Part) -> dict[str, str]:
    """Return the enumerated values that a part names: by its last word before a colon, as a whole in a column."""
    said = (part.words[-1] if part.after == _COLON else "".join(part.words)).casefold()
    return {field: value for field, values in schema.enums.items() for value in values if value.casefold() == said}


def _prose(schema: SchemaSection, words: Sequence[str], named: dict[str, str]) -> Iterator[Clause]:
    """Split at commas that stand alone, and keep what has a word that fits; a label named all of it, if any did."""
    held: list[str] = []
    for word in (*words, _COMMA):
        if word != _COMMA:
            held.append(word)
            continue
        if any(one[0].isalnum() and len(one) <= schema.max_length for one in held):
            yield Clause(_joined(_trimmed(held), schema.max_length), named=named)
        held = []


def _joined(words: Sequence[str], most: int) -> tuple[str, ...]:
    """Join what is one thing: a number with the capitalised word before it or else the word after, and proper names.

    Nothing grows beyond `most` characters. A first word may be capitalised for that alone, and stays by itself.
    Such things are `Oct 31`, `27 May 1988`, `40 sheets`, `Tower Room 6`.
    """
    joined: list[str] = []
    glued = False
    for place, word in enumerate(words):
        before = words[place - 2] if place >= 2 and words[place - 1] == " " else ""
        proper = before[:1].isupper() and (word[0].isupper() or word[0].isdecimal())
        counted = _NUMBER.fullmatch(before) is not None and word[0].isalpha() and (not glued or word[0].isupper())
        whole = "".join([*joined[-2:], word])
        if before and ((proper and place > 2) or counted) and len(whole) <= most:
            joined[-2:] = [whole]
            glued = True
        else:
            joined.append(word)
            glued = glued and word.isspace()
    return tuple(joined)
