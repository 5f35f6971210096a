"""Steps of an experiment as edits of text, the budget of an executor, and the bound on what is left. Pure modules."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.fake_executor import FakeExecutor

from gsum.engine.events import ActionFinished
from gsum.engine.executors.protocol import ExecRequest
from gsum.engine.experiment.budget import Budget, BudgetedExecutor
from gsum.engine.experiment.edits import Activate, Declare, Revoke, document_of, edit_build_file, parse_edits
from gsum.engine.experiment.edits import edit_manifest as edit
from gsum.engine.experiment.progress import Work
from gsum.engine.experiment.setup import Stage
from gsum.rules.requests import Message, Request, Role
from gsum.rules.toml import DeclarationError, TomlText
from gsum.store.digests import Key

ROOT = Path(__file__).parents[2]
EDITS = parse_edits(TomlText("corpus/edits.toml", (ROOT / "corpus/edits.toml").read_text()))
MANIFEST = (ROOT / "corpus/dossiers/S-010/dossier.toml").read_text()
BUILD = (ROOT / "BUILD.toml").read_text()


@pytest.mark.parametrize(
    ("dossier", "document"), [("S-010", "D-10-00"), ("S-007", "D-07-00"), ("S-123", "D-123-00"), ("plain", "D-00-00")]
)
def test_a_document_is_named_by_the_number_of_its_dossier(dossier, document):
    assert document_of(EDITS.mutations.steps[0], dossier) == document


def test_steps_in_force_already_change_nothing():
    text = MANIFEST
    for step in EDITS.mutations.steps:
        once = edit(step, "S-010", text, "dossier.toml")
        assert once.changed
        text = once.text
        assert not edit(step, "S-010", text, "dossier.toml").changed
    assert "revision = 2" in text
    assert "revision = 3" not in text


def test_a_key_of_build_toml_is_set_and_nothing_else_changes():
    step = EDITS.exercise.steps[1]
    assert isinstance(step, Declare)
    edited = edit_build_file(step, BUILD, "BUILD.toml")
    before, after = BUILD.splitlines(), edited.text.splitlines()
    assert [(a, b) for a, b in zip(before, after, strict=True) if a != b] == [
        ('reduce_prompt = "reduce-v1"', 'reduce_prompt = "reduce-v2"')
    ]
    assert not edit_build_file(step, edited.text, "BUILD.toml").changed


@pytest.mark.parametrize(("table", "key"), [("package.dosier", "reduce_prompt"), ("package.dossier", "reduce")])
def test_a_key_that_is_not_there_is_not_invented(table, key):
    with pytest.raises(DeclarationError):
        edit_build_file(Declare("x", "x", (), table, key, "v"), BUILD, "BUILD.toml")


def test_the_named_edits_are_three_mutations_and_the_exercise():
    assert [type(step) for step in EDITS.mutations.steps][::2] == [Activate, Revoke]
    assert [len(step.recomputed) for step in (*EDITS.mutations.steps, *EDITS.exercise.steps)] == [3, 3, 3, 3, 4]


# ---- the budget ----


def request(number):
    asked = Request((Message(Role.USER, f"{number}"),), 0, None, 1, 1, "t", "p")
    return ExecRequest(Key(f"{number:064x}"), asked, 1)


def test_a_budget_gives_room_for_what_is_left_and_never_more():
    budget = Budget(generations=6, seconds=None, monotonic=lambda: 0.0)
    executor = BudgetedExecutor(FakeExecutor(), budget)
    assert executor.capacity == 4
    executor.submit([request(1), request(2), request(3)])
    assert executor.capacity == 4
    executor.submit([request(4)])
    assert executor.capacity == 4
    assert len(executor.wait(None)) == 4
    assert executor.capacity == 2
    executor.submit([request(5), request(6)])
    assert executor.capacity == 2
    assert len(executor.wait(None)) == 2
    assert (executor.capacity, budget.spent, budget.made) == (0, True, 6)


def test_time_that_is_up_leaves_what_is_pending_to_end():
    now = [0.0]
    executor = BudgetedExecutor(FakeExecutor(), Budget(generations=None, seconds=2.0, monotonic=lambda: now[0]))
    executor.submit([request(1)])
    now[0] = 2.0
    assert executor.capacity == 1
    assert len(executor.wait(None)) == 1
    assert executor.capacity == 0


# ---- progress ----


def test_what_is_left_is_an_upper_bound_at_the_pace_seen():
    now, said = [0.0], []
    step = EDITS.mutations.steps[0]
    stages = [Stage(0, "initial", "", None, ("A", "B")), Stage(1, step.name, step.title, step, ("A",))]
    work = Work(stages, lambda: now[0], said.append)
    work.begin(stages[0], "incremental", 32, 32)
    assert (said[-1].calls_left, said[-1].seconds_left) == (32 + 3 + 16, None)
    now[0] = 2.0
    work.event(ActionFinished("//d:A/leaf-00", Key("k"), "generated", "VALID", None))
    assert (said[-1].calls_left, said[-1].seconds_left, said[-1].done) == (50, 100.0, 1)
    work.begin(stages[1], "incremental", 16, 3)
    assert said[-1].calls_left == 3 + 16
    work.begin(stages[1], "full", 16, 16)
    assert said[-1].calls_left == 16
