"""`gsum experiment review`: records that somebody read a sample, beside it and bound to its digest."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, cast

import click
import msgspec

from gsum.cli.asked import system_clock
from gsum.cli.config import GivenPath
from gsum.cli.context import current_config, options
from gsum.cli.render import emit, emit_json
from gsum.engine.experiment.sample import add_review


@click.command("review")
@click.argument("file", type=GivenPath(path_type=Path), metavar="FILE")
@click.option("--by", required=True, type=click.Choice(["human", "assistant"]), help="Who has read it.")
@click.option("--note", required=True, metavar="TEXT", help="What they found.")
@options()
def command(file: Path, by: str, note: str) -> int:
    """Record that the sample FILE was read. The sample and the report stay as they were computed."""
    config = current_config()
    if not note.strip():
        raise click.UsageError("`--note` is empty: say what was found")
    who = cast(Literal["human", "assistant"], by)
    review, beside = add_review(config.cwd / file, by=who, note=note, time=system_clock().now())
    if config.json:
        emit_json("experiment review", {"file": str(beside), "review": msgspec.to_builtins(review)})
    else:
        emit(config, f"{review.status} by {review.by}: sample {review.digest[:16]}, in {beside}")
    return 0
