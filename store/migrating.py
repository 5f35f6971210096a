"""Bringing the database of an older store up to the present schema, in one transaction: all of it or nothing.

It knows both schemas. What the older one kept stays readable where it stands; only its tables change their shape.
"""

from __future__ import annotations

import sqlite3

from gsum.store.schema import DDL, STORE_SCHEMA

_MOVED = {
    "execution": (
        "INSERT INTO execution (request, number, generation, observation, seal)"
        " SELECT request, number, generation, observation, seal FROM old_execution"
    ),
    "entry": (
        "INSERT INTO entry (key, result, request, generation, sources, label, how, status, invocation, created, schema,"
        " whole, seal) SELECT key, result, request, generation, sources, label, how, status, invocation, created,"
        " schema, 0, seal FROM old_entry"
    ),
    "target": (
        "INSERT INTO target (label, principal, toolchain, key, behind, invocation, created)"
        " SELECT label, principal, toolchain, key, 0, invocation, created FROM old_target ORDER BY put"
    ),
}
"""What fills the tables that schema 2 shapes anew. An entry of schema 1 says nothing of its label: targets did."""


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
    for table, fill in _MOVED.items():
        connection.execute(fill)
        connection.execute(f"DROP TABLE old_{table}")
    connection.execute(f"PRAGMA user_version={STORE_SCHEMA}")


def _table_of(statement: str) -> str:
    """Return the table that a statement of the schema makes, or that its index or trigger is for."""
    words = statement.split()
    return words[2] if words[1] == "TABLE" else words[words.index("ON") + 1]
