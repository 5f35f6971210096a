"""What a command loads before it can answer: no store, no model, no graph library where none is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "transformers", "networkx", "rich", "tomlkit", "tree_sitter", "sqlite3", "asyncio", "platformdirs")
LIGHT = (["--version"], ["query", "deps //dossier:S-037/root"], ["query", "rdeps //corpus:S-037/D-37-11"])
BASE = ["-c", "import click, msgspec"]
MOST = 2.0
"""How many times the start of Python with click and msgspec a light command may take."""

_LOADED = """
import sys
from gsum.cli.main import main
try:
    main()
finally:
    print("\\n".join(sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize("words", LIGHT, ids=" ".join)
def test_a_light_command_loads_nothing_heavy(words: list[str]) -> None:
    ran = subprocess.run([sys.executable, "-c", _LOADED, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(ran.stderr.split())
    assert ran.stdout
    assert "click" in loaded
    assert loaded.isdisjoint(HEAVY)
    assert not any(name.startswith(("gsum.store.local", "gsum.engine.executors", "gsum.engine.llm")) for name in loaded)


@pytest.mark.parametrize("words", LIGHT[:2], ids=" ".join)
def test_a_light_command_starts_in_twice_the_time_of_its_libraries(words: list[str], tmp_path: Path) -> None:
    """In CPU time, with compiled modules: what the machine does beside this must not decide."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    gsum = ["-m", "gsum.cli", *words]
    _cpu_seconds(gsum, environment)
    best = dict.fromkeys(("base", "gsum"), 9.9)
    for _ in range(5):
        best["base"] = min(best["base"], _cpu_seconds(BASE, environment))
        best["gsum"] = min(best["gsum"], _cpu_seconds(gsum, environment))
    assert best["gsum"] <= MOST * best["base"]


def _cpu_seconds(arguments: list[str], environment: dict[str, str]) -> float:
    process = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime
