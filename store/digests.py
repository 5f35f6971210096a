"""Digests and keys: plain BLAKE3-256 for blobs, BLAKE3 derive-key mode for keys. Pure.

A key is `blake3(preimage, derive_key_context=kind.context)`: `b3sum --derive-key CONTEXT` recomputes it.
"""

from __future__ import annotations

import enum
import hashlib
from typing import NewType

import msgspec
from blake3 import blake3

from gsum.store.canonical import canonical_json

Digest = NewType("Digest", str)
"""64 lower-case hex digits: BLAKE3-256 of a blob."""

Key = NewType("Key", str)
"""64 lower-case hex digits: BLAKE3 derive-key hash of a canonical preimage."""

HEX_LENGTH = 64
KEY_SCHEMA = 1
"""Version of all key preimages; it stands in each of them and in each context."""


class RecordKind(enum.Enum):
    """Kinds of keyed records; the value is the kind's name in its derive-key context."""

    ACTION = "action"
    REQUEST = "request"
    TOOLCHAIN = "toolchain"
    PROMPT = "prompt"
    SCHEMA = "schema"
    PERIMETER = "perimeter"

    def __init__(self, name: str) -> None:
        self.context = f"gsum 2026-11-30 {name} v{KEY_SCHEMA}"
        """The BLAKE3 derive-key context of this kind."""
        self.hasher = blake3(derive_key_context=self.context)
        """Never updated: copies of it are, so that the context is hashed once."""


class Preimage(msgspec.Struct, frozen=True):
    """A keyed record: its kind, its canonical bytes and the key they hash to."""

    kind: RecordKind
    data: bytes
    key: Key


def blob_digest(data: bytes) -> Digest:
    """Return the BLAKE3-256 digest of a blob."""
    return Digest(blake3(data).hexdigest())


def sha256_hex(data: bytes) -> str:
    """Return the sha256 of a blob, for evidence and weights that others must be able to check."""
    return hashlib.sha256(data).hexdigest()


def derive_key(kind: RecordKind, data: bytes) -> Key:
    """Hash canonical bytes under the context of their kind."""
    hasher = kind.hasher.copy()
    hasher.update(data)
    return Key(hasher.hexdigest())


def preimage_of(kind: RecordKind, record: object) -> Preimage:
    """Encode a record canonically and hash it."""
    data = canonical_json(record)
    return Preimage(kind, data, derive_key(kind, data))
