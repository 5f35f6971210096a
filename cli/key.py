"""`gsum key`: the action key of a target as declared now, or the bytes that it hashes."""

from __future__ import annotations

import sys

import click

from gsum.cli.context import current_config, options
from gsum.cli.render import emit, emit_json
from gsum.cli.targets import open_target


@click.command("key")
@click.argument("label", metavar="LABEL")
@click.option("--preimage", is_flag=True, help="Print the bytes that the key hashes: canonical JSON, no newline.")
@click.option("--context", is_flag=True, help="Print the derive-key context that the key is hashed under.")
@options(principal=True, toolchain=True)
def command(label: str, preimage: bool, context: bool) -> None:
    """Print the action key of LABEL.

    Anyone can compute it again:

    \b
      gsum key LABEL --preimage | b3sum --derive-key "$(gsum key LABEL --context)"
    """  # noqa: D301 - click reads the character
    config = current_config()
    if preimage and context:
        raise click.UsageError("`--preimage` and `--context` exclude each other")
    target = open_target(config, label)
    name, action = target.label, target.universe.keys.actions[target.label].action
    if config.json:
        document = {"label": name, "key": action.key, "context": action.kind.context}
        emit_json("key", {**document, "preimage": action.data.decode()})
    elif preimage:
        sys.stdout.buffer.write(action.data)
    else:
        emit(config, action.kind.context if context else action.key)
