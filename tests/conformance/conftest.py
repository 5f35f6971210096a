"""The backends that the conformance suite holds to the obligations of `gsum.store.api`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.memory_store import MemoryStore

from gsum.store.api import Store
from gsum.store.local import open_store


class StoreFactory:
    """Opens a backend's store; `open` again gives the same contents, as another process would see them."""

    def __init__(self, make: Callable[[], Store]) -> None:
        self._make = make
        self._opened = ExitStack()

    def open(self) -> Store:
        store = self._make()
        self._opened.callback(store.close)
        return store

    def close_all(self) -> None:
        self._opened.close()


@pytest.fixture(params=["local", "memory"])
def store_factory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreFactory]:
    memory = MemoryStore()
    backends: dict[str, Callable[[], Store]] = {
        "local": lambda: open_store(tmp_path / "store"),
        "memory": lambda: memory,
    }
    factory = StoreFactory(backends[request.param])
    yield factory
    factory.close_all()


@pytest.fixture
def store(store_factory: StoreFactory) -> Store:
    return store_factory.open()
