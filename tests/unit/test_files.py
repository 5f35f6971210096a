"""Reading files of the workspace while what stands there may change."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from gsum.rules.files import read_document
from gsum.rules.toml import DeclarationError


def test_a_fifo_that_takes_a_documents_place_at_the_last_moment_is_refused_and_not_waited_for(tmp_path, monkeypatch):
    file = tmp_path / "a.txt"
    file.write_text("text\n")
    regular = file.stat()
    file.unlink()
    os.mkfifo(file)
    monkeypatch.setattr(Path, "stat", lambda *_, **__: regular)

    def waited(*_):
        raise AssertionError("the FIFO was waited for")

    before = signal.signal(signal.SIGALRM, waited)
    signal.setitimer(signal.ITIMER_REAL, 5)
    try:
        with pytest.raises(DeclarationError, match="is no regular file"):
            read_document(str(tmp_path), "a.txt", 4096)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
