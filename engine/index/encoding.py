"""The index as bytes: one file a store and principal. Pure.

A first line names the format; a checksum of the rest; a JSON head with all that is small; then the columns. A file
that is damaged, of another version or of another format is no index, and costs a full look.
"""

from __future__ import annotations

import json
from array import array
from typing import Any

from blake3 import blake3

from gsum.engine.index.records import DIGEST_BYTES, Declarations, Index, Served, Source
from gsum.store.version import VERSION

INDEX_SCHEMA = 2
_FORMAT = f"gsum index {INDEX_SCHEMA} {VERSION}\n".encode()
_BODY = len(_FORMAT) + DIGEST_BYTES
_LENGTH_BYTES = 8


def encode_index(index: Index) -> bytes:
    """Encode an index."""
    columns: list[bytes] = []
    for source in index.sources.values():
        names = "".join([f"{name}\0" for name in source.names]).encode()
        columns += [names, source.counts.tobytes(), source.joined, source.prints, source.digests]
    columns += [served.marks.tobytes() for served in index.served.values()]
    head = json.dumps(
        {
            "epoch": index.epoch,
            "invocation": index.invocation,
            "root": index.root,
            "principal": index.principal,
            "declarations": None if index.declarations is None else _declarations_head(index.declarations),
            "sources": {name: source.folder.hex() for name, source in index.sources.items()},
            "served": {slot: [served.declared.hex(), served.shapes] for slot, served in index.served.items()},
            "lengths": [len(column) for column in columns],
        }
    ).encode()
    body = b"".join([len(head).to_bytes(_LENGTH_BYTES, "little"), head, *columns])
    return b"".join([_FORMAT, blake3(body).digest(), body])


def decode_index(data: bytes) -> Index | None:
    """Decode what `encode_index` of this version wrote; None for anything else."""
    if not data.startswith(_FORMAT) or blake3(memoryview(data)[_BODY:]).digest() != data[len(_FORMAT) : _BODY]:
        return None
    start = _BODY + _LENGTH_BYTES
    end = start + int.from_bytes(data[_BODY:start], "little")
    head = json.loads(data[start:end])
    columns: list[bytes] = []
    for length in head["lengths"]:
        columns.append(data[end : end + length])
        end += length
    left = iter(columns)
    sources = {
        name: Source(
            bytes.fromhex(folder), _names(next(left)), _numbers(next(left)), next(left), next(left), next(left)
        )
        for name, folder in head["sources"].items()
    }
    served = {
        slot: Served(bytes.fromhex(declared), [tuple(shape) for shape in shapes], _numbers(next(left)))
        for slot, (declared, shapes) in head["served"].items()
    }
    declarations = head["declarations"] and _declarations(head["declarations"])
    return Index(head["epoch"], head["invocation"], head["root"], head["principal"], declarations, sources, served)


def _names(column: bytes) -> list[str]:
    return column.decode().split("\0")[:-1]


def _numbers(column: bytes) -> array[int]:
    numbers = array("I")
    numbers.frombytes(column)
    return numbers


def _declarations_head(declarations: Declarations) -> dict[str, Any]:
    return {
        "paths": declarations.paths,
        "prints": declarations.prints.hex(),
        "code": declarations.code.hex(),
        "toolchain": declarations.toolchain,
        "packages": declarations.packages,
        "declared": {slot: digest.hex() for slot, digest in declarations.declared.items()},
    }


def _declarations(head: dict[str, Any]) -> Declarations:
    return Declarations(
        head["paths"],
        bytes.fromhex(head["prints"]),
        bytes.fromhex(head["code"]),
        head["toolchain"],
        {name: (source, folder) for name, (source, folder) in head["packages"].items()},
        {slot: bytes.fromhex(digest) for slot, digest in head["declared"].items()},
    )
