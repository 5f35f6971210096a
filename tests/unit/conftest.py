"""Clients of warm workers, each test's in sockets of its own or in those that a module's tests share."""

import pytest
from support.warm_clients import Clients
from support.warm_workers import ended


@pytest.fixture
def sockets(tmp_path):
    with ended(tmp_path / "run") as folder:
        yield folder


@pytest.fixture
def clients(model, tmp_path, sockets):
    clients = Clients(model, tmp_path, sockets)
    yield clients
    for executor in clients.made:
        executor.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with ended(tmp_path_factory.mktemp("shared") / "run") as folder:
        yield folder


@pytest.fixture
def sharing(model, shared):
    """Clients of one worker that several tests use: it is warm for all but the first."""
    clients = Clients(model, shared.parent, shared)
    yield clients
    for executor in clients.made:
        executor.close()
