"""The peers' page: rows are counted in a real store, goals say what was reached, and the size of a run is named."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SMALL = {
    "rows": {"execution": 1.0, "entry": 1.0, "target": 1.0, "toolchain record": 0.01, "event": 0.1, "blob": 2.8},
    "start-up": {"base": 0.05, "gsum --version": 0.08, "gsum query deps": 0.11},
    "floor": {"actions": 1000, "cpu": 0.1, "program": 0.05},
    "load": 1.5,
}


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS / "peers"))


def test_an_action_of_a_cold_build_has_two_rows_beside_its_blobs(tmp_path, monkeypatch):
    import small
    from floor import each_action

    monkeypatch.setattr(small, "GSUM", str(Path(sys.executable).with_name("gsum")))
    monkeypatch.delenv("GSUM_STORE", raising=False)
    found = each_action({"rows": small.rows_an_action(tmp_path, 2)})
    assert found == {"execution": 1.0, "entry": 1.0}


def test_goals_of_start_up_and_rows_say_what_was_reached():
    from floor import small_goals
    from page import goal

    assert [goal(*one) for one in small_goals(SMALL)] == [
        "| start of `gsum --version`, CPU, of `base` | 2.00 | 1.60 | met |",
        "| start of `gsum query deps`, CPU, of `base` | 2.00 | 2.20 | not met |",
        "| rows an action of a cold build, beside blobs | 2.00 | 3.00 | not met |",
    ]


def test_python_s_floor_is_compared_with_what_others_took():
    from floor import floor_lines

    (said,) = floor_lines(SMALL, 7.5, 60.0)
    assert "150 µs of CPU an action, of which 50 in the program" in said
    assert "takes 75: a durable engine in Python is at 2.0 times that" in said
    assert "gsum takes 600: 450 µs are no floor" in said
    assert "at a load average of 1.5" in said
    assert "gsum takes" not in floor_lines(SMALL, None, 60.0)[0]


def test_the_page_names_the_size_of_the_run_of_very_many_and_leaves_out_what_was_not_taken():
    from page import ALONE, LARGE, Figures, page

    figures = Figures(json.loads(LARGE.read_text()))
    alone = json.loads(ALONE.read_text())
    written = page(figures, alone, None)
    assert f"here {alone[0]['actions']:,} actions were taken" in written
    assert "none were taken here" in page(figures, None, None)
    assert "Python's floor" not in written
    assert "Python's floor" in page(figures, alone, SMALL)
