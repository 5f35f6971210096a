"""Forecasts and their calibration as text and as JSON documents. Prints nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from gsum.cli.render import counted, duration, table
from gsum.engine.forecast.calibration import MEASURES, Judged, calibrate
from gsum.engine.forecast.model import LEVEL, Estimate, Forecast

_PERCENT = f"{LEVEL:.0%}"


def forecast_lines(found: Forecast) -> list[str]:
    """Return what a plan is expected to take; says so where no history tells."""
    if not found.modelled:
        return ["forecast: no generation: nothing that would run asks a model"] if found.actions else []
    if found.unknown == found.modelled:
        return [f"forecast: no history of builds here tells what {counted(found.unknown, 'generation')} would take"]
    clock = "" if found.wall.median is None else f", {_measure('seconds', found.wall)} by the clock"
    lines = [
        f"forecast: {_measure('generations', found.generations)}, {_measure('tokens', found.tokens)},"
        f" {_measure('seconds', found.seconds)} of model time{clock}",
        f"  medians and {_PERCENT} bounds, from {counted(found.history, 'execution')} of earlier builds",
    ]
    if found.unknown:
        lines.append(f"  no history for {counted(found.unknown, 'action')}: the medians leave them out")
    return lines


def _measure(name: str, estimate: Estimate) -> str:
    """Return one figure: `12 generations (9–14)`."""
    median, bounds = shown(name, estimate.median), f"{shown(name, estimate.low)}–{shown(name, estimate.high)}"
    unit = "" if name == "seconds" else f" {name if median != '1' else name.removesuffix('s')}"
    return f"{median}{unit} ({bounds})"


def shown(name: str, value: float | None) -> str:
    """Return a figure of a measure; null is unbounded."""
    if value is None:
        return "?"
    return duration(value) if name == "seconds" else f"{value:,.0f}"


def calibration_lines(builds: Sequence[Judged]) -> list[str]:
    """Return forecast against actual of each build, and how good the forecasts were."""
    if not builds:
        return ["no forecast with a history has been put to the test here yet"]
    rows: list[tuple[str, ...]] = [("build", *MEASURES)]
    for build in builds:
        cells = []
        for measure in MEASURES:
            estimate, actual = build.pair(measure)
            mark = "" if estimate.holds(actual) else " !"
            cells.append(f"{shown(measure, actual)} of {_measure(measure, estimate)}{mark}")
        rows.append((build.record.id, *cells))
    lines = table(rows)
    for one in calibrate(builds):
        ratio = "" if one.ratio is None else f"; actual / forecast {one.ratio:.2f} (median)"
        lines.append(f"{one.measure}: {one.held} of {one.forecasts} within bounds ({_PERCENT} expected){ratio}")
    return lines


def calibration_document(builds: Sequence[Judged]) -> dict[str, Any]:
    """Return the same as data."""
    return {
        "level": LEVEL,
        "builds": [
            {
                "invocation": build.record.id,
                "started": build.record.started,
                "measures": {
                    measure: {**msgspec.to_builtins(estimate), "actual": actual, "held": estimate.holds(actual)}
                    for measure in MEASURES
                    for estimate, actual in (build.pair(measure),)
                },
            }
            for build in builds
        ],
        "calibration": [msgspec.to_builtins(one) for one in calibrate(builds)],
    }
