"""Batches put into a local store that holds some of their members already, one of them damaged."""

from __future__ import annotations

import pytest
from support.store_damage import flip_inline, sql
from support.store_examples import example

from gsum.store.digests import blob_digest
from gsum.store.faults import BlobCorrupt
from gsum.store.local import open_store


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


def test_a_damaged_blob_gives_way_in_a_batch_and_its_neighbours_stay(folder):
    contents = [b"%d" % number for number in range(600)]
    with open_store(folder) as store:
        store.put_blobs(contents[:400])
        flip_inline(folder, "blob", "digest", blob_digest(contents[7]))
        digests = store.put_blobs(contents)
        assert [store.get_blob(digest) for digest in digests] == contents
    assert sql(folder, "SELECT name FROM damaged") == [(bytes.fromhex(blob_digest(contents[7])),)]


def test_a_damaged_record_gives_way_in_a_batch(folder):
    records = [example(number).action for number in range(600)]
    with open_store(folder) as store:
        store.put_records(records[:400])
        flip_inline(folder, "record", "key", records[7].key)
        with pytest.raises(BlobCorrupt):
            store.get_record(records[7].key)
        store.put_records(records[:10])
        flip_inline(folder, "record", "key", records[3].key)
        store.put_records(records)
        assert [store.get_record(record.key) for record in records] == records
    assert len(sql(folder, "SELECT name FROM damaged")) == 2


def test_a_batch_costs_no_more_statements_for_more_members(folder):
    """The point of a batch: what is new is written by as many statements as for one."""
    seen: list[str] = []
    with open_store(folder) as store:
        store._db._connection.set_trace_callback(seen.append)
        store.put_blobs([b"a"])
        alone = len([sql for sql in seen if sql.startswith(("SELECT", "BEGIN", "COMMIT"))])
        seen.clear()
        store.put_blobs([b"%d" % number for number in range(400)])
        assert len([sql for sql in seen if sql.startswith(("SELECT", "BEGIN", "COMMIT"))]) == alone
