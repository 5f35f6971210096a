"""One SQLite connection: statements, transactions and the translation of every `sqlite3` error.

It knows no table; opening, pragmas and schema versions are `store.opening`'s. One connection serves one thread of
one process.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from weakref import ref

from gsum.store.errors import StoreError
from gsum.store.faults import (
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreInputOutput,
    StoreMisused,
    StoreReadOnly,
    from_os_error,
)

BUSY_SECONDS = 30.0
CHUNK = 500
"""Most parameters of one statement: old SQLite builds admit 999."""

Row = tuple[Any, ...]
Item = TypeVar("Item", bytes, str)

FAILURES = (sqlite3.Error, UnicodeDecodeError, OverflowError)
"""What a statement may raise: the second when SQLite quotes damaged bytes in a message, the last when a damaged number
is counted on.
"""

_BY_CODE: dict[int, Callable[[Path, str], StoreError]] = {
    sqlite3.SQLITE_FULL: StoreFull,
    sqlite3.SQLITE_READONLY: StoreReadOnly,
    sqlite3.SQLITE_CORRUPT: StoreDamaged,
    sqlite3.SQLITE_NOTADB: StoreDamaged,
    # What is put fits: what does not is counted on from a damaged row.
    sqlite3.SQLITE_CONSTRAINT: StoreDamaged,
    # Our statements are fixed: what does not compile is a damaged list of tables.
    sqlite3.SQLITE_ERROR: StoreDamaged,
    sqlite3.SQLITE_BUSY: lambda path, _: StoreBusy(path, BUSY_SECONDS),
    sqlite3.SQLITE_LOCKED: lambda path, _: StoreBusy(path, BUSY_SECONDS),
}
_BY_EXTENDED_CODE: dict[int, Callable[[Path, str], StoreError]] = {
    sqlite3.SQLITE_IOERR_SHORT_READ: StoreDamaged,
    sqlite3.SQLITE_IOERR_SHMSIZE: StoreFull,
}


def from_sqlite_error(error: sqlite3.Error | UnicodeDecodeError | OverflowError, path: Path) -> StoreError:
    """Translate an error of SQLite, by its (extended) result code."""
    if isinstance(error, UnicodeDecodeError):
        return StoreDamaged(path, "a message about it can't be read")
    if isinstance(error, OverflowError):
        return StoreDamaged(path, "a number in it is past all bounds")
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is None:  # raised by Python's module itself: closed connection, foreign thread
        return StoreMisused("the store was misused", facts={"store": path, "reason": error})
    make = _BY_EXTENDED_CODE.get(code) or _BY_CODE.get(code & 0xFF) or StoreInputOutput
    return make(path, f"{error} ({error.sqlite_errorname})")


def chunks(items: Iterable[Item]) -> Iterator[tuple[Item, ...]]:
    """Cut distinct items into tuples short enough for one statement."""
    distinct = list(dict.fromkeys(items))
    for start in range(0, len(distinct), CHUNK):
        yield tuple(distinct[start : start + CHUNK])


def hex_name(value: object) -> str:
    """Return a kept digest or key in hex; a damaged one of another type names nothing."""
    return value.hex() if isinstance(value, bytes) else ""


def marks(items: Sequence[object]) -> str:
    """Return as many parameter marks as there are items."""
    return ",".join("?" * len(items))


class Database:
    """An open database. `before_durable` is called before each durable commit, to sync what lies beside it."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, *, writable: bool, before_durable: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._before_durable = before_durable
        self._process = os.getpid()
        self._outermost: ref[_Block] | None = None
        self._afterwards: list[Callable[[], None]] = []
        self.path = path
        self.writable = writable

    @property
    def in_transaction(self) -> bool:
        """Tell whether a transaction block is being run."""
        return self._outer() is not None

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Return all rows of a statement."""
        self._check_process()
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except FAILURES as error:
            raise from_sqlite_error(error, self.path) from error

    def query_in(self, sql: str, items: Iterable[bytes]) -> Iterator[Row]:
        """Yield the rows of a statement whose `{}` stands for a list of any length."""
        for chunk in chunks(items):
            yield from self.query(sql.format(marks(chunk)), chunk)

    def one(self, sql: str, parameters: Sequence[object] = ()) -> Row | None:
        """Return the first row of a statement."""
        rows = self.query(sql, parameters)
        return rows[0] if rows else None

    def write(self, sql: str, parameters: Sequence[object] = ()) -> int:
        """Run a writing statement and return how many rows it touched; only within a transaction block."""
        if not self.in_transaction:
            raise StoreMisused("a write needs a transaction", facts={"store": self.path})
        self._check_alive()
        return self._execute(sql, parameters)

    def write_many(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        """Run a writing statement for each row and return how many rows were touched in all; as `write` otherwise."""
        if not self.in_transaction:
            raise StoreMisused("a write needs a transaction", facts={"store": self.path})
        self._check_alive()
        try:
            return self._connection.executemany(sql, rows).rowcount if rows else 0
        except FAILURES as error:
            raise from_sqlite_error(error, self.path) from error
        except OSError as error:
            raise from_os_error(error, self.path) from error

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[None]:
        """Keep all writes of the block or none. An inner block joins the outer one, and makes it durable if it is."""
        return _Block(self, durable)

    def together(self) -> AbstractContextManager[None]:
        """Run the writes of one put: in the transaction under way, which keeps all or none, else in one of its own."""
        return nullcontext() if self.in_transaction else self.transaction()

    def require_writable(self) -> None:
        """Raise `StoreReadOnly` unless the store may be written."""
        if not self.writable:
            raise StoreReadOnly(self.path, "it was opened for reading")

    def afterwards(self, action: Callable[[], None]) -> None:
        """Run an action once the outermost block has ended, well or not. Its store errors are dropped."""
        self._afterwards.append(action)

    def close(self) -> None:
        """Close the connection."""
        self._check_process()
        try:
            self._connection.close()
        except FAILURES as error:
            raise from_sqlite_error(error, self.path) from error

    def _enter(self, block: _Block) -> None:
        self._check_process()
        outer = self._outer()
        if outer is not None:
            self._check_alive()
            outer.durable = outer.durable or block.durable
            self._execute("SAVEPOINT inner_block")
            return
        self.require_writable()
        self._roll_back()  # what an interrupted block may have left
        block.outermost = True
        self._outermost = ref(block)
        try:
            # The pragma is refused inside a transaction: it goes first.
            self._execute(f"PRAGMA synchronous={'FULL' if block.durable else 'NORMAL'}")
            self._execute("BEGIN IMMEDIATE")
        except BaseException:
            block.ended = True
            self._roll_back()
            raise

    def _leave_inner(self, failed: bool) -> None:
        if not self._connection.in_transaction:
            return
        if failed:
            self._execute("ROLLBACK TO inner_block")
        self._execute("RELEASE inner_block")

    def _leave_outermost(self, block: _Block, full: bool, failed: bool) -> None:
        try:
            if not failed:
                self._check_alive()
                if block.durable:
                    self._before_durable()
                block.ended = True
                self._execute("COMMIT")
        finally:
            block.ended = True
            self._roll_back()
            self._run_afterwards()
        if block.durable and not failed and not full:
            self._sync_log()

    def _outer(self) -> _Block | None:
        """Return the outermost block under way; one that an interrupt kept from ending is none once it is forgotten."""
        block = None if self._outermost is None else self._outermost()
        return None if block is None or block.ended else block

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._execute("ROLLBACK")

    def _sync_log(self) -> None:
        """Make an ordinary commit durable after the fact: a full one syncs the log with all that stands in it."""
        self._execute("PRAGMA synchronous=FULL")
        [(version,)] = self.query("PRAGMA user_version")
        self._execute(f"PRAGMA user_version={version}")  # whatever another process has made it meanwhile

    def _run_afterwards(self) -> None:
        while self._afterwards:
            with suppress(StoreError):
                self._afterwards.pop(0)()

    def _execute(self, sql: str, parameters: Sequence[object] = ()) -> int:
        try:
            return self._connection.execute(sql, parameters).rowcount
        except FAILURES as error:
            raise from_sqlite_error(error, self.path) from error
        except OSError as error:
            raise from_os_error(error, self.path) from error

    def _check_alive(self) -> None:
        """Refuse to go on after SQLite rolled the transaction back by itself, as it may on a full disk."""
        if not self._connection.in_transaction:
            raise StoreMisused("the transaction was rolled back by an earlier failure", facts={"store": self.path})

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise StoreMisused(
                "the store was opened by another process",
                facts={"store": self.path},
                hint="open it again after a fork",
            )


class _Block:
    """One `with` block of a transaction. The database knows the outermost by a weak reference only: a block whose end
    an interrupt swallowed is dropped with its frame, and nothing joins it by mistake. (A generator would not do.)
    """

    __slots__ = ("__weakref__", "_database", "_full", "durable", "ended", "outermost")

    def __init__(self, database: Database, durable: bool) -> None:
        self._database = database
        self._full = durable
        self.durable = durable
        self.outermost = False
        self.ended = False

    def __enter__(self) -> None:
        self._database._enter(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.outermost:
            self._database._leave_outermost(self, self._full, kind is not None)
        else:
            self._database._leave_inner(kind is not None)
