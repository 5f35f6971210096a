"""`gsum experiment`: the group of its commands, each imported when it is called."""

# ruff: noqa: ARG002 - the signatures are those of the protocol
from __future__ import annotations

import importlib

import click

_COMMANDS = ("run", "report", "review", "compare")


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"gsum.cli.experiment_{cmd_name}").command
        return command


@click.group("experiment", cls=_Group)
def command() -> None:
    """Reproduce the reference experiment: mutations, independent full builds, audits, the exercise."""
