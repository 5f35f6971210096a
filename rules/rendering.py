"""Rendering of prompts and inputs to chat messages. Pure.

Inputs are numbered from 1 and carry no id, version, digest, key, offset or status, so that an edit that does not
change what a child asserts gives the same messages (early cutoff). Document text enters as it is: whoever tokenizes
a message must treat its content as plain characters, even where it spells a control token of a chat template.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from gsum.rules.claims import Claim
from gsum.rules.config import Prompt, SummaryTreePackage, Workspace
from gsum.rules.documents import Line
from gsum.rules.requests import Message, Role

_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def leaf_input(lines: Sequence[Line]) -> str:
    """Return a document as its numbered non-empty lines: `[1] text`."""
    return "\n".join([f"[{line.number}] {line.text}" for line in lines])


def reduction_input(claims: Sequence[Claim]) -> str:
    """Return claims numbered from 1, one a line: `[3] subject: P-37-05; field: delivery; value: 25 February`."""
    return "\n".join(f"[{number}] {_claim_text(claim)}" for number, claim in enumerate(claims, 1))


def _claim_text(claim: Claim) -> str:
    return "; ".join(f"{name}: {_one_line(value)}" for name, value in claim.values.items())


def _one_line(value: str) -> str:
    """Write control characters and line breaks as JSON escapes, so that a value can't pose as another claim."""
    return _BREAKS.sub(lambda match: json.dumps(match[0])[1:-1], value)


def messages(prompt: Prompt, rendered: str) -> tuple[tuple[Message, ...], int]:
    """Return the messages of a request, and how many leading ones every request of the prompt shares."""
    shared = shared_messages(prompt)
    return (*shared, Message(Role.USER, _user_text(prompt, rendered))), len(shared)


def shared_messages(prompt: Prompt) -> tuple[Message, ...]:
    """Return the messages that every request of a prompt begins with."""
    shared = [Message(Role.SYSTEM, prompt.system)]
    for example in prompt.examples:
        shared.append(Message(Role.USER, _user_text(prompt, example.input)))
        shared.append(Message(Role.ASSISTANT, example.output))
    return tuple(shared)


def shared_by_reductions(workspace: Workspace) -> dict[str, tuple[Message, ...]]:
    """Return by the name of each map prompt what the requests begin with that will reduce its answers.

    Of several packages with one map prompt the last counts: it is a hint.
    """
    return {
        package.map_prompt: shared_messages(workspace.prompts[package.reduce_prompt])
        for package in workspace.packages.values()
        if isinstance(package, SummaryTreePackage) and package.map_prompt != package.reduce_prompt
    }


def _user_text(prompt: Prompt, rendered: str) -> str:
    return f"{prompt.instruction}\n\n{rendered}"
