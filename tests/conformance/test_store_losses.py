"""Losses that no statement makes: what vanished is a loss once it is found, and the next build mends it."""

from __future__ import annotations

import msgspec
import pytest
from support import schema_1
from support.store_damage import flip_inline, sql
from support.store_examples import example, keep, keep_apart, target

from gsum.store.api import Built, Made
from gsum.store.digests import blob_digest
from gsum.store.errors import ExitCode
from gsum.store.faults import BlobCorrupt, BlobMissing, StoreDamaged
from gsum.store.local import open_store

WHOLE = example(1)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


def without_trigger(folder, statement):
    """Let something vanish as damage makes it: the store's own statements would have counted it."""
    ((made, name),) = sql(folder, f"SELECT sql, name FROM sqlite_master WHERE name = '{statement.split()[2]}_lost'")
    sql(folder, f"DROP TRIGGER {name}")
    sql(folder, statement)
    sql(folder, made)


@pytest.mark.parametrize("lost", ["result", "generation", "source"])
def test_a_blob_that_vanished_is_no_part_of_a_hit_once_somebody_has_missed_it(folder, lost):
    with open_store(folder) as store:
        keep(store, WHOLE)
        digest = blob_digest(getattr(WHOLE, lost))
        without_trigger(folder, f"DELETE FROM blob WHERE hex(digest) = upper('{digest}')")
        before = store.epoch()
        assert WHOLE.action.key in store.entries([WHOLE.action.key]), "nobody has looked"
        with pytest.raises(BlobMissing):
            store.get_blob(digest)
        assert store.epoch() != before
        assert store.entries([WHOLE.action.key]) == {}
        keep(store, WHOLE)
        assert WHOLE.action.key in store.entries([WHOLE.action.key])


@pytest.mark.parametrize("lost", ["action", "request"])
def test_a_preimage_that_vanished_is_no_part_of_a_hit_once_somebody_has_missed_it(folder, lost):
    with open_store(folder) as store:
        keep_apart(store, WHOLE)
        key = getattr(WHOLE, lost).key
        without_trigger(folder, f"DELETE FROM record WHERE hex(key) = upper('{key}')")
        before = store.epoch()
        with pytest.raises(BlobMissing):
            store.get_record(key)
        assert store.epoch() != before
        assert store.entries([WHOLE.action.key]) == {}


def test_what_nobody_refers_to_is_missed_at_no_cost(folder):
    with open_store(folder) as store:
        keep(store, WHOLE)
        before = store.epoch()
        for miss in (lambda: store.get_blob(blob_digest(b"never")), lambda: store.get_record(example(2).action.key)):
            with pytest.raises(BlobMissing):
                miss()
        assert store.epoch() == before


def test_an_entry_whose_row_is_damaged_is_a_loss_once_it_is_found(folder):
    with open_store(folder) as store:
        entry = keep(store, WHOLE)
        sql(folder, "UPDATE entry SET seal = x'00'")
        before = store.epoch()
        assert store.entries([entry.key]) == {}
        assert store.epoch() != before
        keep(store, WHOLE)
        after = store.epoch()
        assert entry.key in store.entries([entry.key])
        assert store.epoch() == after


def test_an_entry_says_that_it_is_whole_only_under_its_seal(folder):
    with open_store(folder) as store:
        store.put_record(WHOLE.action)
        absent = blob_digest(b"never")
        store.put_entry(WHOLE.entry(absent, absent, absent))
        sql(folder, "UPDATE entry SET whole = 1")
        assert store.entries([WHOLE.action.key]) == {}


def test_a_damaged_perimeter_that_stands_in_a_row_of_its_own_is_set_aside(folder):
    perimeter = WHOLE.perimeter
    with open_store(folder) as store:
        store.put_record(perimeter)
        flip_inline(folder, "record", "key", perimeter.key)
        with pytest.raises(BlobCorrupt) as caught:
            store.get_record(perimeter.key)
        assert caught.value.set_aside
        store.put_record(perimeter)
        flip_inline(folder, "record", "key", perimeter.key)
        with store.transaction():
            store.put_record(perimeter)
        assert store.get_record(perimeter.key) == perimeter
    assert sql(folder, "SELECT what FROM damaged") == [("record perimeter",)] * 2


def test_a_record_whose_kind_is_of_another_type_still_lets_generations_be_kept(folder):
    with open_store(folder) as store:
        store.put_record(WHOLE.request)
        sql(folder, "UPDATE record SET kind = CAST(kind AS BLOB)")
        put = store.put_generation(WHOLE.request.key, WHOLE.generation, WHOLE.observation)
        assert store.generation_for(WHOLE.request.key) == put.digest


def test_a_number_past_all_bounds_is_damage(folder):
    with open_store(folder) as store:
        keep(store, WHOLE)
        sql(folder, f"UPDATE execution SET number = {2**63 - 1}")
        with pytest.raises(StoreDamaged) as caught:
            store.put_generations([Made(WHOLE.request, b"another", b"{}")])
        assert caught.value.exit_code is ExitCode.DAMAGE


def test_a_label_that_was_built_as_a_key_twice_is_as_new_as_the_second_time(store):
    kept = store.put_blob(b"kept")
    old, other = example(0), example(1)

    def built(result, label):
        entry = msgspec.structs.replace(old.entry(result, kept, kept), label=label, request=None, generation=None)
        return Built(entry, old.action, old.perimeter, "reader", "tool")

    store.put_targets([target("a", whole.action.key, toolchain="tool", principal="reader") for whole in (old, other)])
    store.put_built([built(blob_digest(b"lost"), "a")])
    assert [ref.key for ref in store.target_history("a", "reader")] == [old.action.key, other.action.key]
    store.put_built([built(kept, "b")])  # the entry of `a` gives way, and what `a` was built as stays
    assert [ref.key for ref in store.target_history("a", "reader")] == [old.action.key, other.action.key]
    assert store.latest("a", "reader", "tool").key == old.action.key


@pytest.mark.parametrize(
    ("table", "spoil"),
    [
        ("entry", "sources = x'0011'"),
        ("entry", "result = x'00'"),
        ("execution", "generation = x'00'"),
        ("target", "key = x'00'"),
    ],
)
def test_a_row_of_an_older_store_that_fits_no_more_is_set_aside_and_the_others_are_served(folder, table, spoil):
    wholes = [example(number) for number in (1, 2, 3)]
    schema_1.make_store(folder, wholes, [(f"//d:{number}/root", whole) for number, whole in enumerate(wholes)])
    key = {"entry": "key", "execution": "request", "target": "label"}[table]
    ((least,),) = sql(folder, f"SELECT quote(min({key})) FROM {table}")
    sql(folder, f"UPDATE {table} SET {spoil} WHERE {key} = {least}", checked=False)
    with open_store(folder) as store:
        assert len(store.entries([whole.action.key for whole in wholes])) == (3 if table == "target" else 2)
        assert not store.epoch().endswith("-0")
        for whole in wholes:
            keep(store, whole)
        assert len(store.entries([whole.action.key for whole in wholes])) == 3
    assert sql(folder, "SELECT what FROM damaged ORDER BY number")[0] == (f"old {table}",)
