"""Times 32 leaf prompts of the corpus: this engine batched and one at a time, and transformers' generate one at a time.

`python benchmarks/bench_generate.py [--write]`. One run, so that ratios hold; --write replaces the results file. The
slow ways take the first prompts only, and say how many. `generate` gets the same prompts and makes as many tokens.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from gsum.engine.executors.client import LineExecutor
from gsum.engine.executors.local import LocalDialect
from gsum.engine.executors.protocol import ExecRequest, Generated
from gsum.engine.llm.convert import converted_folder
from gsum.engine.llm.tokenize import PromptTokenizer
from gsum.rules.analysis import analyse
from gsum.rules.config import LocalToolchain, Workspace
from gsum.rules.ingest import read_document
from gsum.rules.kinds import RULES
from gsum.rules.loader import load_workspace
from gsum.rules.requests import Request
from gsum.rules.rule import Inputs, ModelTerms
from gsum.store.digests import Key

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("GSUM_CACHE") or platformdirs.user_cache_path("gsum"))
RESULTS = ROOT / "benchmarks" / "results"
PROMPTS = 32
ALONE = 4
"""How many of the prompts the slow ways are given."""
REFERENCES = (("float32", "sdpa"), ("bfloat16", "eager"))
LIBRARIES = ("torch", "transformers", "tokenizers", "llguidance")


class Way(msgspec.Struct, frozen=True):
    """One way to generate, and what it took. `cpu`: the seconds of the process that holds the model."""

    name: str
    requests: int
    prompt_tokens: int
    new_tokens: int
    start: float
    wall: float
    cpu: float
    load: float
    token_ids: list[list[int]] = []

    def row(self) -> dict[str, Any]:
        """Return what is published."""
        return {
            "way": self.name,
            "requests": self.requests,
            "prompt tokens": self.prompt_tokens,
            "new tokens": self.new_tokens,
            "wall s a request": round(self.wall / self.requests, 2),
            "cpu s a request": round(self.cpu / self.requests, 2),
            "new tokens a cpu s": round(self.new_tokens / self.cpu, 1),
            "load": round(self.load, 1),
        }


def leaf_requests(workspace: Workspace, toolchain: LocalToolchain) -> list[Request]:
    """Render the corpus' first leaves, dossier by dossier, as a build would."""
    terms = ModelTerms("0" * 64, toolchain.grammar.strength, toolchain.decoding.max_new_tokens)
    schema = workspace.schemas["product"]
    found: list[Request] = []
    for action in analyse(workspace, ["//dossier:..."]).actions.values():
        if action.path is None or action.prompt is None:
            continue
        _, text = read_document(workspace.root, action.path, 10**7)
        inputs = Inputs(schema, "0" * 64, text, (), workspace.prompts[action.prompt], terms)
        request = RULES[action.rule].render(action, inputs)
        if isinstance(request, Request):
            found.append(request)
        if len(found) == PROMPTS:
            return found
    raise SystemExit(f"the corpus has only {len(found)} leaves")


def engine(dialect: LocalDialect, requests: list[Request], width: int) -> Way:
    """Run a fresh worker: its start by the first request, then all of them."""
    executor = LineExecutor(dialect, reproducible=True, network=False, capacity=2 * width, width=width)
    began = time.monotonic()
    first = _drain(executor, requests[:1], "start")
    start = time.monotonic() - began - first[0].seconds
    children = _worker_cpu(executor)
    began = time.monotonic()
    done = _drain(executor, requests, "all")
    wall, cpu, load = time.monotonic() - began, _worker_cpu(executor) - children, os.getloadavg()[0]
    executor.close()
    new = sum(one.forced + one.sampled for one in done)
    prompts = sum(one.prompt_tokens for one in done)
    ids = [list(one.generation.token_ids) for one in done]
    return Way(f"gsum, {width} at a time", len(done), prompts, new, start, wall, cpu, load, ids)


def _worker_cpu(executor: LineExecutor) -> float:
    """Return the processor seconds of a running worker, from the system's table of processes."""
    fields = Path(f"/proc/{executor.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _drain(executor: LineExecutor, requests: list[Request], salt: str) -> list[Generated]:
    keys = [Key(f"{salt}-{index:02d}") for index in range(len(requests))]
    executor.submit([ExecRequest(key, one, 1800) for key, one in zip(keys, requests, strict=True)])
    done: dict[str, Generated] = {}
    while len(done) < len(requests):
        for outcome in executor.wait(None):
            if not isinstance(outcome, Generated):
                raise SystemExit(f"{outcome.message}: {outcome.facts}")
            done[outcome.key] = outcome
    return [done[key] for key in keys]


def reference(folder: str, dtype: str, attention: str) -> None:
    """Answer standard input's requests with transformers' generate, one at a time; print what it took."""
    import torch  # noqa: PLC0415 - the measuring process holds no model library
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig  # noqa: PLC0415

    torch.set_num_threads(1)
    asked = [(msgspec.convert(one, Request), count) for one, count in json.load(sys.stdin)]
    began = time.monotonic()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), attn_implementation=attention)
    model.generation_config = GenerationConfig(do_sample=False, pad_token_id=0, eos_token_id=2)
    prompts = [PromptTokenizer(tokenizer).prompt(one) for one, _ in asked]
    start = time.monotonic() - began
    began, cpu = time.monotonic(), time.process_time()
    new = 0
    for prompt, (_, count) in zip(prompts, asked, strict=True):
        ids = torch.tensor([[*prompt.shared, *prompt.rest]])
        mask = torch.ones_like(ids)
        out = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=count, min_new_tokens=count)
        new += out.shape[1] - ids.shape[1]
    took = time.monotonic() - began, time.process_time() - cpu
    total = sum(prompt.total for prompt in prompts)
    name = f"transformers generate, {dtype} {attention}"
    print(msgspec.json.encode(Way(name, len(asked), total, new, start, *took, os.getloadavg()[0])).decode())


def _reference(folder: Path, dtype: str, attention: str, asked: list[tuple[Request, int]]) -> Way:
    """Run `reference` in a process of its own, free to use all that the machine's processor has."""
    free = {name: value for name, value in os.environ.items() if not name.startswith(("MKL_", "ATEN_", "ONEDNN_"))}
    argv = [sys.executable, __file__, "--reference", str(folder), dtype, attention]
    env = {**free, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    lines = msgspec.json.encode(asked)
    ended = subprocess.run(argv, input=lines, env=env, check=True, stdout=subprocess.PIPE)
    return msgspec.json.decode(ended.stdout.splitlines()[-1], type=Way)


def run() -> dict[str, Any]:
    """Run all ways and return the report."""
    workspace = load_workspace(ROOT)
    declared = workspace.toolchains["smollm2"]
    if not isinstance(declared, LocalToolchain):
        raise SystemExit("the toolchain `smollm2` is not a local one")
    numerics = workspace.numerics[declared.numerics]
    requests = leaf_requests(workspace, declared)
    dialect = LocalDialect("smollm2", declared, numerics, cache_dir=CACHE, workspace_root=ROOT, environ=os.environ)
    batched = engine(dialect, requests, 8)
    print(batched.row(), flush=True)
    single = engine(dialect, requests[:ALONE], 1)
    print(single.row(), flush=True)
    asked = [(one, len(ids)) for one, ids in zip(requests, batched.token_ids[:ALONE], strict=False)]
    folder = converted_folder(declared, CACHE)
    others = [_reference(folder, dtype, attention, asked) for dtype, attention in REFERENCES]
    ways = [batched, single, *others]
    per_request = batched.cpu / batched.requests
    return {
        "machine": {"processor": _processor(), "cpus": os.cpu_count(), "system": platform.platform()},
        "versions": {name: metadata.version(name) for name in LIBRARIES} | {"python": platform.python_version()},
        "numerics": msgspec.to_builtins(numerics),
        "repeats": 1,
        "worker start s": round(batched.start, 1),
        "same tokens batched and alone": f"{_equal(batched, single)} of {single.requests}",
        "peak memory of the largest process, MB": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
        "ways": [way.row() for way in ways],
        "cpu ratio to gsum batched": {way.name: round(way.cpu / way.requests / per_request, 2) for way in ways[1:]},
    }


def _equal(batched: Way, single: Way) -> int:
    return sum(one == two for one, two in zip(batched.token_ids, single.token_ids, strict=False))


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def table(report: dict[str, Any]) -> str:
    """Return the report as text."""
    names = list(report["ways"][0])
    rows = [names, *([str(way[name]) for name in names] for way in report["ways"])]
    widths = [max(len(row[i]) for row in rows) for i in range(len(names))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    facts = [f"{name}: {value}" for name, value in report.items() if name != "ways"]
    return "\n".join([*facts, "", *lines]) + "\n"


def main() -> None:
    """Print the report, and write it with --write."""
    if sys.argv[1:2] == ["--reference"]:
        reference(*sys.argv[2:5])
        return
    report = run()
    print(table(report), end="")
    if "--write" in sys.argv:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "generate.json").write_text(json.dumps(report, indent=1) + "\n")
        (RESULTS / "generate.txt").write_text(table(report))


if __name__ == "__main__":
    main()
