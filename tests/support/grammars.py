"""What llguidance makes of a grammar, byte by byte: whether it admits a text, and random texts that it admits."""

from __future__ import annotations

import random

import llguidance

from gsum.rules.claims import Claim
from gsum.rules.config import Strength

TOKENIZER = llguidance.LLTokenizer("byte")
STRICT = 256
"""Tokens below are the bytes; above stand the byte tokenizer's special tokens."""
CONSTRAINED = (Strength.SCHEMA, Strength.LITERAL, Strength.PATTERN)
DELIVERY = {"subject": "P-37-05", "field": "delivery", "value": "25 February"}
CHILDREN = [Claim({**DELIVERY, "subject": f"P-37-{day}"}, (f"D@1:0:{day}",)) for day in range(10, 22)]


def matcher(grammar: str) -> llguidance.LLMatcher:
    """Return a fresh matcher of a grammar that llguidance compiles without a complaint."""
    source = llguidance.LLMatcher.grammar_from_lark(grammar)
    failed, complaints = llguidance.LLMatcher.validate_grammar_with_warnings(source, TOKENIZER)
    assert not failed, complaints
    assert not complaints, complaints
    return llguidance.LLMatcher(TOKENIZER, source)


def admits(grammar: str, text: str) -> bool:
    """Whether the whole text, and not just a prefix of something longer, is in the grammar."""
    data = list(text.encode())
    machine = matcher(grammar)
    taken = machine.try_consume_tokens(data)
    assert not machine.get_error(), machine.get_error()
    return taken == len(data) and machine.is_accepting()


def walk(grammar: str, chooser: random.Random, most: int = 4000) -> str:
    """Return a text of the grammar, each byte drawn from those admitted, leaning to bytes that end strings."""
    machine = matcher(grammar)
    data = bytearray()
    while len(data) < most:
        mask = machine.compute_bitmask()
        allowed = [byte for byte in range(STRICT) if mask[byte // 8] >> byte % 8 & 1]
        if not allowed or (machine.is_accepting() and machine.is_stopped()):
            break
        byte = 0x22 if 0x22 in allowed and chooser.random() < 0.2 else chooser.choice(allowed)
        assert machine.consume_token(byte)
        data.append(byte)
    assert machine.is_accepting(), bytes(data)
    return data.decode()
