"""A deterministic stand-in for a model, as a program of the command executor: `python fake_model.py [OPTIONS]`.

It copies claims out of the input it is shown. Its faults are asked for by options, so that tests meet real processes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

_LINE = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
_CHILD = re.compile(r"^subject: (?P<subject>.*?); field: (?P<field>.*?); value: (?P<value>.*)$")
_FACT = re.compile(r"^Product (?P<subject>\S+) (?P<field>delivery|status|quantity|site): (?P<value>[^.\n]+)\.$")
_PLAIN = re.compile(r"^(?P<subject>\S+) (?P<field>\S+): (?P<value>[^.\n]+)\.?$")


def generate(last_message: str, max_claims: int = 4, seed: str = "") -> str:
    """Return the compact JSON a cooperative model would write for the last user message.

    `seed` changes the choice (it skips that many candidates), as another model or prompt would.
    """
    numbered = [(int(number), text) for number, text in _LINE.findall(last_message)]
    claims = [claim for number, text in numbered if (claim := _claim(number, text)) is not None]
    skip = sum(seed.encode()) % 2 if len(claims) > max_claims else 0
    return json.dumps({"claims": claims[skip : skip + max_claims]}, ensure_ascii=False, separators=(",", ":"))


def _claim(number: int, text: str) -> dict[str, object] | None:
    match = _CHILD.match(text) or _FACT.match(text) or _PLAIN.match(text)
    return None if match is None else {**match.groupdict(), "evidence": [number]}


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _misbehave(args: argparse.Namespace, count: int, key: str) -> None:
    """Do the fault asked for at this request, if any. `count` counts requests over all restarts."""
    if args.crash_at == count:
        _say("crashing as asked\n")
        os.kill(os.getpid(), signal.SIGKILL)
    if args.exit_at == count:
        _say("exiting as asked\n")
        os._exit(7)
    if args.crash_always:
        os._exit(9)
    if args.hang_at == count:
        if args.child_pid_file:
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            Path(args.child_pid_file).write_text(str(child.pid))
        time.sleep(600)
    if args.noise:
        _say("noise " * 4000 + "\n")
    time.sleep(args.slow)


GARBAGE = {
    "text": b"not json\n",
    "nul": b'{"key":"\0"}\n',
    "key": b'{"key":"other","text":"{}","stop":"eos"}\n',
    "unknown": b'{"key":"KEY","text":"{}","stop":"eos","extra":1}\n',
    "stop": b'{"key":"KEY","text":"{}","stop":"tired"}\n',
    "utf8": b'{"key":"KEY","text":"\xff","stop":"eos"}\n',
    "surrogate": b'{"key":"KEY","text":"\\ud800","stop":"eos"}\n',
    "empty": b"\n",
    "twice": b'{"key":"KEY","text":"{}","stop":"eos"}\n{"key":"KEY","text":"{}","stop":"eos"}\n',
    "list": b"[1,2]\n",
    "neither": b'{"key":"KEY"}\n',
    "reason": b'{"key":"KEY","error":"no","reason":"whim"}\n',
}


def _garbage(kind: str, key: str) -> bytes:
    if kind == "oversized":
        return b"x" * (65 * 1024 * 1024) + b"\n"
    return GARBAGE[kind].replace(b"KEY", key.encode())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", help="append one line per call: its key, a tab, its process id")
    parser.add_argument("--max-claims", type=int, default=4)
    parser.add_argument("--seed", default="")
    parser.add_argument("--crash-at", type=int, default=0)
    parser.add_argument("--exit-at", type=int, default=0)
    parser.add_argument("--crash-always", action="store_true")
    parser.add_argument("--hang-at", type=int, default=0)
    parser.add_argument("--garbage-at", type=int, default=0)
    parser.add_argument("--garbage", default="text", choices=[*GARBAGE, "oversized"])
    parser.add_argument("--error-at", type=int, default=0)
    parser.add_argument("--slow", type=float, default=0.0)
    parser.add_argument("--noise", action="store_true")
    parser.add_argument("--child-pid-file")
    return parser.parse_args()


def _count(log: str | None, key: str) -> int:
    """Log a call and return its number over all restarts (1 when there is no log)."""
    if log is None:
        return 1
    with Path(log).open("a+") as file:
        file.write(f"{key}\t{os.getpid()}\n")
        file.flush()
        file.seek(0)
        return len(file.readlines())


def main() -> None:
    """Answer request lines until standard input ends."""
    args = _options()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        key = request["key"]
        count = _count(args.log, key)
        _misbehave(args, count, key)
        if args.garbage_at == count:
            sys.stdout.buffer.write(_garbage(args.garbage, key))
        elif args.error_at == count:
            answer = {"key": key, "error": "no\nanswer", "reason": "over_budget"}
            sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        else:
            text = generate(request["messages"][-1]["content"], args.max_claims, args.seed)
            answer = {"key": key, "text": text, "stop": "grammar" if request["grammar"] else "eos"}
            sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
