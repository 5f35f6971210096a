"""A store that another process finishes making between two looks at it is a store, not a damaged one."""

from __future__ import annotations

import sqlite3

from gsum.store import opening
from gsum.store.local import open_store


def test_a_store_made_between_two_looks_is_not_called_damaged(tmp_path, monkeypatch):
    real = opening._pragma
    made = []

    def make_meanwhile(connection, name):
        """Let another connection finish the store after `user_version` was read and before `application_id` is."""
        if name == "application_id" and not made:
            made.append(name)
            with sqlite3.connect(tmp_path / "store.sqlite", timeout=0.1) as other:
                try:
                    other.execute("CREATE TABLE other (x)")
                    other.execute(f"PRAGMA application_id={opening.APPLICATION_ID}")
                    other.execute(f"PRAGMA user_version={opening.STORE_SCHEMA}")
                except sqlite3.OperationalError as error:  # the look holds a lock: the other has to wait
                    assert "locked" in str(error)
            other.close()
        return real(connection, name)

    monkeypatch.setattr(opening, "_pragma", make_meanwhile)
    with open_store(tmp_path) as store:
        assert store.get_blob(store.put_blob(b"kept")) == b"kept"
    assert made
