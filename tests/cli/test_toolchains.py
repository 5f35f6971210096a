"""`gsum fetch`, `toolchain pin` and `doctor`: what is missing or wrong, exit 6, and what to type."""

from __future__ import annotations

import json
import tomllib
from importlib import metadata

import pytest
from support.cli import Gsum
from support.tiny_model import make_model, sha256_of

from gsum.store.errors import ExitCode

TINY = """
# A comment that stays.
[toolchain.tiny]
executor = "local"
numerics = "test"
device = "cpu"
dtype = "float32"
attention = "sdpa"
tied_embeddings = true
source = {{ kind = "folder", path = "model" }}
files = {files}
grammar = {{ strength = "none" }}

[numerics.test]
batching = "single-2"
threads = 1
libraries = {{ torch = "{torch}" }}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture
def gsum(tmp_path):
    return Gsum(tmp_path / "w", {"S-1": 1})


def declare(gsum, model, *, digests=None, torch="0.0.1"):
    """Declare the tiny model, by default with digests and a version that are wrong."""
    (gsum.root / "model").symlink_to(model)
    names = [path.name for path in model.iterdir() if path.suffix in (".json", ".safetensors")]
    wrong = dict.fromkeys(sorted(names), "0" * 64)
    files = ", ".join(f'"{name}" = "{digest}"' for name, digest in (digests or wrong).items())
    file = gsum.root / "BUILD.toml"
    file.write_text(file.read_text() + TINY.format(files=f"{{ {files} }}", torch=torch))
    return sorted(names)


def digests_of(model):
    return {path.name: sha256_of(path) for path in sorted(model.iterdir()) if path.suffix in (".json", ".safetensors")}


def test_pin_writes_what_is_seen_and_keeps_the_rest_of_the_file(gsum, model):
    declare(gsum, model)
    before = (gsum.root / "BUILD.toml").read_text()
    dry = gsum("toolchain", "pin", "tiny", "--dry-run")
    assert dry.code == 0, dry.err
    assert dry.out.endswith("dry run: BUILD.toml is unchanged\n")
    assert (gsum.root / "BUILD.toml").read_text() == before
    document = gsum("toolchain", "pin", "tiny", "--json").document
    assert set(document) == {"schema", "command", "toolchain", "file", "written", "changes"}
    assert document["written"] is True
    assert {change["place"] for change in document["changes"]} >= {"numerics.test.libraries.torch"}
    after = (gsum.root / "BUILD.toml").read_text()
    declared = tomllib.loads(after)
    assert declared["toolchain"]["tiny"]["files"] == digests_of(model)
    assert declared["numerics"]["test"]["libraries"] == {"torch": metadata.version("torch").partition("+")[0]}
    assert "# A comment that stays." in after
    added = [line[1:] for line in dry.out.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert added
    assert all(line in after.splitlines() and line not in before.splitlines() for line in added)


def test_a_program_has_nothing_to_pin(gsum):
    ran = gsum("toolchain", "pin", "fake")
    assert ran.code == ExitCode.TOOLCHAIN
    assert "is a program of yours" in ran.err


def test_an_unknown_toolchain_is_answered_with_the_nearest(gsum):
    for words in (["toolchain", "pin", "fke"], ["fetch", "--toolchain", "fke"], ["doctor", "--toolchain", "fke"]):
        ran = gsum(*words)
        assert ran.code == ExitCode.USAGE
        assert "did you mean `fake`?" in ran.err


def test_a_model_file_with_a_wrong_hash_is_refused_with_both_hashes(gsum, model):
    digests = digests_of(model)
    declare(gsum, model, digests={**digests, "model.safetensors": "0" * 64}, torch=metadata.version("torch"))
    for words in (["fetch", "--toolchain", "tiny"], ["build", "//dossier:S-1/leaf-00", "--toolchain", "tiny"]):
        ran = gsum(*words)
        assert ran.code == ExitCode.TOOLCHAIN
        assert "0" * 64 in ran.err
        assert digests["model.safetensors"] in ran.err
    assert gsum("status", "//dossier:S-1/leaf-00", "--toolchain", "tiny").out.startswith("NOT BUILT")


def test_a_missing_model_says_what_to_do(gsum, model):
    declare(gsum, model)
    (gsum.root / "model").unlink()
    for words in (["fetch", "--toolchain", "tiny"], ["build", "//dossier:S-1/leaf-00", "--toolchain", "tiny"]):
        ran = gsum(*words)
        assert ran.code == ExitCode.TOOLCHAIN
        assert "is not on this machine" in ran.err
        assert "hint: " in ran.err


def test_doctor_of_a_program_and_no_store_yet(gsum):
    ran = gsum("doctor")
    program = json.loads(gsum("doctor", "--json").out)["toolchains"][0]["findings"][0]["value"]
    assert ran.out == (
        "toolchain `fake` (default)\n"
        f"  ok   program  {program}\n"
        "store\n"
        f"  ok   folder  {gsum.root / '.gsum'}: not yet, the first build makes it\n"
    )
    assert ran.code == 0


def test_doctor_exits_10_for_a_damaged_store_and_5_for_one_that_can_t_be_read_as_other_commands_do(gsum, tmp_path):
    store = gsum.root / ".gsum"
    store.mkdir()
    (store / "store.sqlite").write_bytes(b"no database " * 1000)
    for words in (["doctor"], ["doctor", "--json"], ["log"]):
        assert gsum(*words).code == ExitCode.DAMAGE, words
    ran = gsum("doctor")
    assert "  NO   folder" in ran.out
    assert "the store is damaged" in ran.out
    assert gsum("doctor", "--json").document["exit_code"] == ExitCode.DAMAGE
    nowhere = str(tmp_path / "nowhere")
    assert gsum("doctor", "--store", nowhere).code == gsum("log", "--store", nowhere).code == ExitCode.STORE


def test_doctor_says_what_is_missing_and_exits_6_for_the_chosen_toolchain_alone(gsum, model):
    declare(gsum, model, digests=digests_of(model))
    ran = gsum("doctor")
    assert ran.code == 0
    assert "  NO   torch " in ran.out
    assert "type: pip install 'torch==0.0.1'" in ran.out
    assert "  ok   model " in ran.out
    assert gsum("doctor", "--toolchain", "tiny").code == ExitCode.TOOLCHAIN
    (gsum.root / "model").unlink()
    assert "  NO   model " in gsum("doctor").out


def test_doctor_of_a_program_that_is_not_there(gsum):
    file = gsum.root / "BUILD.toml"
    file.write_text(file.read_text().replace("command = [", 'command = ["./no-such-program", '))
    ran = gsum("doctor")
    assert ran.code == ExitCode.TOOLCHAIN
    assert "./no-such-program is not there or may not be run" in ran.out
    assert "type: check `command` in BUILD.toml" in ran.out
