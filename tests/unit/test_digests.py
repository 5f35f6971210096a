"""Digests and keys are pinned as literals, and no two kinds of record share a key."""

from __future__ import annotations

import itertools
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsum.store.digests import (
    HEX_LENGTH,
    KEY_SCHEMA,
    RecordKind,
    blob_digest,
    derive_key,
    preimage_of,
    sha256_hex,
)

RECORD = {"b": [None, True, "é"], "a": 1}
PREIMAGE = '{"a":1,"b":[null,true,"é"]}'.encode()

CONTEXTS = {
    RecordKind.ACTION: "gsum 2026-11-30 action v1",
    RecordKind.REQUEST: "gsum 2026-11-30 request v1",
    RecordKind.TOOLCHAIN: "gsum 2026-11-30 toolchain v1",
    RecordKind.PROMPT: "gsum 2026-11-30 prompt v1",
    RecordKind.SCHEMA: "gsum 2026-11-30 schema v1",
    RecordKind.PERIMETER: "gsum 2026-11-30 perimeter v1",
}
KEYS = {
    RecordKind.ACTION: "4c146e5c4f577d89cb5f6f5a312a37cf354f1d4994abe89819b72a5b4293e267",
    RecordKind.REQUEST: "79c47f75ff034858236bb0a100076fbb0d7d52f1076be8407508ec86806a5dbe",
    RecordKind.TOOLCHAIN: "f514508d91ab02d977ff9168a440e515ace4f9839e5b77a485ee6f34aaa65726",
    RecordKind.PROMPT: "ad6fabbc6e62983e96bf6c6017f3200ecc8bd20d531f65fbcd396843172d33ef",
    RecordKind.SCHEMA: "44027ff23c69737ef185f21ad8bb9e76243d13d118c65cefe9cbcf939e9866ea",
    RecordKind.PERIMETER: "542e783b873f9e5b391ccb6cded09da9844503e64d1c3a805b9138e084ed608d",
}


def test_every_kind_is_pinned():
    assert set(CONTEXTS) == set(KEYS) == set(RecordKind)
    assert KEY_SCHEMA == 1


@pytest.mark.parametrize("kind", RecordKind)
def test_a_key_is_pinned_with_its_context_and_bytes(kind):
    preimage = preimage_of(kind, RECORD)
    assert kind.context == CONTEXTS[kind]
    assert (preimage.kind, preimage.data, preimage.key) == (kind, PREIMAGE, KEYS[kind])


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"),
        (b"gsum", "04af430fc1d69ae198ca132eaf43d97c529f1f67af5eb03f2579228c7dc5a6d9"),
    ],
)
def test_a_blob_digest_is_plain_blake3(data, digest):
    assert blob_digest(data) == digest
    assert len(digest) == HEX_LENGTH


def test_sha256_is_the_published_one():
    assert sha256_hex(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.skipif(shutil.which("b3sum") is None, reason="b3sum is not installed")
@pytest.mark.parametrize("kind", RecordKind)
def test_b3sum_recomputes_a_key(kind):
    command = ["b3sum", "--no-names", "--derive-key", kind.context]
    ran = subprocess.run(command, input=PREIMAGE, capture_output=True, check=True)
    assert ran.stdout.decode().strip() == KEYS[kind]


@given(st.binary(max_size=200))
def test_no_two_kinds_and_no_blob_share_a_name(data):
    names = [blob_digest(data), sha256_hex(data), *(derive_key(kind, data) for kind in RecordKind)]
    assert len(set(names)) == len(names)


def test_no_context_is_the_beginning_of_another():
    for one, other in itertools.permutations((kind.context for kind in RecordKind), 2):
        assert not other.startswith(one)


@given(st.binary(max_size=50), st.integers(0, 399))
def test_one_turned_bit_is_another_key(data, bit):
    changed = bytearray(data or b"\x00")
    changed[bit // 8 % len(changed)] ^= 1 << bit % 8
    for kind in RecordKind:
        assert derive_key(kind, bytes(changed)) != derive_key(kind, data or b"\x00")
