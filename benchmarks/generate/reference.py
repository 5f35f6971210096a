"""transformers' `generate`, one request at a time: how the reference was made. A process of its own.

`reference.py FOLDER DTYPE ATTENTION THREADS` answers lines of [[[ids], count], …]; `--tokens FOLDER` tokenises.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).resolve()


class Reference:
    """The process, from outside: free to use all instructions that the processor has."""

    def __init__(self, folder: Path, dtype: str, attention: str, threads: int, asked: Sequence[Any]) -> None:
        self.name = f"transformers generate, {dtype} {attention}, {threads} thread{'s' * (threads > 1)}"
        self._asked = list(asked)
        free = {n: v for n, v in os.environ.items() if not n.startswith(("MKL_", "ATEN_", "ONEDNN_"))}
        env = {**free, "OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
        began = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, str(HERE), str(folder), dtype, attention, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
        )
        self._line()
        self.start = time.monotonic() - began

    def turn(self) -> Any:  # noqa: ANN401 - a Turn
        """Answer all prompts once."""
        from generate.ways import Turn  # noqa: PLC0415 - the child has no such package

        asked = [(one.prompt, one.new_tokens) for one in self._asked]
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(asked) + b"\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._line(), type=Turn)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name}: the process ended with code {self._process.wait()}")
        return line


def serve(folder: str, dtype: str, attention: str, threads: str) -> None:
    """Load the model, say so, and answer lines until standard input ends."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, GenerationConfig  # noqa: PLC0415

    torch.set_num_threads(int(threads))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), attn_implementation=attention)
    model.generation_config = GenerationConfig(do_sample=False, pad_token_id=0, eos_token_id=2)
    print("ready", flush=True)
    for line in sys.stdin.buffer:
        asked = msgspec.json.decode(line, type=list[tuple[list[int], int]])
        began, cpu = time.monotonic(), time.process_time()
        outputs = []
        for prompt, count in asked:
            ids = torch.tensor([prompt])
            mask = torch.ones_like(ids)
            out = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=count, min_new_tokens=count)
            outputs.append(out[0, len(prompt) :].tolist())
        took = {"wall": time.monotonic() - began, "cpu": time.process_time() - cpu}
        counts = {"prompt_tokens": sum(len(prompt) for prompt, _ in asked), "new_tokens": sum(map(len, outputs))}
        turn = {"requests": len(asked), **counts, **took, "outputs": outputs}
        print(msgspec.json.encode(turn).decode(), flush=True)


def tokens(folder: str) -> None:
    """Print the token ids of standard input's requests."""
    from transformers import AutoTokenizer  # noqa: PLC0415

    from gsum.engine.llm.tokenize import PromptTokenizer  # noqa: PLC0415
    from gsum.rules.requests import Request  # noqa: PLC0415

    tokenizer = PromptTokenizer(AutoTokenizer.from_pretrained(folder))
    prompts = [tokenizer.prompt(one) for one in msgspec.json.decode(sys.stdin.buffer.read(), type=list[Request])]
    print(msgspec.json.encode([[*prompt.shared, *prompt.rest] for prompt in prompts]).decode())


if __name__ == "__main__":
    if sys.argv[1] == "--tokens":
        tokens(sys.argv[2])
    else:
        serve(*sys.argv[1:5])
