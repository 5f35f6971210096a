"""A rendered request: all that decides what a model is asked. Pure."""

from __future__ import annotations

import enum

import msgspec


class Role(enum.Enum):
    """The role of a chat message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class Message(msgspec.Struct, frozen=True):
    """One chat message."""

    role: Role
    content: str


class Request(msgspec.Struct, frozen=True):
    """Messages, grammar and budgets. `grammar` is Lark text in llguidance's dialect; null: unconstrained.

    `shared` counts the leading messages (system, examples) that every request of this prompt has in common.
    `toolchain` and `perimeter` are keys of their own records; `salt` disowns generations. The canonical JSON of a
    request is its key's preimage.
    """

    messages: tuple[Message, ...]
    shared: int
    grammar: str | None
    max_new_tokens: int
    input_tokens: int
    toolchain: str
    perimeter: str
    salt: str = ""
    schema: int = 1
