"""A faulty program for the command executor: what it answers depends on what it was asked just before.

`python forgetful_model.py [--log FILE]` is the fake model, but it keeps something of one request for the next, as a
server does that reuses a cache without clearing it.
"""

from __future__ import annotations

import json
import sys

from fake_model import generate


def main() -> None:
    """Answer request lines; after a request whose key is in the lower half, leave the last claim out."""
    before = "f"
    for line in sys.stdin.buffer:
        request = json.loads(line)
        key, content = request["key"], request["messages"][-1]["content"]
        text = generate(content, 1 if before < "8" else 4)
        sys.stdout.buffer.write(json.dumps({"key": key, "text": text, "stop": "eos"}).encode() + b"\n")
        sys.stdout.buffer.flush()
        before = key


if __name__ == "__main__":
    main()
