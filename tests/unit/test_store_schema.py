"""The on-disk schema is pinned to its version: a changed statement needs a new `STORE_SCHEMA`."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from gsum.store.digests import blob_digest
from gsum.store.local import open_store
from gsum.store.schema import APPLICATION_ID, DDL, INLINE_LIMIT, STORE_SCHEMA

PINNED = {
    1: "0688bb7ec57d2eed7a60b5996e1f3289c5556ed521603f83af50c820597d3d26",
    2: "8ef551bedc346cb5cbae26d32e4c6968036654c5ebb3f3ae4ee11ed459ba9c02",
}


def test_the_statements_belong_to_their_version():
    text = "\n".join(" ".join(statement.split()) for statement in DDL)
    assert blob_digest(f"{text}\n{INLINE_LIMIT}\n".encode()) == PINNED[STORE_SCHEMA]


def test_a_new_store_holds_what_the_schema_says(tmp_path):
    open_store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as connection:
        made = [
            sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
        ]
        version, owner, mode = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("user_version", "application_id", "journal_mode")
        )
    assert made == list(DDL)
    assert (version, owner, mode) == (STORE_SCHEMA, APPLICATION_ID, "wal")
    assert APPLICATION_ID.to_bytes(4, "big") == b"gSum"


@pytest.mark.parametrize("statement", DDL)
def test_no_statement_needs_a_recent_sqlite(statement):
    assert "STRICT" not in statement and "GENERATED" not in statement
