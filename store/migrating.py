"""Bringing the database of an older store up to the present schema, in one transaction: all of it or nothing.

It knows both schemas. What the older one kept stays readable where it stands; only its tables change their shape. Rows
that damage has made unfit for them are set aside.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from gsum.store.schema import DDL, STORE_SCHEMA

_EXECUTION = "request, number, generation, observation, seal"
_ENTRY = "key, result, request, generation, sources, label, how, status, invocation, created, schema, seal"
_TARGET = "label, principal, toolchain, key, invocation, created"
_MOVED = {
    "execution": (
        f"INSERT OR IGNORE INTO execution ({_EXECUTION}) SELECT {_EXECUTION} FROM old_execution",
        _EXECUTION,
        ("request", "number"),
    ),
    "entry": (
        f"INSERT OR IGNORE INTO entry ({_ENTRY}, whole) SELECT {_ENTRY}, 0 FROM old_entry",
        _ENTRY,
        ("key",),
    ),
    "target": (
        f"INSERT OR IGNORE INTO target ({_TARGET}, behind) SELECT {_TARGET}, 0 FROM old_target ORDER BY put",
        _TARGET,
        ("label", "principal", "toolchain", "key"),
    ),
}
"""What fills the tables that schema 2 shapes anew, and of each its columns and its key. An entry of schema 1 says
nothing of its label: targets did.
"""


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring a database, of which nobody else may be writing, from schema `version` to the present one.

    The caller has begun a transaction and ends it.
    """
    assert version == 1 and STORE_SCHEMA == 2, "the steps between are not written"
    for table in _MOVED:
        connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    for table in ("entry", "execution"):
        connection.execute(f"DROP TRIGGER {table}_lost")
    for statement in DDL:
        if _table_of(statement) in _MOVED:
            connection.execute(statement)
    for table, (fill, columns, key) in _MOVED.items():
        connection.execute(fill)
        if connection.execute(_set_aside(table, columns, key)).rowcount:
            connection.execute("UPDATE identity SET losses = losses + 1")
        connection.execute(f"DROP TABLE old_{table}")
    connection.execute(f"PRAGMA user_version={STORE_SCHEMA}")


def _set_aside(table: str, columns: str, key: Sequence[str]) -> str:
    """Return what keeps those rows as `damaged` that did not fit, written as SQL writes values."""
    written = " || ', ' || ".join(f"quote({column})" for column in columns.split(", "))
    same = " AND ".join(f"new.{column} IS old.{column}" for column in key)
    return (
        f"INSERT INTO damaged (what, name, data) SELECT 'old {table}', coalesce(CAST({key[0]} AS BLOB), x''),"
        f" CAST({written} AS BLOB) FROM old_{table} AS old"
        f" WHERE NOT EXISTS (SELECT 1 FROM {table} AS new WHERE {same})"
    )


def _table_of(statement: str) -> str:
    """Return the table that a statement of the schema makes, or that its index or trigger is for."""
    words = statement.split()
    return words[2] if words[1] == "TABLE" else words[words.index("ON") + 1]
