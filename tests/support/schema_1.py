"""Stores of schema 1, as the first versions made them: tables, rows and seals, written without the product's code."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec
from blake3 import blake3
from support.store_examples import Example

from gsum.store.digests import blob_digest
from gsum.store.schema import APPLICATION_ID

TABLES = (
    "CREATE TABLE blob (digest BLOB PRIMARY KEY NOT NULL CHECK (length(digest) = 32), size INTEGER NOT NULL,"
    " data BLOB)",
    "CREATE TABLE record (key BLOB PRIMARY KEY NOT NULL CHECK (length(key) = 32), kind TEXT NOT NULL,"
    " data BLOB NOT NULL)",
    "CREATE TABLE execution (request BLOB NOT NULL CHECK (length(request) = 32), number INTEGER NOT NULL,"
    " generation BLOB NOT NULL CHECK (length(generation) = 32), observation BLOB NOT NULL, seal BLOB NOT NULL,"
    " PRIMARY KEY (request, number)) WITHOUT ROWID",
    "CREATE TABLE entry (key BLOB PRIMARY KEY NOT NULL CHECK (length(key) = 32),"
    " result BLOB NOT NULL CHECK (length(result) = 32), request BLOB CHECK (length(request) = 32),"
    " generation BLOB CHECK (length(generation) = 32), sources BLOB NOT NULL CHECK (length(sources) % 32 = 0),"
    " label TEXT NOT NULL, how TEXT NOT NULL, status TEXT NOT NULL, invocation TEXT NOT NULL, created TEXT NOT NULL,"
    " schema INTEGER NOT NULL, seal BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE target (label TEXT NOT NULL, principal TEXT NOT NULL, toolchain TEXT NOT NULL,"
    " key BLOB NOT NULL CHECK (length(key) = 32), put INTEGER NOT NULL, invocation TEXT NOT NULL,"
    " created TEXT NOT NULL, PRIMARY KEY (label, principal, toolchain, key)) WITHOUT ROWID",
    "CREATE TABLE invocation (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, running INTEGER NOT NULL,"
    " record BLOB NOT NULL)",
    "CREATE TABLE event (invocation TEXT NOT NULL, number INTEGER NOT NULL, events BLOB NOT NULL,"
    " PRIMARY KEY (invocation, number)) WITHOUT ROWID",
    "CREATE TABLE damaged (number INTEGER PRIMARY KEY, what TEXT NOT NULL, name BLOB NOT NULL, data BLOB NOT NULL)",
    "CREATE TABLE identity (id BLOB NOT NULL, losses INTEGER NOT NULL)",
    *(
        f"CREATE TRIGGER {table}_lost AFTER DELETE ON {table} BEGIN UPDATE identity SET losses = losses + 1; END"
        for table in ("blob", "record", "execution", "entry")
    ),
    "INSERT INTO identity (id, losses) VALUES (randomblob(16), 0)",
    f"PRAGMA application_id={APPLICATION_ID}",
    "PRAGMA user_version=1",
)
TIME = "2026-11-30T12:00:00Z"


def make_store(folder: Path, wholes: Sequence[Example], built: Sequence[tuple[str, Example]] = ()) -> None:
    """Make a store that keeps actions, and what labels were built as, in order."""
    folder.mkdir()
    (folder / "STORE").write_text("gsum store, made as schema 1\n")
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection, connection:
        for statement in TABLES:
            connection.execute(statement)
        for whole in wholes:
            _keep(connection, whole)
        for put, (label, whole) in enumerate(built, 1):
            row = (label, "reader-demo", "fake", bytes.fromhex(whole.action.key), put, "i-1", TIME)
            connection.execute("INSERT OR REPLACE INTO target VALUES (?,?,?,?,?,?,?)", row)


def _keep(connection: sqlite3.Connection, whole: Example) -> None:
    digests = []
    for data in (whole.source, whole.generation, whole.result):
        digests.append(bytes.fromhex(blob_digest(data)))
        connection.execute("INSERT INTO blob VALUES (?,?,?)", (digests[-1], len(data), data))
    for one in (whole.action, whole.request, whole.perimeter):
        record = (bytes.fromhex(one.key), one.kind.value, one.data)
        connection.execute("INSERT OR IGNORE INTO record VALUES (?,?,?)", record)
    source, generation, result = digests
    request, key = bytes.fromhex(whole.request.key), bytes.fromhex(whole.action.key)
    execution = (request, 1, generation, whole.observation)
    connection.execute("INSERT INTO execution VALUES (?,?,?,?,?)", (*execution, _seal(execution)))
    label = f"//dossier:S-010/{whole.action.key[:4]}"
    entry = (key, result, request, generation, source, label, "generated", "VALID", "i-1", TIME, 1)
    connection.execute("INSERT INTO entry VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", (*entry, _seal(entry)))


def _seal(row: tuple[object, ...]) -> bytes:
    return blake3(msgspec.msgpack.encode(row)).digest(16)
