"""Opening a store's database: making it, checking that it is ours and of a known schema, pragmas, read-only fallbacks.

It knows the schema and the marker file, no contents. The database file is never opened but by SQLite: closing any other
descriptor of it would drop the locks of every connection of this process.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from gsum.store.database import BUSY_SECONDS, Database, from_sqlite_error
from gsum.store.faults import (
    StoreDamaged,
    StoreInputOutput,
    StoreMissing,
    StoreNewer,
    StoreReadOnly,
    from_os_error,
)
from gsum.store.fs import FileSystem
from gsum.store.schema import APPLICATION_ID, DDL, STORE_SCHEMA

DATABASE = "store.sqlite"
MARKER = "STORE"
"""A file that says that the database was made once: an empty or absent one is damage from then on, no new store."""

_LOG_LIMIT = 8 * 1024 * 1024
_CACHE_KIB = 16 * 1024
_PAUSE_SECONDS = 0.01


def open_database(
    folder: Path, files: FileSystem, *, create: bool, read_only: bool, before_durable: Callable[[], None]
) -> Database:
    """Open the database of the store in `folder`, for reading only where it can't be written.

    Raises:
        StoreMissing, StoreReadOnly, StoreNewer, StoreDamaged, StoreBusy, StoreFull, StoreInputOutput
    """
    path = folder / DATABASE
    try:
        exists = _exists(path, files)
        if not exists:
            if read_only or not create:
                raise StoreMissing(folder)
            files.make_folder(folder)
        writable = not read_only and files.writable(folder) and (not exists or files.writable(path))
        if not exists and not writable:
            raise StoreReadOnly(folder, "the folder may not be written")
        connection = _open_writing(path, files) if writable else _open_reading(path, files)
        if writable and files.size(folder / MARKER) is None:
            _mark(folder, files)
    except OSError as error:
        raise from_os_error(error, folder) from error
    return Database(connection, path, writable=writable, before_durable=before_durable)


def _exists(path: Path, files: FileSystem) -> bool:
    """Tell whether there is a database; an empty file is none, unless the marker says that it was more than that."""
    if files.size(path):
        return True
    _refuse_lost(path, files)
    return False


def _mark(folder: Path, files: FileSystem) -> None:
    temporary = folder / f".{MARKER}-{time.monotonic_ns()}"
    files.write_synced(temporary, f"gsum store, made as schema {STORE_SCHEMA}\n".encode())
    files.replace(temporary, folder / MARKER)
    files.sync_folder(folder)


def _connect(path: Path, query: str) -> sqlite3.Connection:
    try:
        uri = f"{path.absolute().as_uri()}?{query}"
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    except sqlite3.Error as error:
        raise from_sqlite_error(error, path) from error
    connection.text_factory = _lenient_text
    return connection


def _lenient_text(raw: bytes) -> str:
    """Decode a text cell; a damaged one becomes another text, that refers to nothing, and no error."""
    return raw.decode(errors="replace")


def _open_writing(path: Path, files: FileSystem) -> sqlite3.Connection:
    connection = _connect(path, "mode=rwc")
    try:
        if _check(connection, path, files) == 0:
            _create(connection, path, files)
        _use_log(connection)
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA journal_size_limit={_LOG_LIMIT}")
        connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    except sqlite3.Error as error:
        connection.close()
        raise from_sqlite_error(error, path) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection, path: Path, files: FileSystem) -> None:
    """Make the tables, unless another process was faster."""
    connection.execute("BEGIN EXCLUSIVE")
    try:
        if _check(connection, path, files) == 0:
            for statement in DDL:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={STORE_SCHEMA}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _use_log(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; SQLite does not wait for other processes by itself here."""
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)


def _open_reading(path: Path, files: FileSystem) -> sqlite3.Connection:
    """Open for reading; where the log's shared memory can't be made, as an immutable file, if its log is empty."""
    try:
        return _try_reading(path, files, "mode=ro")
    except (StoreInputOutput, StoreReadOnly):
        if files.size(_log(path)):
            raise
    return _try_reading(path, files, "mode=ro&immutable=1")


def _try_reading(path: Path, files: FileSystem, query: str) -> sqlite3.Connection:
    connection = _connect(path, query)
    try:
        if _check(connection, path, files) == 0:
            raise StoreDamaged(path, "the database has no tables")
    except sqlite3.Error as error:
        connection.close()
        raise from_sqlite_error(error, path) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path, files: FileSystem) -> int:
    """Return the schema version, 0 for an empty database; refuse what is newer, cut off or not ours. Writes nothing."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    owner: int = connection.execute("PRAGMA application_id").fetchone()[0]
    if not tables and not version and not owner:
        _refuse_lost(path, files)
        return 0
    if owner != APPLICATION_ID or version < 1:
        raise StoreDamaged(path, "it is a database, but no gsum store")
    if version > STORE_SCHEMA:
        raise StoreNewer(path.parent, version, STORE_SCHEMA)
    page: int = connection.execute("PRAGMA page_size").fetchone()[0]
    if (files.size(path) or 0) % page and not files.size(_log(path)):
        raise StoreDamaged(path, "the database file ends within a page")
    return version


def _refuse_lost(path: Path, files: FileSystem) -> None:
    if files.size(path.parent / MARKER) is not None:
        raise StoreDamaged(path, "the database file is empty or gone")


def _log(path: Path) -> Path:
    return path.with_name(f"{DATABASE}-wal")
