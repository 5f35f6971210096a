"""Canonical bytes equal those of the `rfc8785` library, for all that keys may hold."""

from __future__ import annotations

import enum
import json

import msgspec
import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gsum.store.canonical import canonical_json

LIMIT = 2**53 - 1
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
CONTROL = st.text(st.characters(max_codepoint=0xFF), max_size=12)
PLANES = st.text(
    st.sampled_from("\x00\x1f\x7f\x80\x85\u2028\u2029\ud7ff\ue000\ufeff\uffff\U00010000\U0001f600\U0010ffff\"\\/<>&'"),
    max_size=12,
)
NAMES = st.text(st.characters(max_codepoint=0x7F), max_size=8)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-LIMIT, LIMIT), TEXTS, CONTROL, PLANES)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=6), max_leaves=25
)


class Colour(enum.Enum):
    """An enum as records hold them."""

    RED = "red"


class Inner(msgspec.Struct, frozen=True):
    """A struct whose fields are not in sorted order."""

    zeta: str
    alpha: int
    middle: Colour = Colour.RED


class Outer(msgspec.Struct, frozen=True):
    """A struct of structs."""

    texts: tuple[str, ...]
    inner: Inner
    by_name: dict[str, Inner]
    absent: str | None = None


@settings(max_examples=400, deadline=None)
@given(VALUES)
@example({"b": 1, "a": {"": None, "\x00": [], "~": {}}})
@example([LIMIT, -LIMIT, 0])
def test_values_are_written_as_rfc_8785_says(value):
    assert canonical_json(value) == rfc8785.dumps(value)


@settings(max_examples=100, deadline=None)
@given(st.tuples(TEXTS, CONTROL, PLANES), st.integers(-LIMIT, LIMIT), st.dictionaries(NAMES, TEXTS, max_size=4))
def test_structs_are_written_as_the_objects_they_stand_for(texts, number, names):
    inner = Inner(zeta=texts[0], alpha=number)
    record = Outer(texts=texts, inner=inner, by_name={name: Inner(text, number) for name, text in names.items()})
    assert canonical_json(record) == rfc8785.dumps(msgspec.to_builtins(record))


@settings(max_examples=200, deadline=None)
@given(VALUES, VALUES)
def test_different_values_have_different_bytes(one, other):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (canonical_json(one) == canonical_json(other)) == same


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(NAMES, SCALARS, min_size=2, max_size=6))
def test_the_order_of_insertion_does_not_count(value):
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)


def test_absent_fields_are_explicit_nulls_and_the_bytes_are_pinned():
    record = Outer(texts=("é\n", "\u2028"), inner=Inner("z", -5), by_name={})
    assert canonical_json(record) == (
        b'{"absent":null,"by_name":{},"inner":{"alpha":-5,"middle":"red","zeta":"z"},'
        b'"texts":["\xc3\xa9\\n","\xe2\x80\xa8"]}'
    )


@pytest.mark.parametrize("value", [object(), {1, 2, object()}, lambda: None])
def test_what_json_has_no_form_for_is_refused(value):
    with pytest.raises(TypeError):
        canonical_json(value)
