"""Damaged declarations: whatever is cut, swapped or inserted, the answer is a value or a placed error."""

from __future__ import annotations

import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st
from support.workspaces import make_dossier, make_workspace

from gsum.rules.config import BuildFile
from gsum.rules.locate import Point, find
from gsum.rules.manifest import parse_manifest
from gsum.rules.toml import DeclarationError, TomlText, decode, dotted

JUNK = st.sampled_from(
    [
        *'= [ ] [[ { } " . a 1 -1 1.5 true é𝄞 # , """ \\ schema 2026-11-30 nan =1= {a=1} [package.dossier]'.split(),  # noqa: SIM905
        *("", "\n", "\r\n", "\t", "\x00", "[x]\n", "[[package]]\n"),
    ]
)


@st.composite
def damaged(draw, text: str) -> str:
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        length = draw(st.one_of(st.just(0), st.integers(0, 12)))
        text = text[:start] + draw(JUNK) + text[start + length :]
    return text


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_damaged_build_file_gives_a_value_or_an_error_at_a_place(data, tmp_path_factory):
    text = data.draw(damaged(_build_text(tmp_path_factory)))
    _check(text, lambda: decode(TomlText("BUILD.toml", text), BuildFile))


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_damaged_manifest_gives_a_value_or_an_error_at_a_place(data, tmp_path_factory):
    text = data.draw(damaged(_manifest_text(tmp_path_factory)))
    _check(text, lambda: parse_manifest(TomlText("dossier.toml", text), "corpus", "S-1"))


def test_every_entry_of_a_build_file_is_found(tmp_path_factory):
    """The locator and tomllib read the same document: each leaf is found, and its text is its value."""
    text = _build_text(tmp_path_factory)
    leaves = list(_leaves((), tomllib.loads(text)))
    assert len(leaves) > 30
    for path, value in leaves:
        span = find(text, path)
        shown = text.split("\n")[span.line - 1][span.column - 1 : span.column - 1 + span.length]
        assert tomllib.loads(f"v = {shown}")["v"] == value, dotted(path)
        key = find(text, path, Point.KEY)
        assert (key.line, key.column) <= (span.line, span.column)


def _leaves(path, value):
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _leaves((*path, key), below)
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from _leaves((*path, number), below)
    else:
        yield path, value


def _check(text, call):
    try:
        call()
    except DeclarationError as error:
        assert error.message
        assert error.excerpt is not None
        lines = text.split("\n")
        assert 1 <= error.facts["line"] <= len(lines)
        assert 1 <= error.facts["column"] <= len(lines[error.facts["line"] - 1]) + 1


_TEXTS: dict[str, str] = {}


def _build_text(factory) -> str:
    if "build" not in _TEXTS:
        _TEXTS["build"] = (make_workspace(factory.mktemp("w") / "w") / "BUILD.toml").read_text()
    return _TEXTS["build"]


def _manifest_text(factory) -> str:
    if "manifest" not in _TEXTS:
        _TEXTS["manifest"] = (make_dossier(factory.mktemp("w"), "S-1", 2) / "dossier.toml").read_text()
    return _TEXTS["manifest"]
