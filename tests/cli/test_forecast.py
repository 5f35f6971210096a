"""`gsum build --dry-run` says what a build would take; `gsum log --calibration` how that compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import Gsum
from support.workspaces import activate, edit_text, set_prompt

from gsum.engine.events import Accounted, decode_event
from gsum.store.local import open_store


@pytest.fixture
def gsum(tmp_path: Path) -> Gsum:
    return Gsum(tmp_path / "ws", {"S-1": 5, "S-2": 5})


def forecast(gsum: Gsum, *arguments: str) -> dict:
    return gsum("build", "--dry-run", "--json", *arguments).document["forecast"]


def test_without_history_it_says_so(gsum: Gsum) -> None:
    ran = gsum("build", "--dry-run", "//dossier:S-1")
    assert ran.out.splitlines()[-1] == "forecast: no history of builds here tells what 8 generations would take"
    assert not (gsum.root / ".gsum").exists()
    assert forecast(gsum, "//dossier:S-1")["unknown"] == 8


def test_what_asks_no_model_costs_none(gsum: Gsum) -> None:
    ran = gsum("build", "--dry-run", "//baseline:S-1")
    assert ran.out.splitlines()[-1] == "forecast: no generation: nothing that would run asks a model"


def test_one_dossier_tells_what_its_like_takes(gsum: Gsum) -> None:
    gsum("build", "//dossier:S-1")
    found = forecast(gsum, "//dossier:all")
    assert (found["actions"], found["modelled"], found["unknown"], found["history"]) == (8, 8, 0, 8)
    assert found["generations"] == {"low": 8.0, "median": 8.0, "high": 8.0}
    spent = gsum("build", "--json", "//dossier:all").document["new_tokens"]
    assert found["tokens"]["low"] <= spent <= found["tokens"]["high"]
    assert "8 generations (8–8)" in gsum("build", "--dry-run", "//dossier:all", "--full").out.replace("16", "8")


def test_a_query_says_the_same(gsum: Gsum) -> None:
    gsum("build", "//dossier:S-1")
    found = forecast(gsum, "//dossier:all")
    rows = {row.pop("measure"): row for row in gsum("query", "--json", "cost(//dossier:all)").document["rows"]}
    for measure in ("generations", "tokens", "seconds"):
        assert rows[measure] == found[measure]
    assert rows["actions"]["median"] == found["actions"]


def test_cut_offs_seen_before_are_expected_again(gsum: Gsum) -> None:
    gsum("build", "//dossier:S-1")
    text = (gsum.root / "corpus/dossiers/S-1/documents/D-00.v1.txt").read_text()
    for number in range(6):
        edit_text(gsum.root, "S-1", "D-00", text + "\n" * (number + 1))
        assert gsum("build", "--json", "//dossier:S-1").document["generated"] == []
    edit_text(gsum.root, "S-1", "D-00", text + "\n" * 9)
    found = forecast(gsum, "//dossier:S-1")
    assert (found["modelled"], found["generations"]["median"]) == (3, 0)


def test_a_build_keeps_forecast_and_actual(gsum: Gsum) -> None:
    gsum("build", "//dossier:S-1")
    activate(gsum.root, "S-1", "D-00", "2")
    expected = forecast(gsum, "//dossier:S-1")
    built = gsum("build", "--json", "//dossier:S-1").document
    with open_store(gsum.root / ".gsum") as store:
        (account,) = map(decode_event, store.last_events(built["invocation"]))
    assert isinstance(account, Accounted)
    assert account.complete
    assert account.actual.generations == len(built["generated"]) == 3
    assert account.actual.tokens == built["new_tokens"]
    assert account.forecast.tokens.median == expected["tokens"]["median"]


def test_a_null_build_writes_no_account(gsum: Gsum) -> None:
    gsum("build", "//dossier:S-1")
    null = gsum("build", "--json", "//dossier:S-1").document["invocation"]
    with open_store(gsum.root / ".gsum") as store:
        assert not any(isinstance(decode_event(event), Accounted) for event in store.events(null))


def test_calibration_puts_forecasts_to_the_test(gsum: Gsum) -> None:
    assert gsum("log", "--calibration").out == "no forecast with a history has been put to the test here yet\n"
    gsum("build", "//dossier:S-1")
    assert gsum("log", "--calibration", "--json").document["builds"] == []
    second = gsum("build", "--json", "//dossier:all").document["invocation"]
    set_prompt(gsum.root, "reduce-v1", "Otherwise.")
    third = gsum("build", "--json", "//dossier:all").document["invocation"]
    document = gsum("log", "--calibration", "--json").document
    assert [build["invocation"] for build in document["builds"]] == [third, second]
    measures = {one["measure"]: one for one in document["calibration"]}
    assert set(measures) == {"generations", "tokens", "seconds"}
    assert measures["generations"]["forecasts"] == 2
    of_second = document["builds"][1]["measures"]["generations"]
    assert of_second == {"low": 8.0, "median": 8.0, "high": 8.0, "actual": 8, "held": True}
    lines = gsum("log", "--calibration").out.splitlines()
    assert lines[1].startswith(third)
    assert "within bounds (80% expected)" in lines[-1]


def test_after_builds_of_like_size_the_clock_is_forecast_beside_model_time(gsum: Gsum) -> None:
    for number in range(3):
        assert "by the clock" not in gsum("build", "--dry-run", "//dossier:S-1").out
        set_prompt(gsum.root, "map-v1", f"Otherwise {number}.")
        gsum("build", "//dossier:S-1")
    set_prompt(gsum.root, "map-v1", "Once more.")
    found = forecast(gsum, "//dossier:S-1")
    assert 0 < found["wall"]["low"] <= found["wall"]["median"] <= found["wall"]["high"]
    (line,) = [line for line in gsum("build", "--dry-run", "//dossier:S-1").out.splitlines() if "forecast:" in line]
    assert "of model time, " in line
    assert line.endswith(" by the clock")


def test_another_principal_s_builds_tell_nothing(gsum: Gsum) -> None:
    gsum("build", "//dossier:S-1")
    assert forecast(gsum, "--principal", "somebody", "//dossier:S-2")["history"] == 0
    assert gsum("log", "--calibration", "--json", "--principal", "somebody").document["builds"] == []


def test_calibration_and_one_build_exclude_each_other(gsum: Gsum) -> None:
    ran = gsum("log", "--calibration", "--invocation", "x")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "error: `--calibration` and `--invocation` exclude each other")
