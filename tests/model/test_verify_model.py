"""`gsum verify` on the shipped toolchain: the embedded model gives again, alone and in batches, what it gave."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from support.embedded import ROOT, require_model

pytestmark = pytest.mark.model
LABELS = [f"//dossier:S-037/leaf-0{number}" for number in range(2)]


def test_the_embedded_model_gives_what_is_stored_in_every_company(tmp_path):
    require_model()
    text = (ROOT / "BUILD.toml").read_text("utf-8")
    assert "[workspace]\n" in text
    # A worker that ends with its command: this test leaves nothing running.
    (tmp_path / "BUILD.toml").write_text(text.replace("[workspace]\n", "[workspace]\nworker_idle_seconds = 0\n"))
    shutil.copytree(ROOT / "corpus/dossiers/S-037", tmp_path / "corpus/dossiers/S-037")
    (tmp_path / "corpus/labels").mkdir()
    built = gsum(tmp_path, "build", *LABELS)
    assert len(built["generated"]) == len(LABELS)
    verified = gsum(tmp_path, "verify", *LABELS, "--rounds", "2")
    assert verified["exit_code"] == 0
    assert verified["requests"] == len(LABELS)
    assert verified["same"] == verified["executions"] == 2 * len(LABELS)
    assert [one["widths"] for one in verified["rounds"]] == [[1], [2]]


def gsum(folder, *arguments):
    """Run gsum in a workspace of its own and return its document."""
    environment = {name: value for name, value in os.environ.items() if name not in ("GSUM_STORE", "GSUM_DEBUG")}
    ran = subprocess.run(
        [sys.executable, "-m", "gsum.cli", *arguments, "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout)
