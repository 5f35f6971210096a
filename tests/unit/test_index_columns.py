"""The index's columns hold what a mapping would: told rows, kept rows, in the order of names; and survive encoding."""

from __future__ import annotations

from array import array

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsum.engine.index.encoding import decode_index, encode_index
from gsum.engine.index.records import Declarations, Index, Served, Source, Watched, empty_source, mark_of, parts_of
from gsum.engine.index.telling import kept_slots
from gsum.store.ledger import pack_few

NAMES = st.sets(st.sampled_from([f"d{number:02}" for number in range(12)]))


def watched(name: str, count: int, seed: int) -> Watched:
    paths = [f"docs/{name}/{number}-{seed}" for number in range(count)]
    prints = b"".join(f"{path:>32}".encode()[-32:] for path in paths)
    return Watched(paths, prints, bytes(reversed(prints)))


ROWS = st.dictionaries(
    st.sampled_from([f"d{number:02}" for number in range(12)]),
    st.none() | st.tuples(st.integers(1, 3), st.integers(0, 9)),
)


def contents(source: Source) -> dict[str, tuple[list[str], bytes, bytes]]:
    found = {name: source.watched(name) for name in source.names}
    return {name: (list(one.paths), one.prints, one.digests) for name, one in found.items() if one is not None}


@given(looks=st.lists(st.tuples(NAMES, ROWS), max_size=5))
def test_columns_are_told_as_a_mapping_would_be(looks):
    source, expected = empty_source(), {}
    for names, rows in looks:
        told = {name: row and watched(name, *row) for name, row in rows.items()}
        source = source.told(b"f", sorted(names), told)
        expected = {name: one for name, one in expected.items() if name in names and name not in told}
        expected |= {
            name: (list(row.paths), row.prints, row.digests)
            for name, row in told.items()
            if row is not None and name in names
        }
        assert source.names == sorted(names)
        assert contents(source) == expected
        assert len(source.paths) * 32 == len(source.prints) == len(source.digests) == sum(source.counts) * 32


@given(names=NAMES, rows=ROWS, root=st.text(), shapes=st.lists(st.lists(st.text()).map(tuple)))
def test_an_index_survives_encoding(names, rows, root, shapes):
    told = {name: row and watched(name, *row) for name, row in rows.items()}
    source = empty_source().told(b"\0" * 32, sorted(names), told)
    served = Served(b"d" * 32, shapes, array("I", range(len(source.names))))
    declarations = Declarations(("BUILD.toml",), b"p" * 32, b"c", "t", {"p": ("s", "docs")}, {"p": b"x"})
    index = Index("epoch", "id", root, "who\ud800", declarations, {"s": source}, {"p": served})
    found = decode_index(encode_index(index))
    assert found is not None
    assert (found.root, found.principal, found.declarations) == (root, "who\ud800", declarations)
    assert contents(found.sources["s"]) == contents(source)
    assert found.sources["s"].names == source.names
    assert (found.served["p"].shapes, found.served["p"].marks) == (shapes, served.marks)


@pytest.mark.parametrize(("part", "every_part"), [("root", False), ("root", True), (None, True)])
def test_a_mark_covers_what_it_was_made_for(part, every_part):
    served = Served(b"", [("a",), ("b", "root")], array("I"))
    assert parts_of(served, mark_of(1, every_part=every_part), part) == ("b", "root")
    assert parts_of(served, mark_of(0, every_part=every_part), part) == ("a",)
    assert parts_of(served, mark_of(1, every_part=False), None) is None
    assert parts_of(served, mark_of(1, every_part=True), "leaf-00") is None
    assert parts_of(served, 0, part) is None


def test_marks_stay_with_their_dossiers_when_others_come_and_go():
    def source(*names: str) -> Source:
        return empty_source().told(b"", list(names), {})

    index = Index("", "", "", "", None, {"s": source("a", "b", "c")}, {"p": Served(b"", [], array("I", [1, 2, 3]))})
    kept = kept_slots(index, {"p": "s"}, {"s": source("b", "bb", "c", "d")}, {"s": {"c"}})
    assert list(kept["p"].marks) == [2, 0, 0, 0]


@pytest.mark.parametrize("length", [0, 1, 255, 256, 65_535, 65_536])
def test_few_byte_strings_are_packed_as_msgpack(length):
    items = [b"x" * length, b""]
    assert msgspec.msgpack.decode(pack_few(items), type=list[bytes]) == items
    with pytest.raises(ValueError, match="not few"):
        pack_few([b""] * 16)
