"""`gsum log`: the builds of a principal, newest first, and what ran in each. History: it shows no claim."""

from __future__ import annotations

from itertools import islice
from typing import Any

import click
import msgspec

from gsum.cli.context import Config, current_config, options, reading_store
from gsum.cli.forecasting import calibration_document, calibration_lines
from gsum.cli.render import aligned, counted, duration, emit, emit_json, safe, table
from gsum.cli.reporting import event_line
from gsum.engine.events import ActionFailed, ActionFinished, ActionSkipped, AnyEvent, decode_event
from gsum.engine.explain import find_invocation, own_invocations
from gsum.engine.forecast.calibration import Judged, judged
from gsum.rules.loader import load_workspace
from gsum.store.api import Store
from gsum.store.errors import StoreError
from gsum.store.records import InvocationRecord, InvocationStatus

DEFAULT_LIMIT = 10
_COUNTS = ("cut_off", "generated", "ineligible", "pure", "failed", "skipped")


@click.command("log")
@click.argument("number", metavar="[N]", type=click.IntRange(min=1), default=DEFAULT_LIMIT)
@click.option("--invocation", metavar="ID", help="Say what ran in one build; the beginning of its id is enough.")
@click.option("--calibration", is_flag=True, help="Say how good the forecasts of the last N builds were.")
@options(principal=True)
def command(number: int, invocation: str | None, calibration: bool) -> None:
    """List the last N builds for the principal (10), or what ran in one of them."""
    config = current_config()
    if calibration and invocation is not None:
        raise click.UsageError("`--calibration` and `--invocation` exclude each other")
    root = config.root
    principal = config.principal or load_workspace(root).section.principal
    with reading_store(config, root) as store:
        if calibration:
            builds = list(judged(store, islice(own_invocations(store, principal), number)))
            _calibration(config, principal, builds)
            return
        if invocation is None:
            _list(config, principal, list(islice(own_invocations(store, principal), number)))
            return
        record = find_invocation(store, principal, invocation)
        events = _events(store, record)
    if config.json:
        emit_json("log", {"historical": True, "principal": principal, "invocations": [_detail(record, events)]})
    else:
        _print_one(config, record, events)


def _events(store: Store, record: InvocationRecord) -> list[AnyEvent]:
    try:
        return [decode_event(data) for data in store.events(record.id)]
    except msgspec.MsgspecError:
        facts = {"written by": f"gsum {record.version}"}
        hint = "use a gsum as new as the one that wrote them"
        raise StoreError(f"the events of build `{record.id}` can't be read", facts=facts, hint=hint) from None


def _list(config: Config, principal: str, records: list[InvocationRecord]) -> None:
    if config.json:
        invocations = [_summary(record) for record in records]
        emit_json("log", {"historical": True, "principal": principal, "invocations": invocations})
        return
    if not records:
        emit(config, f"`{safe(principal)}` has built nothing here yet")
        return
    emit(config, f"HISTORICAL: builds for `{safe(principal)}`; `gsum status` says what is current")
    rows = [
        (record.id, record.started, _status(record), " ".join(record.patterns), _counts(record)) for record in records
    ]
    for line in table(rows):
        emit(config, line)


def _calibration(config: Config, principal: str, builds: list[Judged]) -> None:
    if config.json:
        emit_json("log", {"historical": True, "principal": principal, **calibration_document(builds)})
        return
    for line in calibration_lines(builds):
        emit(config, line)


def _print_one(config: Config, record: InvocationRecord, events: list[AnyEvent]) -> None:
    emit(config, f"HISTORICAL: build {record.id}")
    facts = {
        "started": record.started,
        "status": _status(record),
        "patterns": " ".join(record.patterns),
        "principal": record.principal,
        "toolchain": record.toolchain,
        "counts": _counts(record),
    }
    for line in aligned(facts):
        emit(config, line)
    for event in events:
        if (shown := event_line(event)) is not None:
            emit(config, shown)
        elif isinstance(event, ActionSkipped):
            emit(
                config, f"  skipped                 {event.label}{f'  (for {event.because})' if event.because else ''}"
            )


def _status(record: InvocationRecord) -> str:
    if record.status is InvocationStatus.RUNNING:
        return "running or killed"
    return f"{record.status.value}{' (full)' if record.full else ''}"


def _counts(record: InvocationRecord) -> str:
    counts = [counted(record.targets, "target")]
    if record.status is not InvocationStatus.RUNNING:
        counts.append(f"{record.cached} cached")
    for name in _COUNTS:
        if number := record.count(name):
            counts.append(f"{number} {name.replace('_', ' ')}")
    if record.seconds is not None:
        counts += [counted(record.new_tokens, "token"), duration(record.seconds)]
    return ", ".join(counts)


def _summary(record: InvocationRecord) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(record)
    for name in ("schema", "runs", "lists"):
        del document[name]
    return {**document, **{name: list(record.labels(name)) for name in ("recomputed", *_COUNTS, "invalid")}}


def _detail(record: InvocationRecord, events: list[AnyEvent]) -> dict[str, Any]:
    actions: list[dict[str, str | None]] = []
    for event in events:
        match event:
            case ActionFinished():
                actions.append({"label": event.label, "key": event.key, "how": event.how, "status": event.status})
            case ActionFailed():
                actions.append({"label": event.label, "key": event.key, "how": "failed", "status": event.reason})
            case ActionSkipped():
                actions.append({"label": event.label, "key": event.key, "how": "skipped", "status": None})
            case _:
                pass
    return {**_summary(record), "actions": actions}
