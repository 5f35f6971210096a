"""llama.cpp's server beside the engine: the same weights in bf16, the same token ids, greedy. No part of gsum."""

from __future__ import annotations

import http.client
import socket
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
from generate.ways import Asked, Turn, cpu_of

_ROOM = 2048
"""Tokens of context that a slot has, at least."""
_START_SECONDS = 120


class LlamaServer:
    """A server with a number of slots; each slot has seen the shared prefix before the first turn, as a warm worker."""

    def __init__(self, binary: Path, model: Path, slots: int, threads: int, asked: Sequence[Asked]) -> None:
        self.name = f"llama.cpp bf16, {slots} slot{'s' * (slots > 1)}, {threads} thread{'s' * (threads > 1)}"
        self._asked, self._slots, self._port = list(asked), slots, _free_port()
        longest = max(len(one.prompt) + one.new_tokens for one in asked)
        context = slots * max(_ROOM, -(-longest // 256) * 256)
        began = time.monotonic()
        self._process = subprocess.Popen(
            [
                str(binary),
                *("--model", str(model), "--host", "127.0.0.1", "--port", str(self._port)),
                *("--parallel", str(slots), "--ctx-size", str(context)),
                *("--threads", str(threads), "--threads-batch", str(threads)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait()
        self._all([Asked(one.prompt, 1) for one in self._asked[:slots]])
        self.start = time.monotonic() - began

    def turn(self) -> Turn:
        """Answer all prompts once, as many at a time as there are slots."""
        before, began = cpu_of([self._process.pid]), time.monotonic()
        outputs = self._all(self._asked)
        return Turn(
            requests=len(outputs),
            prompt_tokens=sum(len(one.prompt) for one in self._asked),
            new_tokens=sum(map(len, outputs)),
            wall=time.monotonic() - began,
            cpu=cpu_of([self._process.pid]) - before,
            outputs=tuple(outputs),
        )

    def close(self) -> None:
        """End the server."""
        self._process.terminate()
        self._process.wait()

    def _all(self, asked: Sequence[Asked]) -> list[tuple[int, ...]]:
        with ThreadPoolExecutor(self._slots) as pool:
            return list(pool.map(self._complete, asked))

    def _complete(self, asked: Asked) -> tuple[int, ...]:
        """Generate exactly as many tokens as asked for: no grammar, no end."""
        body = {
            "prompt": asked.prompt,
            "n_predict": asked.new_tokens,
            "temperature": 0,
            "top_k": 1,
            "repeat_penalty": 1.0,
            "ignore_eos": True,
            "cache_prompt": True,
            "return_tokens": True,
        }
        return tuple(self._post("/completion", body)["tokens"])

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=1800)
        connection.request("POST", path, msgspec.json.encode(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if answer.status != http.client.OK:
            self.close()
            raise SystemExit(f"llama.cpp answered {answer.status}: {data[:400].decode('utf-8', 'replace')}")
        found: dict[str, Any] = msgspec.json.decode(data)
        return found

    def _wait(self) -> None:
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
                connection.request("GET", "/health")
                if connection.getresponse().status == http.client.OK:
                    return
            except OSError:
                if self._process.poll() is not None:
                    break
            time.sleep(0.1)
        self.close()
        raise SystemExit(f"llama.cpp's server did not start: code {self._process.returncode}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
