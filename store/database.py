"""One SQLite connection: statements, transactions and the translation of every `sqlite3` error.

It knows no table; opening, pragmas and schema versions are `store.opening`'s. One connection serves one thread of
one process.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

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
from gsum.store.schema import STORE_SCHEMA

BUSY_SECONDS = 30.0
CHUNK = 500
"""Most parameters of one statement: old SQLite builds admit 999."""

Row = tuple[Any, ...]

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What a statement may raise; the latter when SQLite quotes damaged bytes in a message."""

_BY_CODE: dict[int, Callable[[Path, str], StoreError]] = {
    sqlite3.SQLITE_FULL: StoreFull,
    sqlite3.SQLITE_READONLY: StoreReadOnly,
    sqlite3.SQLITE_CORRUPT: StoreDamaged,
    sqlite3.SQLITE_NOTADB: StoreDamaged,
    # Our statements are fixed: what does not compile is a damaged list of tables.
    sqlite3.SQLITE_ERROR: StoreDamaged,
    sqlite3.SQLITE_BUSY: lambda path, _: StoreBusy(path, BUSY_SECONDS),
    sqlite3.SQLITE_LOCKED: lambda path, _: StoreBusy(path, BUSY_SECONDS),
}
_BY_EXTENDED_CODE: dict[int, Callable[[Path, str], StoreError]] = {
    sqlite3.SQLITE_IOERR_SHORT_READ: StoreDamaged,
    sqlite3.SQLITE_IOERR_SHMSIZE: StoreFull,
}


def from_sqlite_error(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> StoreError:
    """Translate an error of SQLite, by its (extended) result code."""
    if isinstance(error, UnicodeDecodeError):
        return StoreDamaged(path, "a message about it can't be read")
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is None:  # raised by Python's module itself: closed connection, foreign thread
        return StoreMisused("The store was misused", facts={"store": path, "reason": error})
    make = _BY_EXTENDED_CODE.get(code) or _BY_CODE.get(code & 0xFF) or StoreInputOutput
    return make(path, f"{error} ({error.sqlite_errorname})")


def chunks(items: Iterable[bytes]) -> Iterator[tuple[bytes, ...]]:
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
        self,
        connection: sqlite3.Connection,
        path: Path,
        *,
        writable: bool,
        before_durable: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._before_durable = before_durable
        self._process = os.getpid()
        self._depth = 0
        self._durable = False
        self._afterwards: list[Callable[[], None]] = []
        self.path = path
        self.writable = writable

    @property
    def in_transaction(self) -> bool:
        """Tell whether a transaction block is being run."""
        return self._depth > 0

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
        if not self._depth:
            raise StoreMisused("A write needs a transaction", facts={"store": self.path})
        self._check_alive()
        return self._execute(sql, parameters)

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[None]:
        """Keep all writes of the block or none. An inner block joins the outer one, and makes it durable if it is."""
        self._check_process()
        if self._depth:
            with self._inner(durable):
                yield
            return
        self.require_writable()
        try:
            with self._outer(durable):
                yield
        finally:
            self._run_afterwards()

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

    @contextmanager
    def _outer(self, durable: bool) -> Iterator[None]:
        # The pragma is refused inside a transaction: it goes first.
        if durable:
            self._execute("PRAGMA synchronous=FULL")
        try:
            self._execute("BEGIN IMMEDIATE")
            self._depth, self._durable = 1, durable
            try:
                yield
                self._check_alive()
                if self._durable:
                    self._before_durable()
                self._execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._execute("ROLLBACK")
                raise
            finally:
                self._depth = 0
            if self._durable and not durable:
                self._sync_log()
        finally:
            if durable:
                self._execute("PRAGMA synchronous=NORMAL")

    @contextmanager
    def _inner(self, durable: bool) -> Iterator[None]:
        self._check_alive()
        self._durable = self._durable or durable
        self._depth += 1
        name = f"inner{self._depth}"
        self._execute(f"SAVEPOINT {name}")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:
                self._execute(f"ROLLBACK TO {name}")
            raise
        finally:
            self._depth -= 1
            if self._connection.in_transaction:
                self._execute(f"RELEASE {name}")

    def _sync_log(self) -> None:
        """Make an ordinary commit durable after the fact: a full one syncs the log with all that stands in it."""
        self._execute("PRAGMA synchronous=FULL")
        try:
            self._execute(f"PRAGMA user_version={STORE_SCHEMA}")
        finally:
            self._execute("PRAGMA synchronous=NORMAL")

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
            raise StoreMisused("The transaction was rolled back by an earlier failure", facts={"store": self.path})

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise StoreMisused(
                "The store was opened by another process",
                facts={"store": self.path},
                hint="open it again after a fork",
            )
