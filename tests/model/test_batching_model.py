"""The embedded model in batches: every logit of whole leaves is bitwise what it is alone."""

import hashlib
import os

import msgspec
import pytest
from support import embedded

from gsum.engine.executors.make import make_executor
from gsum.engine.executors.protocol import ExecRequest
from gsum.engine.llm.decode import Decoder
from gsum.engine.llm.isa import AVX512_BF16, has_instruction_set
from gsum.engine.llm.load import load
from gsum.engine.llm.ragged import uneven_rows
from gsum.engine.llm.schemes import SCHEMES, SINGLE
from gsum.rules.analysis import analyse
from gsum.rules.config import Attention, Dtype
from gsum.rules.ingest import read_document
from gsum.rules.kinds import RULES
from gsum.rules.rule import Inputs, ModelTerms
from gsum.store.records import StopReason

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]
LEAVES = 3
PROFILES = ("cpu-avx2-2", "cpu-avx2-2threads-1", "cpu-avx512-bf16-1", "cpu-avx512-bf16-2threads-1")


class Recording(Decoder):
    """A decoder that keeps a digest of the logits it chose from."""

    def __init__(self, loaded, scheme):
        super().__init__(loaded, scheme)
        self.logits = {}

    def _extend(self, writing, logits):
        self.logits.setdefault(writing.key, []).append(hashlib.sha256(logits.numpy().tobytes()).hexdigest())
        super()._extend(writing, logits)


@pytest.fixture(params=PROFILES)
def profile(request):
    """The embedded model as a declared profile runs it, and the profile's scheme."""
    import torch

    numerics = embedded.workspace().numerics[request.param]
    narrow = "bf16" in request.param
    if narrow and not has_instruction_set(AVX512_BF16):
        pytest.skip("this processor does not multiply bfloat16: a worker refuses the profile here")
    declared = embedded.toolchain("smollm2-bf16" if narrow else "smollm2")
    assert declared.dtype is (Dtype.BFLOAT16 if narrow else Dtype.FLOAT32)
    assert declared.attention is (Attention.EAGER if narrow else Attention.SDPA)
    before = torch.get_num_threads()
    torch.set_num_threads(numerics.threads)
    yield load("smollm2", declared, embedded.require_model(), embedded.CACHE), SCHEMES[numerics.batching]
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def leaves():
    """The first leaves of the corpus, one of them with half of its lines, so that lengths differ."""
    embedded.require_model()
    workspace, declared = embedded.workspace(), embedded.toolchain()
    terms = ModelTerms("t" * 64, declared.grammar.strength, declared.decoding.max_new_tokens)
    found = {}
    for action in analyse(workspace, ["//dossier:S-037/..."]).actions.values():
        if action.path is None:
            continue
        _, text = read_document(workspace.root, action.path, 10**7)
        text = text[: text.index("\n", len(text) // 2) + 1] if len(found) == 1 else text
        inputs = Inputs(workspace.schemas["product"], "p" * 64, text, (), workspace.prompts[action.prompt], terms)
        found[str(action.label)] = RULES[action.rule].render(action, inputs)
        if len(found) == LEAVES:
            return found
    raise AssertionError("too few leaves")


def run(profile, requests, width, late=(), drafts=None):
    """Generate; those in `late` join after five passes. Return tokens and logits of each, and the passes."""
    loaded, scheme = profile
    decoder = Recording(loaded, msgspec.structs.replace(scheme, width=width))
    waiting = [key for key in requests if key not in late]
    done, passes = {}, 0
    while waiting or decoder.keys:
        while waiting and not decoder.full:
            key = waiting.pop(0)
            decoder.add(key, requests[key], (drafts or {}).get(key, ()))
        done |= dict(decoder.step())
        passes += 1
        if passes == 5:
            waiting += late
    return {key: (done[key].token_ids, decoder.logits[key]) for key in requests}, passes


def test_leaves_in_a_batch_and_after_drafts_are_bitwise_what_they_are_alone(profile, leaves):
    loaded, scheme = profile
    assert uneven_rows(loaded.model, scheme) == []
    alone, single_passes = run(profile, leaves, 1)
    backwards = dict(reversed(leaves.items()))
    first, second, third = backwards
    edited = [*alone[second][0]]
    edited[len(edited) // 2] += 1
    drafts = {second: edited, third: alone[first][0]}
    together, passes = run(profile, backwards, LEAVES, late=[first], drafts=drafts)
    assert together == alone
    assert passes < single_passes / 1.5
    assert sum(len(logits) for _, logits in alone.values()) > 20


def test_products_of_a_single_row_would_not_be(leaves):
    """Why the scheme fills rows up: on this machine's products a lone row takes another path, and other bits."""
    import torch

    torch.set_num_threads(1)
    loaded = load("smollm2", embedded.toolchain(), embedded.require_model(), embedded.CACHE)
    if not uneven_rows(loaded.model, SINGLE):
        pytest.skip("this machine's products do not depend on their rows")
    assert len(uneven_rows(loaded.model, SINGLE)) > 1


def test_the_worker_serves_bfloat16_and_takes_a_draft(leaves):
    if not has_instruction_set(AVX512_BF16):
        pytest.skip("this processor does not multiply bfloat16: a worker refuses the profile here")
    declared = embedded.toolchain("smollm2-bf16")
    numerics = embedded.workspace().numerics[declared.numerics]
    executor = make_executor(
        declared, numerics, cache_dir=embedded.CACHE, workspace_root=embedded.ROOT, environ=os.environ
    )
    request = next(iter(leaves.values()))
    try:
        executor.submit([ExecRequest("a" * 64, request, 300)])
        [first] = executor.wait(400)
        executor.submit([ExecRequest("b" * 64, request, 300, first.generation.token_ids)])
        [again] = executor.wait(400)
    finally:
        executor.close()
    assert (first.dtype, first.device) == ("bfloat16", "cpu: AVX512_BF16, 1 threads")
    assert first.generation.stop is StopReason.GRAMMAR
    assert again.generation == first.generation
    assert (first.drafted, again.drafted) == (0, again.sampled - 1)
