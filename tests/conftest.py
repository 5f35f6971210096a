"""What holds for all tests: sockets of warm workers are in a folder of the session, and no worker outlives it."""

import os

import pytest
from support.warm_workers import ended


@pytest.fixture(scope="session", autouse=True)
def workers_of_the_session(tmp_path_factory):
    """Commands of tests find their workers here, by XDG_RUNTIME_DIR, and not those of the user; all end with it."""
    runtime = tmp_path_factory.mktemp("runtime")
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    with ended(runtime / "gsum"):
        yield
    if before is None:
        del os.environ["XDG_RUNTIME_DIR"]
    else:
        os.environ["XDG_RUNTIME_DIR"] = before
