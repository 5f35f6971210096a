"""Opening a store's database: making it, checking that it is ours and of a known schema, pragmas, read-only fallbacks.

It knows the schema and the marker file, no contents. The database file is never opened but by SQLite: closing any other
descriptor of it would drop the locks of every connection of this process.
"""

from __future__ import annotations

import importlib
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gsum.store.database import BUSY_SECONDS, FAILURES, Database, from_sqlite_error
from gsum.store.faults import (
    StoreDamaged,
    StoreInputOutput,
    StoreMissing,
    StoreNewer,
    StoreOlder,
    StoreReadOnly,
    from_os_error,
)
from gsum.store.fs import FileSystem
from gsum.store.schema import APPLICATION_ID, DDL, STORE_SCHEMA

DATABASE = "store.sqlite"
MARKER = "STORE"
"""A file that says that the database was made once: an empty or absent one is damage from then on, no new store."""

_LOG_LIMIT = 8 * 1024 * 1024
_LOG_PAGES = 4096
"""Pages of the log from which on it is written back: keys are hashes, so a page changes many times before."""
_CACHE_KIB = 64 * 1024
_PAUSE_SECONDS = 0.01


def open_database(
    folder: Path, files: FileSystem, *, create: bool, read_only: bool, before_durable: Callable[[], None]
) -> Database:
    """Open the database of the store in `folder`, for reading only where it can't be written.

    Raises:
        StoreMissing, StoreReadOnly, StoreNewer, StoreDamaged, StoreBusy, StoreFull, StoreInputOutput
    """
    try:
        opening = _Opening(folder, files)
        writable = not read_only and opening.prepare(create)
        connection = opening.for_writing() if writable else opening.for_reading()
    except OSError as error:
        raise from_os_error(error, folder) from error
    return Database(connection, opening.path, writable=writable, before_durable=before_durable)


class _Opening:
    """One attempt to open. Whether the store was made before is read first: another process may be making it."""

    def __init__(self, folder: Path, files: FileSystem) -> None:
        self.path = folder / DATABASE
        self._folder = folder
        self._files = files
        self._made = files.size(folder / MARKER) is not None

    def prepare(self, create: bool) -> bool:
        """Make the folder of a new store, and tell whether the store may be written."""
        if self._exists():
            return self._files.writable(self._folder) and self._files.writable(self.path)
        if not create:
            raise StoreMissing(self._folder)
        self._files.make_folder(self._folder)
        if not self._files.writable(self._folder):
            raise StoreReadOnly(self._folder, "the folder may not be written")
        return True

    def for_writing(self) -> sqlite3.Connection:
        """Open for reading and writing, and make the tables of a new store."""
        return self._connected("mode=rwc", self._set_up)

    def for_reading(self) -> sqlite3.Connection:
        """Open for reading; as an immutable file where the log's shared memory can't be made and the log is empty."""
        if not self._exists():
            raise StoreMissing(self._folder)
        try:
            return self._connected("mode=ro", self._refuse_others)
        except (StoreInputOutput, StoreReadOnly):
            if self._files.size(self._log):
                raise
        return self._connected("mode=ro&immutable=1", self._refuse_others)

    @property
    def _log(self) -> Path:
        return self._folder / f"{DATABASE}-wal"

    def _exists(self) -> bool:
        if self._files.size(self.path):
            return True
        self._refuse_lost()
        return False

    def _refuse_lost(self) -> None:
        if self._made:
            raise StoreDamaged(self.path, "the database file is empty or gone")

    def _connected(self, query: str, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
        uri = f"{self.path.absolute().as_uri()}?{query}"
        try:
            connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        except FAILURES as error:
            raise from_sqlite_error(error, self.path) from error
        connection.text_factory = _lenient_text
        try:
            prepare(connection)
        except FAILURES as error:
            connection.close()
            raise from_sqlite_error(error, self.path) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        version = self._version(connection)
        if version == 0:
            self._create(connection)
        elif version < STORE_SCHEMA:
            self._migrate(connection)
        _use_log(connection)
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA journal_size_limit={_LOG_LIMIT}")
        connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
        connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        if not self._made:
            self._mark()

    def _create(self, connection: sqlite3.Connection) -> None:
        """Make the tables, unless another process was faster."""
        connection.execute("BEGIN EXCLUSIVE")
        try:
            if self._version(connection) == 0:
                for statement in DDL:
                    connection.execute(statement)
                connection.execute("INSERT INTO identity (id, losses) VALUES (randomblob(16), 0)")
                connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version={STORE_SCHEMA}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _migrate(self, connection: sqlite3.Connection) -> None:
        """Bring the tables up to the present schema, unless another process was faster."""
        connection.execute("BEGIN EXCLUSIVE")
        try:
            version = self._version(connection)
            if version < STORE_SCHEMA:
                importlib.import_module("gsum.store.migrating").migrate(connection, version)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _mark(self) -> None:
        temporary = self._folder / f".{MARKER}-{os.getpid()}-{time.monotonic_ns()}"
        try:
            self._files.write_synced(temporary, f"gsum store, made as schema {STORE_SCHEMA}\n".encode())
            self._files.replace(temporary, self._folder / MARKER)
        except OSError:
            with suppress(OSError):
                self._files.remove(temporary)
            raise
        self._files.sync_folder(self._folder)

    def _refuse_others(self, connection: sqlite3.Connection) -> None:
        """Refuse, for reading, what has no tables or those of an older schema."""
        version = self._version(connection)
        if version == 0:
            raise StoreDamaged(self.path, "the database has no tables")
        if version < STORE_SCHEMA:
            raise StoreOlder(self._folder, version, STORE_SCHEMA)

    def _looked_at(self, connection: sqlite3.Connection) -> tuple[int, int, int, int]:
        """Read what tells a store from other files, all of it as of one moment: another process may be making it."""
        joins = connection.in_transaction
        if not joins:
            connection.execute("BEGIN")
        try:
            tables: int = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            version, owner, page = (
                _pragma(connection, name) for name in ("user_version", "application_id", "page_size")
            )
            return tables, version, owner, page
        finally:
            if not joins and connection.in_transaction:
                connection.execute("ROLLBACK")

    def _version(self, connection: sqlite3.Connection) -> int:
        """Return the schema version, 0 for an empty database; refuse what is newer, cut off or not ours."""
        tables, version, owner, page = self._looked_at(connection)
        if not tables and not version and not owner:
            self._refuse_lost()
            return 0
        if owner != APPLICATION_ID or version < 1:
            raise StoreDamaged(self.path, "it is a database, but no gsum store")
        if version > STORE_SCHEMA:
            raise StoreNewer(self._folder, version, STORE_SCHEMA)
        if (self._files.size(self.path) or 0) % page and not self._files.size(self._log):
            raise StoreDamaged(self.path, "the database file ends within a page")
        return version


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _lenient_text(raw: bytes) -> str:
    """Decode a text cell; a damaged one becomes another text, that refers to nothing, and no error."""
    return raw.decode(errors="replace")


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
