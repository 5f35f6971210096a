"""What commands open: the universe of some patterns, and the store. Prints nothing, reads no environment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gsum.cli.config import Color, Config, config_from, current_config, options
from gsum.cli.empty_store import EmptyStore
from gsum.engine.universe import Universe, load_universe
from gsum.store.api import Store
from gsum.store.faults import StoreMissing
from gsum.store.local import LocalStore, open_store

__all__ = [
    "Color",
    "Config",
    "config_from",
    "current_config",
    "open_universe",
    "options",
    "reading_store",
    "writing_store",
]


def open_universe(config: Config, patterns: Sequence[str]) -> Universe:
    """Load the workspace and analyse patterns, for the principal and toolchain asked for."""
    return load_universe(config.root, patterns, principal=config.principal, toolchain=config.toolchain)


@contextmanager
def reading_store(config: Config, root: Path) -> Iterator[Store]:
    """Open the store of a workspace to look into it: where none was made yet, it is one that holds nothing.

    Damage that is met while reading is set aside where the store can be written; nothing else is written.

    Raises:
        StoreMissing: when a store was named that is not there.
    """
    try:
        opened: LocalStore | EmptyStore = open_store(config.store_folder(root), create=False)
    except StoreMissing:
        if config.store is not None:
            raise
        opened = EmptyStore()
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def writing_store(config: Config, root: Path) -> Iterator[Store]:
    """Open the store of a workspace to build into it, making it where there is none."""
    with open_store(config.store_folder(root)) as store:
        yield store
