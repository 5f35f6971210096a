"""Why a target runs: preimages compared field by field, root causes told apart from what follows. Executes nothing."""

from gsum.engine.explain.model import Cause, CauseKind, Explanation, FieldChange, Node, Verdict
from gsum.engine.explain.now import explain
from gsum.engine.explain.past import explain_invocation, find_invocation, own_invocations

__all__ = [
    "Cause",
    "CauseKind",
    "Explanation",
    "FieldChange",
    "Node",
    "Verdict",
    "explain",
    "explain_invocation",
    "find_invocation",
    "own_invocations",
]
