"""`gsum experiment compare`: two runs over the same snapshots, paired, with exact tests and intervals."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from gsum.cli.config import GivenPath
from gsum.cli.context import Config, current_config, options
from gsum.cli.render import aligned, emit, emit_json, table
from gsum.engine.experiment.compare import Comparison, Interval, compare_runs


@click.command("compare")
@click.argument("a", type=GivenPath(path_type=Path), metavar="A")
@click.argument("b", type=GivenPath(path_type=Path), metavar="B")
@options()
def command(a: Path, b: Path) -> int:
    """Compare the mutation runs kept in folders A and B: two toolchains or two prompts over the same dossiers.

    For each stage: which roots may be served, and which gold facts they hold. McNemar's exact test, two-sided,
    Holm-corrected over all rows; Wilson intervals for shares. Needs the extra `stats`.
    """
    config = current_config()
    found = compare_runs(config.cwd / a, config.cwd / b)
    if config.json:
        emit_json("experiment compare", {"comparison": msgspec.to_builtins(found)})
    else:
        _print(config, found)
    return 0


def _print(config: Config, found: Comparison) -> None:
    sides = {"A": found.a["toolchain"], "B": found.b["toolchain"], "dossiers": found.dossiers}
    for line in aligned(sides, indent=""):
        emit(config, line)
    rows: list[tuple[str, ...]] = [
        ("stage", "measure", "pairs", "both", "only A", "only B", "neither", "A", "B", "p", "p (Holm)")
    ]
    for test in found.tests:
        cells = (test.units, test.both, test.only_a, test.only_b, test.neither)
        rows.append(
            (
                test.stage,
                test.measure,
                *(f"{cell:,}" for cell in cells),
                _interval(test.a),
                _interval(test.b),
                f"{test.p:.4g}",
                f"{test.p_holm:.4g}",
            )
        )
    for line in table(rows):
        emit(config, line)
    emit(config, f"intervals at {found.level:.0%}; {found.note}")


def _interval(share: Interval) -> str:
    return f"{share.share:.3f} [{share.low:.3f}, {share.high:.3f}]"
