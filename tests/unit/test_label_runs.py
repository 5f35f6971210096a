"""Labels of a build's record: packed by what they have in common, and records of the form before."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support import store_examples

from gsum.store.label_runs import LabelRun, count_labels, pack_labels, unpack_labels
from gsum.store.records import InvocationRecord

PARTS = ("leaf-00", "leaf-01", "reduce-00", "root")
texts = st.lists(st.text(st.sampled_from("/ab:é"), max_size=6), max_size=12)


@given(texts)
def test_any_list_of_texts_comes_back_in_its_order(labels):
    runs = pack_labels(labels)
    assert unpack_labels(runs) == tuple(labels)
    assert count_labels(runs) == len(labels)


def test_dossiers_of_one_shape_name_its_parts_once():
    labels = [f"//dossier:S-{number}/{part}" for number in range(3) for part in PARTS]
    heads = tuple(f"//dossier:S-{number}/" for number in range(3))
    assert pack_labels(labels) == (LabelRun(PARTS, heads),)


def test_a_record_of_the_form_before_still_tells_its_labels():
    record = store_examples.invocation("a")
    document = msgspec.to_builtins(record)
    del document["runs"]
    document |= {"schema": 1, "lists": {"generated": ["//d:b/root", "//d:a/root"], "failed": []}}
    read = msgspec.json.decode(msgspec.json.encode(document), type=InvocationRecord)
    assert read.labels("generated") == ("//d:b/root", "//d:a/root")
    assert (read.count("generated"), read.count("failed"), read.count("skipped")) == (2, 0, 0)
