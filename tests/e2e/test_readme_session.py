"""The README's session with the real model, word for word: build, show, edit, STALE, why, rebuild, nothing to do.

Then the rest of the exercise of S-037: only the reduce prompt changes, and twelve leaves are reused.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("readme", ROOT / "benchmarks/readme.py")
readme = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(readme)

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]
LABEL = readme.LABEL


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return readme.workspace(tmp_path_factory.mktemp("readme"))


@pytest.fixture(scope="module")
def blocks(folder):
    return readme.session(folder)


@pytest.mark.parametrize("name", readme.SESSION)
def test_a_block_of_the_readme_is_what_the_session_prints(blocks, name):
    written = readme.readme_blocks((ROOT / "README.md").read_text())
    assert readme.comparable(blocks[name]) == readme.comparable(written[name])


def gsum_json(folder, *arguments):
    code, output = readme.gsum(folder, *arguments, "--json")
    return code, json.loads(output)


@pytest.mark.usefixtures("blocks")
def test_the_rebuild_recomputed_one_leaf_and_its_two_ancestors(folder):
    code, log = gsum_json(folder, "log", "2")
    assert code == 0
    null, rebuild = log["invocations"]
    assert null["recomputed"] == []
    assert rebuild["recomputed"] == [f"//dossier:S-037/{part}" for part in ("leaf-11", "reduce-02", "root")]
    assert rebuild["failed"] == []


@pytest.mark.usefixtures("blocks")
def test_every_claim_cites_the_line_that_states_it(folder):
    code, shown = gsum_json(folder, "show", LABEL)
    assert code == 0
    assert shown["claims"]
    for claim in shown["claims"]:
        fields = claim["values"]
        fact = f"Product {fields['subject']} {fields['field']}: {fields['value']}."
        assert fact in [evidence["quote"] for evidence in claim["evidence"]]


@pytest.mark.usefixtures("blocks")
def test_a_new_reduce_prompt_recomputes_four_and_reuses_twelve_leaves(folder):
    file = folder / "BUILD.toml"
    text = file.read_text()
    assert text.count('reduce_prompt = "reduce-v1"') == 1
    file.write_text(text.replace('reduce_prompt = "reduce-v1"', 'reduce_prompt = "reduce-v2"'))
    code, refused = gsum_json(folder, "show", LABEL)
    assert code == 4
    assert "claims" not in refused
    code, report = gsum_json(folder, "build", LABEL)
    assert code == 0
    assert report["recomputed"] == [
        f"//dossier:S-037/{part}" for part in ("reduce-00", "reduce-01", "reduce-02", "root")
    ]
    assert len(report["cached"]) == 12
