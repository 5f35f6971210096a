"""Why targets ran in past builds, from events and preimages alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.explaining import ROOT, Case
from support.fake_executor import FakeExecutor
from support.workspaces import activate, set_prompt, set_reader, withdraw

from gsum.engine.executors.protocol import FailureReason
from gsum.engine.explain import CauseKind, Explanation, Verdict
from gsum.engine.explain.past import NoInvocation


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path / "ws", {"S-1": 6, "S-2": 1})


def causes(explanation: Explanation) -> dict[str, list[str]]:
    return {cause.text: [target[2:].partition(":")[2] for target in cause.targets] for cause in explanation.causes}


BRANCH = ["S-1/leaf-05", "S-1/reduce-01", "S-1/root"]


def test_a_first_build_ran_since_nothing_was_built(case: Case) -> None:
    case.build()
    explanation = case.then()
    assert explanation.verdict is Verdict.RAN
    (cause,) = explanation.causes
    assert cause.text == "never built before for principal `reader-demo`"
    assert len(cause.targets) == 11


def test_a_rebuild_is_explained_as_it_would_have_been_before(case: Case) -> None:
    case.build()
    activate(case.root, "S-1", "D-05", "2")
    case.build()
    explanation = case.then()
    assert causes(explanation) == {"document `D-05`: version 1 → 2, line 2 changed": BRANCH}
    assert "+Product P-1-05 delivery: 6 April." in explanation.causes[0].details
    assert [node.label for node in explanation.nodes] == [ROOT]


def test_any_build_can_be_explained_later(case: Case) -> None:
    first = case.build().report.invocation
    activate(case.root, "S-1", "D-05", "2")
    second = case.build().report.invocation
    set_prompt(case.root, "map-v1", "List all.")
    withdraw(case.root, "S-2", "D-00")
    case.build()
    assert causes(case.then(invocation=second)) == {"document `D-05`: version 1 → 2, line 2 changed": BRANCH}
    assert len(case.then(invocation=first).runs) == 11
    last = case.then(invocation=case.store.invocations(1)[0].id)
    assert [cause.kind for cause in last.causes] == [CauseKind.WITHDRAWN, CauseKind.PROMPT]
    assert causes(last)["document `D-00` withdrawn"] == ["S-2/leaf-00", "S-2/root"]


def test_one_target_of_a_build(case: Case) -> None:
    case.build()
    activate(case.root, "S-1", "D-05", "2")
    withdraw(case.root, "S-1", "D-00")
    case.build()
    explanation = case.then("//dossier:S-1/reduce-00")
    assert explanation.runs == ("//dossier:S-1/leaf-00", "//dossier:S-1/reduce-00")
    assert causes(explanation) == {"document `D-00` withdrawn": ["S-1/leaf-00", "S-1/reduce-00"]}


def test_what_was_served_did_not_run(case: Case) -> None:
    case.build()
    case.build()
    assert case.then().verdict is Verdict.SERVED
    activate(case.root, "S-1", "D-05", "2")
    case.build()
    assert case.then("//dossier:S-1/reduce-00").verdict is Verdict.SERVED


def test_a_full_build_ran_what_it_need_not(case: Case) -> None:
    case.build()
    activate(case.root, "S-1", "D-05", "2")
    case.build(full=True)
    explanation = case.then()
    by_kind = {cause.kind: len(cause.targets) for cause in explanation.causes}
    assert by_kind == {CauseKind.DOCUMENT: 3, CauseKind.FORCED: 8}
    assert len(explanation.runs) == 11


def test_a_failed_action_is_named_and_its_siblings_are_explained(case: Case) -> None:
    case.build()
    activate(case.root, "S-1", "D-05", "2")
    activate(case.root, "S-1", "D-00", "2")

    def fails(request):
        return FailureReason.CRASH if "6 April" in request.messages[-1].content else None

    case.build(executor=FakeExecutor(fails=fails), keep_going=True)
    explanation = case.then()
    found = causes(explanation)
    assert found["document `D-00`: version 1 → 2, line 2 changed"] == ["S-1/leaf-00", "S-1/reduce-00"]
    (unknown,) = (cause for cause in explanation.causes if cause.kind is CauseKind.UNKNOWN)
    assert unknown.targets == ("//dossier:S-1/leaf-05",)
    assert "failed, so that its preimage was not kept" in unknown.text


def test_rights_are_those_of_now(case: Case) -> None:
    case.build()
    activate(case.root, "S-1", "D-05", "2")
    case.build()
    set_reader(case.root, "S-1", "D-05", granted=False, revision=2)
    explanation = case.then()
    shown = repr(explanation)
    assert "D-05`: version" not in shown
    assert "April" not in shown
    assert "source.text" not in shown
    assert all(cause.kind is CauseKind.UNKNOWN for cause in explanation.causes)


def test_other_principals_builds_are_not_explained(case: Case) -> None:
    case.build(principal="other")
    with pytest.raises(NoInvocation, match="nothing was built for principal `reader-demo` yet"):
        case.then()
    other = case.store.invocations(1)[0].id
    with pytest.raises(NoInvocation, match="has no invocation"):
        case.then(invocation=other)
    case.build()
    assert case.then().invocation != other


def test_an_invocation_is_found_by_the_beginning_of_its_id(case: Case) -> None:
    built = [case.build().report.invocation for _ in range(2)]
    assert case.then(invocation=built[0]).invocation == built[0]
    with pytest.raises(NoInvocation) as caught:
        case.then(invocation="2026")
    assert caught.value.message == "2 invocations start with `2026`"
    assert caught.value.exit_code == 2


def test_a_label_that_a_build_did_not_visit_is_an_error(case: Case) -> None:
    case.build("//dossier:S-2/root")
    with pytest.raises(NoInvocation) as caught:
        case.then("//dossier:S-2/leaf-01")
    assert caught.value.hint == "did you mean `//dossier:S-2/leaf-00`?"
