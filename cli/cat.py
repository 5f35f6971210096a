"""`gsum cat`: the bytes behind a digest or key, for those who may read all that went into them."""

from __future__ import annotations

import base64
import re
import sys
from typing import Any

import click

from gsum.cli.context import Config, current_config, options, reading_store
from gsum.cli.perimeter import OPEN_KINDS, Found, Perimeter, found, record_of
from gsum.cli.render import emit, emit_json
from gsum.engine.universe import surrounding_universe
from gsum.rules.loader import load_workspace
from gsum.store.api import Store
from gsum.store.errors import ExitCode, GsumError

MIN_PREFIX = 6
_HEX = re.compile(r"[0-9a-f]{6,64}")


class NotShownError(GsumError):
    """A digest or key that names nothing, or nothing that the principal may be shown."""

    exit_code = ExitCode.USAGE


@click.command("cat")
@click.argument("name", metavar="KEY|DIGEST")
@click.option("--context", is_flag=True, help="Print the derive-key context of a key, not its record.")
@options(principal=True)
def command(name: str, context: bool) -> None:
    """Write the exact bytes that KEY or DIGEST is the hash of; its first 6 hex digits or more are enough.

    Requests, sources, generations and results are written only while the principal may read every document that went
    into them, and preimages likewise. Blob digests are plain BLAKE3, keys BLAKE3 in derive-key mode:

    \b
      gsum cat DIGEST | b3sum
      gsum cat KEY | b3sum --derive-key "$(gsum cat --context KEY)"
    """  # noqa: D301 - click reads the character
    config = current_config()
    digits = name.lower()
    if not _HEX.fullmatch(digits):
        raise click.UsageError(f"`{name}` is no digest or key: give {MIN_PREFIX} to 64 hex digits")
    with reading_store(config, config.root) as store:
        thing = _find(config, store, digits)
    if context and thing.kind is None:
        raise NotShownError(
            f"`{thing.name[:16]}` is a blob: it is hashed without a context", hint=f"gsum cat {digits} | b3sum"
        )
    if config.json:
        emit_json("cat", _document(thing))
    elif context:
        assert thing.kind is not None
        emit(config, thing.kind.context)
    else:
        sys.stdout.buffer.write(thing.data)


def _find(config: Config, store: Store, digits: str) -> Found:
    """Return the one thing under a prefix that the principal may be shown; others count as absent."""
    names = store.find(digits)
    shown = [name for name in names if (record := record_of(store, name)) is not None and record.kind in OPEN_KINDS]
    if len(shown) < len(names):
        universe = surrounding_universe(load_workspace(config.root), ["//..."], principal=config.principal)
        perimeter = Perimeter(universe, store)
        shown += [name for name in names if name not in shown and perimeter.admits(name)]
    if not shown:
        hint = "it may be absent, of another principal, or made from a document that may not be read now"
        raise NotShownError(f"there is nothing to show under `{digits}`", hint=hint)
    if len(shown) > 1:
        raise NotShownError(
            f"`{digits}` is the beginning of {len(shown)} digests and keys",
            facts={"they are": "\n".join(sorted(shown))},
            hint="give more digits",
        )
    return found(store, shown[0])


def _document(thing: Found) -> dict[str, Any]:
    try:
        encoding, data = "utf-8", thing.data.decode()
    except UnicodeDecodeError:
        encoding, data = "base64", base64.b64encode(thing.data).decode()
    return {
        "name": thing.name,
        "kind": "blob" if thing.kind is None else thing.kind.value,
        "context": None if thing.kind is None else thing.kind.context,
        "bytes": len(thing.data),
        "encoding": encoding,
        "data": data,
    }
