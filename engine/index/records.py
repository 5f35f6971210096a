"""The index's records and their encoding. Pure.

One file a store and principal, in msgpack: a file that is damaged, of another schema, or of another store's epoch is
no index, and costs a full look.
"""

from __future__ import annotations

import msgspec
from blake3 import blake3

from gsum.store.version import VERSION

INDEX_SCHEMA = 1
DIGEST_BYTES = 32
ROOT = "root"


class Watched(msgspec.Struct, frozen=True, array_like=True):
    """A dossier as it was looked at: its manifest (or its folder, where it has none) and its readable documents.

    `paths` are relative to the workspace. `prints` holds their fingerprints and `digests` the documents' blob digests,
    32 bytes each; the first path is no document and its digest is zeros.
    """

    paths: tuple[str, ...]
    prints: bytes
    digests: bytes


class WatchedSource(msgspec.Struct, frozen=True, array_like=True):
    """A source's folder as it was listed: its fingerprint, all its dossiers, and those that were looked at."""

    prints: bytes
    names: tuple[str, ...]
    dossiers: dict[str, Watched]


class Standing(msgspec.Struct, frozen=True, array_like=True):
    """What of a dossier the store serves, none of it INVALID: its root, and whether also each part asked for alone.

    `shape` is the place of its part names in `Served.shapes`.
    """

    every_part: bool
    shape: int


class Served(msgspec.Struct, frozen=True, array_like=True):
    """What of one package, under one toolchain, the store serves.

    `declared` digests everything that the package's keys depend on besides its dossiers.
    """

    declared: bytes
    shapes: tuple[tuple[str, ...], ...]
    dossiers: dict[str, Standing]


class Declarations(msgspec.Struct, frozen=True, array_like=True):
    """The files of declarations as they were looked at, and what a null build needs of what they say.

    `packages` gives the source of each package whose targets depend on nothing but its dossiers, and that source's
    folder. `declared` gives, by slot, what `Served.declared` must be. `code` is a fingerprint of gsum's own rules.
    """

    paths: tuple[str, ...]
    prints: bytes
    code: bytes
    toolchain: str
    packages: dict[str, tuple[str, str]]
    declared: dict[str, bytes]


class Index(msgspec.Struct, frozen=True, array_like=True):
    """All that a null build compares. `epoch` and `invocation` name the store in a state that still holds it all.

    `served` is keyed by slot: `package`, or `package toolchain` where a toolchain was asked for.
    """

    epoch: str
    invocation: str
    root: str
    principal: str
    declarations: Declarations | None = None
    sources: dict[str, WatchedSource] = {}
    served: dict[str, Served] = {}
    version: str = VERSION
    schema: int = INDEX_SCHEMA


def slot_of(package: str, toolchain: str | None) -> str:
    """Return the key of `Index.served` for a package, under a toolchain where one was asked for."""
    return package if toolchain is None else f"{package} {toolchain}"


def standing_parts(
    index: Index, slot: str, declared: bytes | None, dossier: str, part: str | None
) -> tuple[str, ...] | None:
    """Return the parts of a dossier that is served, if that covers `part` (None: each of them), else None."""
    served = index.served.get(slot)
    if served is None or served.declared != declared:
        return None
    standing = served.dossiers.get(dossier)
    if standing is None or not (part == ROOT or (part is None and standing.every_part)):
        return None
    return served.shapes[standing.shape]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Index)


def encode_index(index: Index) -> bytes:
    """Encode an index, its checksum first."""
    data = _ENCODER.encode(index)
    return blake3(data).digest() + data


def decode_index(data: bytes) -> Index | None:
    """Decode what `encode_index` of this version wrote; None for anything else."""
    body = memoryview(data)[DIGEST_BYTES:]
    if blake3(body).digest() != data[:DIGEST_BYTES]:
        return None
    try:
        index = _DECODER.decode(body)
    except msgspec.MsgspecError:
        return None
    return index if (index.schema, index.version) == (INDEX_SCHEMA, VERSION) else None
