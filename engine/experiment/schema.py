"""The JSON Schema of the report, from its types: what `gsum experiment report --schema` prints. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from gsum.engine.experiment.report import REPORT_SCHEMA, Report


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of report.json, titled with its version."""
    title = f"report of the reference experiment, version {REPORT_SCHEMA}"
    plain = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(Report)))  # defaults are written as in JSON
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **plain}
