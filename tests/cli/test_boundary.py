"""The one error boundary, the options that stand anywhere, and what is not imported."""

from __future__ import annotations

import shlex
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner
from support.cli import Gsum, clean_environment

from gsum.cli import commands
from gsum.cli.group import cli
from gsum.cli.render import error_lines
from gsum.store.errors import ExitCode
from gsum.store.version import VERSION


@pytest.fixture
def gsum(tmp_path):
    return Gsum(tmp_path / "w", {"S-1": 1})


def run(*arguments, **settings):
    return CliRunner().invoke(cli, list(arguments), **settings)


def test_version():
    assert run("--version").stdout == f"gsum, version {VERSION}\n"


def test_help_lists_every_command():
    out = run("--help").stdout
    for name in commands.COMMANDS:
        assert f"\n  {name}" in out


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_each_command_has_help_and_json(name):
    ran = run(name, "--help")
    assert ran.exit_code == 0
    assert f"Usage: gsum {name}" in ran.stdout
    if name not in ("doc", "toolchain", "experiment", "worker"):
        assert "--json" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("bild",), "there is no command `bild`", "did you mean `gsum build`?"),
        (("zzz",), "there is no command `zzz`", "gsum --help"),
        (("build",), "missing argument", "gsum build --help"),
        (("build", "--no-such-option", "//x:y"), "no such option `--no-such-option`\n", "gsum build --help"),
        (("build", "--colr", "//x:y"), "no such option `--colr`\n", "hint: did you mean "),
        (("status", "--store", "", "//x:y"), "invalid value for `--store`: is empty\n", "gsum status --help"),
        (("--store", "", "status", "//x:y"), "invalid value for `--store`: is empty\n", "gsum --help"),
        (("status", "-C", "", "//x:y"), "invalid value for `-C` / `--workspace`: is empty\n", "gsum status --help"),
        (("status", "--principal", "", "//x:y"), "invalid value for `--principal`: is empty\n", "gsum status --help"),
        (("build", "--events", "", "//x:y"), "invalid value for `--events`: is empty\n", "gsum build --help"),
        (("experiment", "run", "exercise", "--out", ""), "is empty\n", "gsum experiment run --help"),
        (("experiment", "report", ""), "is empty\n", "gsum experiment report --help"),
        (("experiment", "run"), "missing argument", "hint: choose from: mutations, exercise\n"),
        (("doc", "revok"), "no such command `revok`\n", "hint: did you mean `revoke`?"),
        (("log", "0"), "0 is not in the range", "gsum log --help"),
        (("key", "//x:y", "--preimage", "--context"), "exclude each other", "gsum key --help"),
    ],
)
def test_usage_errors_exit_2_with_one_sentence_and_a_hint(arguments, message, hint):
    ran = run(*arguments)
    assert ran.exit_code == ExitCode.USAGE
    assert ran.stderr.startswith("error: ")
    assert message in ran.stderr
    assert hint in ran.stderr
    document = __import__("json").loads(run(*arguments, "--json").stdout)
    assert document["error"]["exit_code"] == 2


@pytest.mark.parametrize("group", [(), ("doc",), ("toolchain",), ("experiment",)])
def test_a_group_alone_says_which_commands_it_has(group):
    ran = run(*group)
    assert ran.exit_code == ExitCode.USAGE
    called = " ".join(("gsum", *group))
    error, *listed, hint = ran.stderr.splitlines()
    assert error == f"error: `{called}` needs a command"
    assert hint == f"hint: {called} --help"
    names = {line.split()[0] for line in listed}
    shown = run(*group, "--help").stdout.partition("Commands:\n")[2].partition("\n\n")[0]
    assert names == {line.split()[0] for line in shown.splitlines() if line.startswith("  ") and line[2] != " "}
    assert names
    assert "\\n" not in ran.stderr


def test_a_hint_of_several_lines_is_aligned_under_itself():
    lines = error_lines("m", {}, "type one of\n\tone\n\ttwo")
    assert [click.unstyle(line) for line in lines] == ["error: m", "hint: type one of", "      one", "      two"]


def test_a_workspace_that_is_no_folder_is_not_looked_for_above(gsum):
    ran = gsum("status", "-C", "nowhere", "//...")
    assert ran.code == ExitCode.DECLARATION
    assert "nowhere` is no folder" in ran.err


def test_options_stand_before_or_after_the_command(gsum):
    assert gsum("--json", "status", "//...").document["command"] == "status"
    assert gsum("status", "//...", "--json").document["command"] == "status"
    assert gsum("--principal", "a", "status", "//...", "--principal", "b", "--json").document["principal"] == "b"


def test_the_workspace_is_found_from_below(gsum):
    done = subprocess.run(
        [sys.executable, "-m", "gsum.cli", "status", "//dossier:S-1"],
        cwd=gsum.root / "corpus/dossiers",
        capture_output=True,
        text=True,
        env=clean_environment(),
    )
    assert done.stdout == "NOT BUILT   //dossier:S-1/root\n1 target: 1 NOT BUILT\n"


def raising(monkeypatch, error):
    @click.command("status")
    def broken():
        raise error

    module = type(sys)("gsum.cli.broken")
    module.command = broken
    monkeypatch.setitem(sys.modules, "gsum.cli.broken", module)
    monkeypatch.setitem(commands.COMMANDS, "status", "broken")


def test_an_unexpected_error_is_a_bug_report_without_its_text(monkeypatch):
    raising(monkeypatch, ValueError("Product P-1-00 site: Secret hall."))
    ran = run("status", env={"GSUM_DEBUG": None})
    assert ran.exit_code == 70
    assert ran.stderr.startswith("error: this is a bug in gsum\n  kind   ValueError\n  place  test_boundary.py:")
    assert "Secret" not in ran.stderr + ran.stdout
    assert "Secret" in run("status", env={"GSUM_DEBUG": "1"}).stderr


def test_an_interruption_outside_a_build_exits_130(monkeypatch):
    raising(monkeypatch, KeyboardInterrupt())
    ran = run("status")
    assert (ran.exit_code, ran.stderr) == (ExitCode.INTERRUPTED, "error: interrupted\n")


def test_a_closed_pipe_is_quiet(gsum):
    script = f"{sys.executable} -m gsum.cli query //... --output json | head -c 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=gsum.root, capture_output=True, text=True, env=clean_environment()
    )
    assert done.stderr == ""
    assert done.returncode in (0, 141)


def test_colour_is_for_terminals_or_on_demand(gsum):
    assert "\x1b" not in gsum("status", "//...").out
    assert "\x1b[33mNOT BUILT\x1b[0m" in gsum("status", "//...", "--color", "always").out
    assert "\x1b" in gsum("show", "//dossier:S-1", "--color", "always").err
    assert "\x1b" not in gsum("show", "//dossier:S-1", "--color", "never").err


HEAVY = ("torch", "transformers", "networkx", "rich", "huggingface_hub", "llguidance")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["query", "//..."],
        ["status", "//..."],
        ["build", "//baseline:S-1"],
        ["build", "//baseline:S-1", "--json"],
        ["explain-miss", "//dossier:S-1"],
        ["doctor"],
    ],
)
def test_no_heavy_library_is_imported(gsum, arguments):
    code = (
        "import sys\n"
        "from gsum.cli.main import main\n"
        f"sys.argv = ['gsum', *{arguments!r}]\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    code = end.code\n"
        f"print('HEAVY', code, sorted(set(sys.modules) & set({HEAVY!r})))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=gsum.root, capture_output=True, text=True, env=clean_environment()
    )
    assert done.stdout.splitlines()[-1] in ("HEAVY 0 []", "HEAVY 4 []"), done.stdout + done.stderr


def test_any_encoding_of_the_terminal_will_do_and_json_is_utf_8(gsum):
    gsum("build", "//dossier:S-1")
    environment = {**clean_environment(), "PYTHONIOENCODING": "latin-1"}

    def show(*options):
        command = [sys.executable, "-m", "gsum.cli", "show", "//dossier:S-1", *options]
        return subprocess.run(command, cwd=gsum.root, capture_output=True, env=environment, check=True).stdout

    assert b"\\u201cProduct P-1-00 delivery: 1 March.\\u201d" in show()
    assert __import__("json").loads(show("--json").decode("utf-8"))["state"] == "VALID"


def test_a_label_that_is_no_text_is_a_usage_error(gsum):
    ran = subprocess.run(
        [sys.executable, "-m", "gsum.cli", "show", b"//dossier:\xff"],
        cwd=gsum.root,
        capture_output=True,
        env=clean_environment(),
    )
    assert ran.returncode == ExitCode.USAGE
    assert ran.stderr.startswith(b"error: ")
    assert b"bug" not in ran.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_is_no_bug_and_no_place_for_the_store(gsum, closed):
    commands = (["build", "//dossier:S-1"], ["show", "//dossier:S-1"], ["key", "//dossier:S-1", "--preimage"])
    for command in commands:
        line = shlex.join([sys.executable, "-m", "gsum.cli", *command])
        ran = subprocess.run(
            ["sh", "-c", f"{line} {closed}"], cwd=gsum.root, capture_output=True, env=clean_environment()
        )
        assert (ran.returncode, ran.stderr) == (0, b""), command
    assert gsum("status", "//dossier:S-1").code == 0


@pytest.mark.parametrize("option", ["--principal", "--toolchain"])
def test_an_option_that_is_no_text_is_a_usage_error(gsum, option):
    for command in ("build", "show", "explain-miss", "status"):
        ran = subprocess.run(
            [sys.executable, "-m", "gsum.cli", command, "//dossier:S-1", option, b"\xff"],
            cwd=gsum.root,
            capture_output=True,
            env=clean_environment(),
        )
        assert ran.returncode == ExitCode.USAGE, ran.stderr
        assert ran.stderr.startswith(b"error: ")


@pytest.mark.parametrize(
    "command",
    [
        ["query", b"//\xff"],
        ["doc", "activate", "//dossier:S-1", b"\xff", "--version", "1"],
        ["doc", "grant", "//dossier:S-1", "D-00", "--reader", b"\xff"],
    ],
)
def test_an_argument_that_is_no_text_is_one_json_error(gsum, command):
    ran = subprocess.run(
        [sys.executable, "-m", "gsum.cli", *command, "--json"],
        cwd=gsum.root,
        capture_output=True,
        env=clean_environment(),
    )
    assert ran.stderr == b""
    assert __import__("json").loads(ran.stdout)["error"]["exit_code"] == ran.returncode == ExitCode.USAGE
