"""The on-disk schema of the store's database and its version. Pure.

A change of `DDL` is a change of format: bump `STORE_SCHEMA` with it (a golden test holds the two together).
Digests and keys are 32-byte BLOBs. Nothing here needs an SQLite newer than 3.24.
"""

from __future__ import annotations

from typing import Final

STORE_SCHEMA: Final = 2
"""Stands in `PRAGMA user_version`. A greater one is refused, a smaller one brought up to it."""

APPLICATION_ID: Final = 0x6753_756D
"""Stands in `PRAGMA application_id`: the letters gSum, by which `file` can tell a store from other databases."""

INLINE_LIMIT: Final = 64 * 1024
"""Blobs up to this many bytes live in the database, larger ones in files of their own."""

DDL: Final[tuple[str, ...]] = (
    # A blob whose `data` is NULL is the file blobs/ab/cdef…, of `size` bytes.
    """CREATE TABLE blob (
        digest BLOB PRIMARY KEY NOT NULL CHECK (length(digest) = 32),
        size INTEGER NOT NULL,
        data BLOB
    )""",
    """CREATE TABLE record (
        key BLOB PRIMARY KEY NOT NULL CHECK (length(key) = 32),
        kind TEXT NOT NULL,
        data BLOB NOT NULL
    )""",
    # One row per execution of a request, numbered per request. Its generations are the distinct ones, the earliest is
    # served. What no digest names is sealed: `seal` is a hash of the columns before it, verified on every read.
    # `preimage` is the request's, in one of its rows, unless it is a record.
    """CREATE TABLE execution (
        request BLOB NOT NULL CHECK (length(request) = 32),
        number INTEGER NOT NULL,
        generation BLOB NOT NULL CHECK (length(generation) = 32),
        observation BLOB NOT NULL,
        seal BLOB NOT NULL,
        preimage BLOB,
        PRIMARY KEY (request, number)
    )""",
    # `sources` are 32-byte digests, one after the other. An entry with a principal says, too, what its label was built
    # as for that principal and toolchain name. `whole`: all that it refers to was there when it was put, and no file.
    # The preimages are those of its key and of its perimeter, unless they are records.
    """CREATE TABLE entry (
        number INTEGER PRIMARY KEY,
        key BLOB NOT NULL UNIQUE CHECK (length(key) = 32),
        result BLOB NOT NULL CHECK (length(result) = 32),
        request BLOB CHECK (length(request) = 32),
        generation BLOB CHECK (length(generation) = 32),
        sources BLOB NOT NULL CHECK (length(sources) % 32 = 0),
        label TEXT NOT NULL,
        how TEXT NOT NULL,
        status TEXT NOT NULL,
        invocation TEXT NOT NULL,
        created TEXT NOT NULL,
        schema INTEGER NOT NULL,
        principal TEXT,
        toolchain TEXT,
        whole INTEGER NOT NULL,
        seal BLOB NOT NULL,
        perimeter BLOB CHECK (length(perimeter) = 32),
        preimage BLOB,
        perimeter_preimage BLOB
    )""",
    "CREATE INDEX entry_label ON entry (label, principal, toolchain) WHERE principal IS NOT NULL",
    "CREATE INDEX entry_perimeter ON entry (perimeter) WHERE perimeter IS NOT NULL",
    # What a label was built as where no entry of its own says so. It came behind the entry with the number `behind`.
    """CREATE TABLE target (
        number INTEGER PRIMARY KEY,
        label TEXT NOT NULL,
        principal TEXT NOT NULL,
        toolchain TEXT NOT NULL,
        key BLOB NOT NULL CHECK (length(key) = 32),
        behind INTEGER NOT NULL,
        invocation TEXT NOT NULL,
        created TEXT NOT NULL,
        UNIQUE (label, principal, toolchain, key)
    )""",
    # `record` is JSON; it is replaced once, while `running` is 1.
    """CREATE TABLE invocation (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        running INTEGER NOT NULL,
        record BLOB NOT NULL
    )""",
    # `events` is a msgpack array of byte strings: one append is one row.
    """CREATE TABLE event (
        invocation TEXT NOT NULL,
        number INTEGER NOT NULL,
        events BLOB NOT NULL,
        PRIMARY KEY (invocation, number)
    ) WITHOUT ROWID""",
    # What was found not to hash to its name, or an entry that gave way because something it refers to was lost.
    """CREATE TABLE damaged (
        number INTEGER PRIMARY KEY,
        what TEXT NOT NULL,
        name BLOB NOT NULL,
        data BLOB NOT NULL
    )""",
    # One row. `losses` counts what was ever taken out: while it stands still, what was kept is kept.
    """CREATE TABLE identity (
        id BLOB NOT NULL,
        losses INTEGER NOT NULL
    )""",
    *(
        f"CREATE TRIGGER {table}_lost AFTER DELETE ON {table} BEGIN UPDATE identity SET losses = losses + 1; END"
        for table in ("blob", "record", "execution", "entry")
    ),
)
