"""The README's "Your own model", taken from the README as it is written, and what holds of such a program."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from support.cli import Gsum

from gsum.store.errors import ExitCode

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
SECTION = README.partition("### Your own model\n")[2].partition("\n## ")[0]
BLOCKS = [
    "".join(line[4:] if line.strip() else line for line in block.splitlines(keepends=True))
    for block in re.findall(r"(?:^(?: {4}.*)?\n)+", SECTION, re.MULTILINE)
    if block.strip()
]
TOOLCHAIN, LINES = BLOCKS
REQUEST, ANSWER = LINES.strip().splitlines()
KEY = json.loads(ANSWER)["key"]

REST = """
[workspace]
name = "letters"
principal = "me"
default_toolchain = "mine"

[sources.letters]
path = "letters"

[prompt.ask]
system = "S"
instruction = "I"

[schema.lamp]
fields = ["lamp", "what", "value"]

[package.lamps]
rule = "summary_tree"
sources = "letters"
schema = "lamp"
map_prompt = "ask"
reduce_prompt = "ask"
fan_in = 2
map_input_tokens = 2048
reduce_input_tokens = 2048
"""

PROGRAM = """
import json, sys
for line in sys.stdin:
    with open("requests.jsonl", "a") as log:
        log.write(line)
    request = json.loads(line)
    answer = {answer!r}.replace({key!r}, request["key"])
    if "; what: " in request["messages"][-1]["content"]:  # of a reduction there is one line
        answer = answer.replace("[2]", "[1]")
    print(answer, flush=True)
"""


def workspace_of(root: Path, answer: str, toolchain: str = TOOLCHAIN) -> Gsum:
    """Make a workspace of one letter whose toolchain is the README's."""
    gsum = Gsum(root)
    (root / "BUILD.toml").write_text(f"{REST}\n{toolchain}", "utf-8")
    (root / "letters/one").mkdir(parents=True)
    asked = json.loads(REQUEST)["messages"][-1]["content"].partition("\n\n")[2]
    text = "".join(re.sub(r"^\[\d+\] ", "", line) + "\n" for line in asked.split("\n"))
    (root / "letters/one/letter.txt").write_text(text, "utf-8")
    (root / "model.py").write_text(PROGRAM.format(answer=answer, key=KEY), "utf-8")
    return gsum


def requests_of(gsum: Gsum) -> list[dict[str, object]]:
    return [json.loads(line) for line in (gsum.root / "requests.jsonl").read_text("utf-8").splitlines()]


def test_the_readme_s_toolchain_and_answer_build_a_summary(tmp_path):
    gsum = workspace_of(tmp_path / "w", ANSWER)
    built = gsum("build", "//lamps:one")
    assert built.code == 0, built.err
    shown = gsum("show", "//lamps:one", "--json").document
    (claim,) = shown["claims"]
    assert claim["values"] == {"lamp": "L3", "what": "colour", "value": "blue"}
    assert claim["evidence"][0]["quote"] == "Lamp L3 colour: blue."
    assert gsum("build", "//lamps:one").code == 0
    assert len(requests_of(gsum)) == 2


def test_the_readme_s_request_is_what_the_program_gets(tmp_path):
    gsum = workspace_of(tmp_path / "w", ANSWER)
    gsum("build", "//lamps:one")
    leaf, root = requests_of(gsum)
    written = json.loads(REQUEST)
    assert list(leaf) == list(written)
    for name in written.keys() - {"key", "messages"}:
        assert leaf[name] == written[name], name
    assert [message["role"] for message in leaf["messages"]] == [message["role"] for message in written["messages"]]
    lines = written["messages"][-1]["content"].partition("\n\n")[2]
    assert leaf["messages"][-1]["content"] == f"I\n\n{lines}"
    (reduction,) = re.findall(r"claims \(`([^`]*)`\)", SECTION)
    assert root["messages"][-1]["content"] == f"I\n\n{reduction}"


def test_what_the_readme_declares_of_the_program_is_all_there_is(tmp_path):
    declared = tomllib.loads(TOOLCHAIN)["toolchain"]["mine"]
    assert declared["command"] == ["python3", "model.py"]
    gsum = workspace_of(tmp_path / "w", ANSWER, TOOLCHAIN.replace("reproducible = true", "reproducible = false"))
    refused = gsum("build", "//lamps:one")
    assert refused.code == ExitCode.DECLARATION
    assert "epoch" in refused.err


@pytest.mark.parametrize(
    ("extra", "code"), [("", 0), (',"token_ids":[1,2]', 0), (',"token_ids":[1,2,3]', ExitCode.ACTION_FAILED)]
)
def test_token_ids_are_held_to_max_new_tokens_and_bytes_are_none(tmp_path, extra, code):
    assert len(json.loads(ANSWER)["text"]) > 2
    few = TOOLCHAIN.replace("max_new_tokens = 384", "max_new_tokens = 2")
    gsum = workspace_of(tmp_path / "w", ANSWER.removesuffix("}") + extra + "}", few)
    ran = gsum("build", "//lamps:one/leaf-00")
    assert ran.code == code, ran.err
    if code == 0:
        size = 2 if extra else len(json.loads(ANSWER)["text"].encode())
        assert f"1 generated, {size} tokens" in ran.out
    else:
        assert "3 tokens are more than the 2 asked for" in ran.err
