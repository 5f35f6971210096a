"""A store that can't be written can be read, and says what is the matter when something is put."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from support.other_user import as_nobody
from support.store_damage import FaultyFileSystem
from support.store_examples import example, invocation, keep, target

from gsum.store.digests import RecordKind, preimage_of
from gsum.store.errors import ExitCode, StoreError
from gsum.store.faults import StoreReadOnly
from gsum.store.local import LocalStore, open_store

LARGE = b"large " * 20_000


@pytest.fixture
def folder():
    """Yield a folder that every user may reach, which pytest's own are not."""
    top = Path(tempfile.mkdtemp(prefix="gsum-ro-"))
    top.chmod(0o755)
    yield top / "store"
    for path in top.rglob("*"):
        path.chmod(0o755)
    shutil.rmtree(top)


def close_to_all(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)


PUTS = {
    "blob": lambda store: store.put_blob(b"new"),
    "large blob": lambda store: store.put_blob(LARGE + b"new"),
    "record": lambda store: store.put_record(preimage_of(RecordKind.ACTION, {"new": 1})),
    "kept record": lambda store: store.put_record(example(1).action),
    "generation": lambda store: store.put_generation(example(1).request.key, b"new", b"o"),
    "entry": lambda store: keep(store, example(2)),
    "target": lambda store: store.put_target(target("//d:a", example(1).action.key)),
    "begin": lambda store: store.begin(invocation("i-2")),
    "finish": lambda store: store.finish(invocation("i-2")),
    "events": lambda store: store.append_events("i-1", [b"e"]),
    "transaction": lambda store: store.transaction(durable=True).__enter__(),
}


@pytest.mark.parametrize("put", PUTS)
@pytest.mark.parametrize("by", ["flag", "file system"])
def test_every_put_into_a_read_only_store_is_refused(folder, put, by):
    with open_store(folder) as store:
        entry = keep(store, example(1))
    files = FaultyFileSystem()
    files.read_only = by == "file system"
    with open_store(folder, read_only=by == "flag", files=files) as store:
        assert not store.writable
        with pytest.raises(StoreReadOnly) as caught:
            PUTS[put](store)
        assert caught.value.exit_code is ExitCode.STORE and "--store" in (caught.value.hint or "")
        assert store.entries([entry.key]) == {entry.key: entry}
    assert not any(call.startswith(("write", "replace")) for call in files.log)


def test_a_read_only_store_sees_what_another_connection_puts(folder):
    with open_store(folder) as writer, open_store(folder, read_only=True) as reader:
        entry = keep(writer, example(1))
        assert reader.entries([entry.key]) == {entry.key: entry}


def test_no_store_is_made_where_nothing_may_be_written(folder):
    files = FaultyFileSystem()
    files.read_only = True
    with pytest.raises(StoreReadOnly):
        open_store(folder, files=files)


def reading(folder: Path) -> str:
    """Open as whoever runs this, read all, try to write, and say how it went."""
    with open_store(folder) as store:
        return f"{store.writable} {read(store)} {refused(store)}"


def read(store: LocalStore) -> int:
    entries = store.entries([example(number).action.key for number in range(5)])
    return sum(len(store.get_blob(entry.sources[0])) > 0 for entry in entries.values())


def refused(store: LocalStore) -> str:
    try:
        store.put_blob(b"new")
    except StoreError as error:
        return type(error).__name__
    return "put"


def test_a_store_without_write_permission_is_read_by_another_user(folder):
    with open_store(folder) as store:
        for number in range(5):
            keep(store, example(number, size=100_000 * (number % 2)))
    close_to_all(folder)
    assert as_nobody(lambda: reading(folder)) == "False 5 StoreReadOnly"


def test_a_store_in_use_is_read_by_a_user_without_rights(folder):
    with open_store(folder) as store:
        for number in range(5):
            keep(store, example(number))
        assert as_nobody(lambda: reading(folder)) == "False 5 StoreReadOnly"


def test_a_log_that_can_not_be_read_is_an_error_and_not_an_older_state(folder):
    with open_store(folder) as store:
        keep(store, example(1))
        left = folder.parent / "left"
        shutil.copytree(folder, left)
    (left / "store.sqlite-shm").unlink()
    assert (left / "store.sqlite-wal").stat().st_size > 0
    close_to_all(left)

    def attempt() -> str:
        try:
            with open_store(left) as store:
                return str(read(store))
        except StoreError as error:
            return f"{error.exit_code.name} {error.hint is not None}"

    assert as_nobody(attempt) == "STORE True"
