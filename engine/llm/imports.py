"""Imports the code of a model without torch's compiler and without `torch.distributed.tensor`: a worker uses neither.

Both are imported by transformers for marks on functions and for names in signatures, and take longer than all the rest
of a model's code. Where a model's code wants more of them than that, it is imported as it would be without us.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

_COMPILER = "torch._dynamo"
_WRAPPED = "torch._dynamo._trace_wrapped_higher_order_op"
_MARKS = ("allow_in_graph", "assume_constant_result", "disable")


def import_model_code(config: Path) -> None:
    """Import what runs the kind of model that a `config.json` names; whatever is wrong with it, loading will say."""
    with contextlib.suppress(Exception), _without_compiler():  # the code of any kind of model may raise anything
        kind = json.loads(config.read_bytes())["model_type"]
        from transformers import (  # noqa: PLC0415
            CONFIG_MAPPING,
            MODEL_FOR_CAUSAL_LM_MAPPING,
            AutoModelForCausalLM,  # noqa: F401
            AutoTokenizer,  # noqa: F401
        )

        MODEL_FOR_CAUSAL_LM_MAPPING[CONFIG_MAPPING[kind]]


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage within the block, nor ever in what it leaves: a start makes little but what stays.

    To look through a million new objects again and again takes a fourth of a start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def _without_compiler() -> Iterator[None]:
    """Let marks for the compiler do nothing, and transformers believe in a torch that was built for one machine."""
    import torch.compiler  # noqa: PLC0415
    import torch.distributed  # noqa: PLC0415
    from transformers.utils import is_torch_distributed_available  # noqa: PLC0415

    if _COMPILER in sys.modules:
        yield
        return
    available, disable = torch.distributed.is_available, torch.compiler.disable
    compiler, wrapped = ModuleType(_COMPILER), ModuleType(_WRAPPED)
    for name in _MARKS:
        setattr(compiler, name, _mark)
    wrapped.TransformGetItemToIndex = _transform  # type: ignore[attr-defined]
    sys.modules |= {_COMPILER: compiler, _WRAPPED: wrapped}
    torch.compiler.disable, torch.distributed.is_available = _mark, lambda: False
    try:
        is_torch_distributed_available()  # it remembers its first answer
        yield
    finally:
        torch.compiler.disable, torch.distributed.is_available = disable, available
        for name in (_COMPILER, _WRAPPED):
            sys.modules.pop(name)


def _mark(function: Callable[..., object] | None = None, *_: object, **__: object) -> object:
    """Stand for a decorator of the compiler's, with or without arguments."""
    return function if function is not None else lambda decorated: decorated


def _transform(*args: object) -> object:
    """Stand for a class of the compiler's that is used when masks are made by it: then it is imported."""
    return importlib.import_module(_WRAPPED).TransformGetItemToIndex(*args)
