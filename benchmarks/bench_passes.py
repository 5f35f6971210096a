"""Says where a decoder's processor time goes: products, attention, the rest; and what a draft saves after a date edit.

`python benchmarks/bench_passes.py [TOOLCHAIN] [WIDTH] [COUNT]`, in a process that is held to the toolchain's numerics.
Prints JSON; the official table of ways is `bench_generate.py`'s.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec
import platformdirs

from gsum.engine.executors.local import numerics_environment
from gsum.engine.llm.attend import NAME, attend
from gsum.engine.llm.decode import Decoded, Decoder
from gsum.engine.llm.load import load
from gsum.engine.llm.schemes import SCHEMES, Scheme
from gsum.engine.llm.sources import locate_model
from gsum.rules.analysis import analyse
from gsum.rules.config import LocalToolchain, NumericsSection, Workspace
from gsum.rules.ingest import read_document
from gsum.rules.kinds import RULES
from gsum.rules.loader import load_workspace
from gsum.rules.requests import Request
from gsum.rules.rule import Inputs, ModelTerms

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("GSUM_CACHE") or platformdirs.user_cache_path("gsum"))
EDITED = 4
"""How many leaves get another date."""
P = ParamSpec("P")
R = TypeVar("R")
_DATE = re.compile(r"(delivery: )\d+ \w+")


class Clock:
    """Processor seconds by what they went to."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def around(self, name: str, call: Callable[P, R]) -> Callable[P, R]:
        """Return `call`, timed."""

        def timed(*args: P.args, **kwargs: P.kwargs) -> R:
            began = time.process_time()
            try:
                return call(*args, **kwargs)
            finally:
                self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - began

        return timed


def leaves(workspace: Workspace, declared: LocalToolchain, count: int, *, edited: bool) -> list[Request]:
    """Render the corpus' first leaves, with the date of each delivery changed or not."""
    terms = ModelTerms("0" * 64, declared.grammar.strength, declared.decoding.max_new_tokens)
    found: list[Request] = []
    for action in analyse(workspace, ["//dossier:..."]).actions.values():
        if action.path is None or action.prompt is None or len(found) == count:
            continue
        _, text = read_document(workspace.root, action.path, 10**7)
        text = _DATE.sub(r"\g<1>17 October", text) if edited else text
        inputs = Inputs(workspace.schemas["product"], "0" * 64, text, (), workspace.prompts[action.prompt], terms)
        request = RULES[action.rule].render(action, inputs)
        if isinstance(request, Request):
            found.append(request)
    return found


def run(decoder: Decoder, requests: Sequence[Request], drafts: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Generate for all, refilled at once; return what it took and what came of it."""
    waiting = {str(number): request for number, request in enumerate(requests)}
    done: dict[str, Decoded] = {}
    passes, began = 0, time.process_time()
    while waiting or decoder.keys:
        while waiting and not decoder.full:
            key = next(iter(waiting))
            decoder.add(key, waiting.pop(key), drafts.get(key, ()))
        for key, outcome in decoder.step():
            if not isinstance(outcome, Decoded):
                raise SystemExit(f"a request failed: {outcome}")
            done[key] = outcome
        passes += 1
    took = time.process_time() - began
    return {"seconds": took, "passes": passes, "done": [done[str(number)] for number in range(len(requests))]}


def measure(name: str, width: int, count: int) -> dict[str, Any]:
    """Measure in this process, which has the environment of a worker."""
    import torch  # noqa: PLC0415
    from transformers import AttentionInterface  # noqa: PLC0415

    workspace = load_workspace(ROOT)
    declared, numerics = _declared(workspace, name)
    torch.set_num_threads(numerics.threads or 1)
    model = locate_model(name, declared, cache_dir=CACHE, workspace_root=ROOT, environ=os.environ)
    loaded = load(name, declared, model.folder, CACHE)
    scheme = msgspec.structs.replace(SCHEMES[numerics.batching], width=width)
    clock = Clock()
    requests = leaves(workspace, declared, count, edited=False)
    decoder = Decoder(loaded, scheme)
    decoder.generate(requests[0])  # the prefix, the grammar's tokenizer
    plain = run(decoder, requests, {})
    before = torch.nn.functional.linear
    torch.nn.functional.linear = clock.around("products", before)
    AttentionInterface.register(NAME, clock.around("attention", attend))
    parts = run(decoder, requests, {})
    torch.nn.functional.linear = before
    AttentionInterface.register(NAME, attend)
    rest = parts["seconds"] - sum(clock.seconds.values())
    fresh = sum(one.prefilled + one.forced + one.sampled for one in plain["done"])
    return {
        "toolchain": name,
        "scheme": scheme.name,
        "width": width,
        "requests": count,
        "rows a request": round(fresh / count),
        "passes": plain["passes"],
        "cpu s a request": round(plain["seconds"] / count, 2),
        "of which": {key: round(value / count, 2) for key, value in {**clock.seconds, "rest": rest}.items()},
        "date edit": edit(Decoder(loaded, scheme), workspace, declared, scheme),
        "load": round(os.getloadavg()[0], 1),
    }


def edit(decoder: Decoder, workspace: Workspace, declared: LocalToolchain, scheme: Scheme) -> dict[str, Any]:
    """Generate leaves whose date has changed without a draft and with the old answer as one, one at a time."""
    old = run(decoder, leaves(workspace, declared, EDITED, edited=False), {})["done"]
    table: dict[str, Any] = {"leaves": EDITED, "answers changed": 0, "width": 1, "scheme": scheme.name}
    for way in ("without", "with"):
        table[way] = {"passes": 0, "cpu s": 0.0, "drafted": 0}
    for request, before in zip(leaves(workspace, declared, EDITED, edited=True), old, strict=True):
        answers = []
        for way, draft in (("without", ()), ("with", before.token_ids)):
            ran = run(decoder, [request], {"0": draft})
            table[way]["passes"] += ran["passes"]
            table[way]["cpu s"] = round(table[way]["cpu s"] + ran["seconds"], 2)
            table[way]["drafted"] += ran["done"][0].drafted
            answers.append(ran["done"][0].token_ids)
        if answers[0] != answers[1]:
            raise SystemExit("a draft changed an answer")
        table["answers changed"] += answers[0] != before.token_ids
    return table


def _declared(workspace: Workspace, name: str) -> tuple[LocalToolchain, NumericsSection]:
    declared = workspace.toolchains[name]
    if not isinstance(declared, LocalToolchain):
        raise SystemExit(f"the toolchain `{name}` is not a local one")
    return declared, workspace.numerics[declared.numerics]


def main() -> None:
    """Start the measuring process with a worker's environment, or be it."""
    defaults = ("smollm2", "8", "16")
    name, width, count = (*sys.argv[1:4], *defaults[len(sys.argv) - 1 :])[:3]
    if sys.argv[4:] == ["--measure"]:
        print(json.dumps(measure(name, int(width), int(count)), indent=1))
        return
    _, numerics = _declared(load_workspace(ROOT), name)
    argv = [sys.executable, __file__, name, width, count, "--measure"]
    subprocess.run(argv, env={**os.environ, **numerics_environment(numerics), "HF_HUB_OFFLINE": "1"}, check=True)


if __name__ == "__main__":
    main()
