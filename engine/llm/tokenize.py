"""Turns messages into token ids by the model's own chat template, with contents that stay plain characters.

The template is rendered around placeholders; only its own text may become control tokens. A control token spelt in a
content is cut in two, so it is tokenised as the characters it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from jinja2 import TemplateError as JinjaError

from gsum.rules.requests import Message, Request

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class TemplateError(Exception):
    """The chat template does not carry the messages as they are."""


class PromptTokens(msgspec.Struct, frozen=True):
    """A prompt's ids, cut where the messages shared by all requests of its prompt end."""

    shared: tuple[int, ...]
    rest: tuple[int, ...]

    @property
    def total(self) -> int:
        """How many tokens the prompt has, template included."""
        return len(self.shared) + len(self.rest)


class PromptTokenizer:
    """A tokenizer and its chat template."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._tokenizer = tokenizer
        added = [token.content for token in tokenizer.added_tokens_decoder.values() if not token.content.isspace()]
        longest_first = sorted((re.escape(content) for content in added if len(content) > 1), key=len, reverse=True)
        self._control = re.compile("|".join(longest_first)) if longest_first else None
        self._control_ids = frozenset(id_ for id_, t in tokenizer.added_tokens_decoder.items() if len(t.content) > 1)
        longest = max((len(token.encode()) for token in tokenizer.get_vocab()), default=1)
        # A normaliser may compose characters into shorter ones: allow for that in the bound.
        self._most_bytes = longest * (4 if tokenizer.backend_tokenizer.normalizer is not None else 1)

    def at_least(self, request: Request) -> int:
        """Return a cheap lower bound of the prompt's token count."""
        return sum(len(message.content.encode("utf-8", "replace")) for message in request.messages) // self._most_bytes

    def prompt(self, request: Request) -> PromptTokens:
        """Tokenise a request's messages, with the opening of the assistant's turn at the end.

        Raises:
            TemplateError: if the template drops, repeats or reorders messages.
        """
        whole = self._render(request.messages, opening=True)
        shared = self._render(request.messages[: request.shared], opening=False) if request.shared else ""
        if not whole.startswith(shared):  # a template that looks ahead: nothing of it can be shared
            shared = ""
        return PromptTokens(
            tuple(self._ids(shared, request.messages)), tuple(self._ids(whole[len(shared) :], request.messages))
        )

    def shared(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the ids that prompts of these first messages share, if the template does not look ahead.

        Raises:
            TemplateError: as `prompt`.
        """
        return tuple(self._ids(self._render(messages, opening=False), messages))

    def text(self, ids: Sequence[int]) -> str:
        """Return generated ids as text, control tokens spelt out."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def _render(self, messages: Sequence[Message], *, opening: bool) -> str:
        """Render the template with a placeholder in each message's place."""
        marked = [{"role": m.role.value, "content": _placeholder(i)} for i, m in enumerate(messages)]
        try:
            text = self._tokenizer.apply_chat_template(marked, tokenize=False, add_generation_prompt=opening)
        except JinjaError as error:
            raise TemplateError(f"the chat template refused the messages ({type(error).__name__})") from None
        if [int(i) for i in _PLACEHOLDER.findall(text)] != list(range(len(messages))):
            raise TemplateError("the chat template does not carry every message once, in order")
        return str(text)

    def _ids(self, rendered: str, messages: Sequence[Message]) -> list[int]:
        ids: list[int] = []
        pieces = _PLACEHOLDER.split(rendered)
        for index, piece in enumerate(pieces):
            if index % 2 == 0:
                ids += self._encode(piece)
            else:
                ids += self._content_ids(messages[int(piece)].content)
        return ids

    def _content_ids(self, content: str) -> list[int]:
        """Tokenise text in which nothing is a control token."""
        cuts = [0]
        if self._control is not None:
            cuts += [match.start() + 1 for match in self._control.finditer(content)]
        ids: list[int] = []
        for start, end in zip(cuts, [*cuts[1:], len(content)], strict=True):
            ids += self._encode(content[start:end])
        if not self._control_ids.isdisjoint(ids):
            ids = [i for character in content for i in self._encode(character)]
        return ids

    def _encode(self, text: str) -> list[int]:
        if not text:
            return []
        return list(self._tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids)


_PLACEHOLDER = re.compile("\ue000gsum-message-([0-9]+)\ue001")


def _placeholder(index: int) -> str:
    return f"\ue000gsum-message-{index}\ue001"
