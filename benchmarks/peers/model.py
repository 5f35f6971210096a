"""The peers' deterministic action as a gsum model: one JSON request a line in, one JSON answer a line out.

Claims carry the action's bytes as hex, so that the harness can hold gsum's roots against the same reference answer.
"""

from __future__ import annotations

import json
import re
import sys

from common import act, log_action  # the harness's, which puts itself on PYTHONPATH

_LINE = re.compile(r"^\[\d+\] (.*)$", re.MULTILINE)
REDUCTION_INPUTS = 4


def main() -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        system, user = (message["content"] for message in request["messages"])
        recipe, _, rendered = user.partition("\n\n")
        inputs = _LINE.findall(rendered)
        if inputs[0].startswith("out: "):
            parts = [bytes.fromhex(text.removeprefix("out: ")) for text in inputs]
            if len(parts) < REDUCTION_INPUTS:
                recipe = system  # the root: its recipe is the system text, as one prompt serves both
        else:
            parts = ["\n".join(inputs).encode()]
        log_action("action")
        claim = {"out": act(recipe.encode(), parts).hex(), "evidence": list(range(1, len(inputs) + 1))[:4]}
        answer = {"key": request["key"], "text": json.dumps({"claims": [claim]}), "token_ids": [0], "stop": "eos"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
