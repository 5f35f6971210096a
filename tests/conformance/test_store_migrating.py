"""A store of an older schema is brought up to the present one when it is opened for writing: whole, or not at all."""

from __future__ import annotations

import pytest
from support import schema_1
from support.store_damage import flip_preimage, sql
from support.store_examples import example, keep

from gsum.store import migrating
from gsum.store.digests import blob_digest
from gsum.store.errors import ExitCode
from gsum.store.faults import BlobCorrupt, StoreOlder
from gsum.store.local import open_store
from gsum.store.schema import DDL, STORE_SCHEMA

LABEL = "//dossier:S-010/root"
WHOLES = [example(number) for number in (1, 2, 3)]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "store"
    schema_1.make_store(folder, WHOLES, [(LABEL, WHOLES[1]), (LABEL, WHOLES[0]), ("//dossier:S-010/x", WHOLES[2])])
    return folder


def version(folder):
    return sql(folder, "PRAGMA user_version")[0][0]


def test_all_that_was_kept_is_still_served(folder):
    ((identity,),) = sql(folder, "SELECT hex(id) FROM identity")
    with open_store(folder) as store:
        assert store.epoch() == f"{identity}-0"
        found = store.entries([whole.action.key for whole in WHOLES])
        assert {key: entry.result for key, entry in found.items()} == {
            whole.action.key: blob_digest(whole.result) for whole in WHOLES
        }
        for whole in WHOLES:
            assert store.generation_for(whole.request.key) == blob_digest(whole.generation)
            assert store.observations(whole.request.key) == [whole.observation]
            for preimage in (whole.action, whole.request, whole.perimeter):
                assert store.get_record(preimage.key) == preimage
        history = store.target_history(LABEL, "reader-demo")
        assert [ref.key for ref in history] == [WHOLES[0].action.key, WHOLES[1].action.key]
    assert version(folder) == STORE_SCHEMA
    made = sql(folder, "SELECT type, name, tbl_name FROM sqlite_master ORDER BY name")
    with open_store(folder.with_name("new")):
        assert made == sql(folder.with_name("new"), "SELECT type, name, tbl_name FROM sqlite_master ORDER BY name")
    changed = sql(folder, "SELECT sql FROM sqlite_master WHERE tbl_name IN ('entry', 'execution', 'target')")
    assert {statement for (statement,) in changed if statement is not None} <= set(DDL)


def test_what_is_put_afterwards_is_newer_and_what_is_lost_is_noticed(folder):
    with open_store(folder) as store:
        new = keep(store, example(4))
        store.put_target(store.latest(new.label, "reader-demo", "fake"))
        assert store.latest(new.label, "reader-demo", "fake").key == new.key
        again = keep(store, WHOLES[1])
        assert store.entries([again.key])[again.key].label == again.label
        before = store.epoch()
        flip_preimage(folder, WHOLES[0].action.key)
        with pytest.raises(BlobCorrupt):
            store.get_record(WHOLES[0].action.key)
        assert store.epoch() != before
        assert store.entries([WHOLES[0].action.key]) == {}


@pytest.mark.parametrize("failing", range(7))
def test_a_migration_that_fails_leaves_the_store_as_it_was(folder, failing, monkeypatch):
    before = sql(folder, "SELECT sql FROM sqlite_master"), sql(folder, "SELECT * FROM entry ORDER BY key")

    class Connection:
        """Fails at one of the statements."""

        def __init__(self, connection):
            self.connection, self.left = connection, 3 * failing + 1

        def execute(self, statement):
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
            return self.connection.execute(statement)

    real = migrating.migrate
    monkeypatch.setattr(migrating, "migrate", lambda connection, found: real(Connection(connection), found))
    with pytest.raises(KeyboardInterrupt):
        open_store(folder)
    assert version(folder) == 1
    assert (sql(folder, "SELECT sql FROM sqlite_master"), sql(folder, "SELECT * FROM entry ORDER BY key")) == before
    monkeypatch.setattr(migrating, "migrate", real)
    with open_store(folder) as store:
        assert len(store.entries([whole.action.key for whole in WHOLES])) == len(WHOLES)


def test_an_older_store_that_may_not_be_written_is_refused_and_left_alone(folder):
    with pytest.raises(StoreOlder) as caught:
        open_store(folder, read_only=True)
    assert caught.value.exit_code is ExitCode.STORE
    assert "build" in str(caught.value.hint)
    assert version(folder) == 1
