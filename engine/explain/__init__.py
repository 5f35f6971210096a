"""Why a target runs: preimages compared field by field, root causes told apart from what follows. Executes nothing."""

from gsum.engine.explain.between import explain_between
from gsum.engine.explain.model import Cause, CauseKind, Counterfactual, Explanation, FieldChange, Node, Verdict
from gsum.engine.explain.now import explain
from gsum.engine.explain.past import explain_invocation, find_invocation, own_invocations

__all__ = [
    "Cause",
    "CauseKind",
    "Counterfactual",
    "Explanation",
    "FieldChange",
    "Node",
    "Verdict",
    "explain",
    "explain_between",
    "explain_invocation",
    "find_invocation",
    "own_invocations",
]
