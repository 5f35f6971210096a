"""Canonical bytes: RFC 8785 JSON of strings, integers, booleans, null, arrays and objects with ASCII names. Pure.

msgspec with sorted members writes it; the tests hold it against the `rfc8785` library. Fractions are not
admitted: they are written as decimal strings by the caller.
"""

from __future__ import annotations

import msgspec

_ENCODER = msgspec.json.Encoder(order="sorted")


def canonical_json(value: object) -> bytes:
    """Encode a struct, dict, list or scalar as canonical JSON bytes.

    Raises:
        TypeError: if the value holds something JSON has no form for.
    """
    return _ENCODER.encode(value)
