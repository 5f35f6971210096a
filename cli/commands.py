"""The group of all commands: each is imported when it is called. Knows their names, nothing of what they do."""

# ruff: noqa: ARG002 - the signatures are those of the protocol
from __future__ import annotations

import difflib
import importlib

import click

COMMANDS = {
    "build": "build",
    "show": "show",
    "status": "status",
    "explain-miss": "explain_miss",
    "verify": "verify",
    "query": "query",
    "doc": "doc",
    "key": "key",
    "cat": "cat",
    "log": "log",
    "fetch": "fetch",
    "toolchain": "toolchain",
    "doctor": "doctor",
    "worker": "worker",
    "experiment": "experiment",
}
"""Command names and the modules of `gsum.cli` that hold them, as `command`."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which help shows them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"gsum.cli.{COMMANDS[cmd_name]}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that arguments name; one that is unknown is answered with the nearest."""
        name = args[0]
        if name in COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean `gsum {near[0]}`?" if near else "gsum --help"
        raise click.UsageError(f"there is no command `{name}`\n{hint}", ctx)
