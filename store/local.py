"""The store on this machine: one SQLite file, large blobs beside it, safe for many processes at once.

It puts the parts together and knows none of their tables; one `LocalStore` serves one thread of one process.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from gsum.store.actions import LocalActions
from gsum.store.api import Store
from gsum.store.blobs import BlobFiles
from gsum.store.database import Database
from gsum.store.fs import FileSystem, PosixFileSystem
from gsum.store.journal import LocalJournal
from gsum.store.ledger import epoch_of
from gsum.store.opening import open_database


class LocalStore(LocalActions, LocalJournal):
    """A `Store` in a folder; made by `open_store`."""

    def __init__(self, folder: Path, database: Database, files: BlobFiles) -> None:
        super().__init__(database, files)
        self.folder = folder

    @property
    def writable(self) -> bool:
        """Tell whether anything can be put; where not, each put raises `StoreReadOnly`."""
        return self._db.writable

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[None]:
        """Group puts: all of them are kept or none. `durable` ones survive power loss when the block ends.

        A block within a block joins it: it may fail on its own, but is kept only when the outer one is, and makes it
        durable when it is. A durable end also makes durable all that was kept before.
        """
        return self._db.transaction(durable=durable)

    def epoch(self) -> str:
        """Return the store's identity and how often something kept was taken out of it.

        Raises:
            StoreDamaged: if the database has lost its identity.
        """
        return epoch_of(self._db)

    def close(self) -> None:
        """Release the store; it can't be used afterwards."""
        self._db.close()

    def __enter__(self) -> LocalStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def open_store(
    path: Path, *, create: bool = True, read_only: bool = False, files: FileSystem | None = None
) -> LocalStore:
    """Open the store in the folder `path`, making it if there is none and `create`.

    A store that can't be written is opened for reading: its puts raise `StoreReadOnly`.

    Raises:
        StoreMissing, StoreReadOnly, StoreNewer, StoreDamaged, StoreBusy, StoreFull, StoreInputOutput
    """
    seam = PosixFileSystem() if files is None else files
    blobs = BlobFiles(path, seam)
    database = open_database(path, seam, create=create, read_only=read_only, before_durable=blobs.sync)
    return LocalStore(path, database, blobs)


_implements: type[Store] = LocalStore
