"""Runs gsum for tests: in process with click's runner, or as a real process; workspaces with the fake model."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from click.testing import CliRunner
from support.workspaces import make_workspace

from gsum.cli.group import cli

FAKE_MODEL = Path(__file__).with_name("fake_model.py")

_TOOLCHAIN = """
[toolchain.fake]
executor = "command"
command = {command}
identity = "fake-1"
reproducible = {reproducible}
network = false
grammar = {{ strength = "none" }}
{extra}
"""


class Ran(msgspec.Struct, frozen=True):
    """What one command printed and its exit code."""

    code: int
    out: str
    err: str
    raw: bytes = b""

    @property
    def document(self) -> Any:
        """The one JSON document of standard output."""
        return json.loads(self.out)


class Gsum:
    """A workspace whose toolchain runs the fake model, and the command line in it. The call log is `calls`."""

    def __init__(
        self,
        root: Path,
        dossiers: Mapping[str, int | Mapping[str, str]] | None = None,
        *model_options: str,
        fan_in: int = 4,
        reproducible: bool = True,
        timeout_seconds: int = 60,
    ) -> None:
        self.root = root
        self.log = root.parent / f"{root.name}.calls"
        make_workspace(
            root,
            dossiers,
            toolchain=fake_toolchain(self.log, *model_options, reproducible=reproducible, timeout=timeout_seconds),
            fan_in=fan_in,
        )

    def __call__(self, *arguments: str, env: Mapping[str, str] | None = None) -> Ran:
        """Run a command in this process, from the workspace."""
        runner = CliRunner(env={"GSUM_STORE": None, "GSUM_DEBUG": None, "NO_COLOR": None, **(env or {})})
        with contextlib.chdir(self.root):
            result = runner.invoke(cli, list(arguments))
        return Ran(result.exit_code, result.stdout, result.stderr, result.stdout_bytes)

    @property
    def calls(self) -> int:
        """How many requests the fake model has had."""
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command as a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "gsum.cli", *arguments],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment(),
        )

    def model(self, *options: str) -> None:
        """Change the options of the fake model: they are in no key."""
        file = self.root / "BUILD.toml"
        text, count = re.subn(
            r"^command = .*$",
            lambda _: f"command = {_command(self.log, *options)}",
            file.read_text(),
            flags=re.MULTILINE,
        )
        assert count == 1
        file.write_text(text)


def fake_toolchain(log: Path, *options: str, reproducible: bool = True, timeout: int = 60) -> str:
    """Return the declaration of a toolchain `fake` that runs the fake model."""
    extra = f"timeout_seconds = {timeout}"
    if not reproducible:
        extra += '\nepoch = "1"'
    return _TOOLCHAIN.format(command=_command(log, *options), reproducible=str(reproducible).lower(), extra=extra)


def clean_environment() -> dict[str, str]:
    """Return this process's environment without what gsum reads of it."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GSUM_") and name != "NO_COLOR"}


def normalised(text: str) -> str:
    """Replace what differs between runs: times, durations, invocation ids, digests."""
    text = re.sub(r"\b\d{14}-[0-9a-f]{8}\b", "INVOCATION", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    text = re.sub(r"\b\d+\.\d s\b", "0.0 s", text)
    return re.sub(r"\b[0-9a-f]{16,64}\b", "HEX", text)


def _command(log: Path, *options: str) -> str:
    return json.dumps([sys.executable, str(FAKE_MODEL), "--log", str(log), *options])
