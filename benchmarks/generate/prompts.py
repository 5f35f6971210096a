"""The prompts that every way is given: leaves of the corpus, rendered as a build would, and their token ids."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from gsum.rules.analysis import analyse
from gsum.rules.config import LocalToolchain, Workspace
from gsum.rules.ingest import read_document
from gsum.rules.kinds import RULES
from gsum.rules.requests import Request
from gsum.rules.rule import Inputs, ModelTerms

ZERO = "0" * 64


def leaf_requests(workspace: Workspace, toolchain: LocalToolchain, count: int) -> list[Request]:
    """Render the corpus' first leaves, dossier by dossier."""
    terms = ModelTerms(ZERO, toolchain.grammar.strength, toolchain.decoding.max_new_tokens)
    schema = workspace.schemas["product"]
    found: list[Request] = []
    for action in analyse(workspace, ["//dossier:..."]).actions.values():
        if action.path is None or action.prompt is None or len(found) == count:
            continue
        _, text = read_document(workspace.root, action.path, 10**7)
        inputs = Inputs(schema, ZERO, text, (), workspace.prompts[action.prompt], terms)
        request = RULES[action.rule].render(action, inputs)
        if isinstance(request, Request):
            found.append(request)
    if len(found) < count:
        raise SystemExit(f"the corpus has only {len(found)} leaves")
    return found


def token_ids(folder: Path, requests: list[Request]) -> list[tuple[int, ...]]:
    """Tokenise requests as the engine does, in a process of its own: this one holds no model library."""
    argv = [sys.executable, str(Path(__file__).with_name("reference.py")), "--tokens", str(folder)]
    ended = subprocess.run(argv, input=msgspec.json.encode(requests), check=True, stdout=subprocess.PIPE)
    return msgspec.json.decode(ended.stdout.splitlines()[-1], type=list[tuple[int, ...]])
