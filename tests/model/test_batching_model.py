"""The embedded model in batches: every logit of whole leaves is bitwise what it is alone."""

import hashlib

import msgspec
import pytest
from support import embedded

from gsum.engine.llm.decode import Decoder
from gsum.engine.llm.load import load
from gsum.engine.llm.ragged import uneven_rows
from gsum.engine.llm.schemes import SCHEMES
from gsum.rules.analysis import analyse
from gsum.rules.ingest import read_document
from gsum.rules.kinds import RULES
from gsum.rules.rule import Inputs, ModelTerms

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]
RAGGED = SCHEMES["ragged-1"]
LEAVES = 4


class Recording(Decoder):
    """A decoder that keeps a digest of the logits it chose from."""

    def __init__(self, loaded, scheme):
        super().__init__(loaded, scheme)
        self.logits = {}

    def _extend(self, writing, logits):
        self.logits.setdefault(writing.key, []).append(hashlib.sha256(logits.numpy().tobytes()).hexdigest())
        super()._extend(writing, logits)


@pytest.fixture(scope="module")
def loaded():
    import torch

    torch.set_num_threads(1)
    source = embedded.require_model()
    return load("smollm2", embedded.toolchain(), source, embedded.CACHE)


@pytest.fixture(scope="module")
def leaves():
    """The first leaves of the corpus, one of them with half of its lines, so that lengths differ."""
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


def run(loaded, requests, width, late=()):
    """Generate; those in `late` join after five passes. Return tokens and logits of each."""
    decoder = Recording(loaded, msgspec.structs.replace(RAGGED, width=width))
    waiting = [key for key in requests if key not in late]
    done, passes = {}, 0
    while waiting or decoder.keys:
        while waiting and not decoder.full:
            key = waiting.pop(0)
            decoder.add(key, requests[key])
        done |= dict(decoder.step())
        passes += 1
        if passes == 5:
            waiting += late
    return {key: (done[key].token_ids, decoder.logits[key]) for key in requests}, passes


def test_leaves_in_a_batch_are_bitwise_what_they_are_alone(loaded, leaves):
    assert uneven_rows(loaded.model, RAGGED.quantum) == []
    alone, single_passes = run(loaded, leaves, 1)
    backwards = dict(reversed(leaves.items()))
    together, passes = run(loaded, backwards, LEAVES, late=[next(iter(leaves))])
    assert together == alone
    assert passes < single_passes / 2
    assert sum(len(logits) for _, logits in alone.values()) > 30


def test_products_of_a_single_row_would_not_be(loaded):
    """Why the scheme fills rows up: on this machine's products a lone row takes another path, and other bits."""
    if not uneven_rows(loaded.model, 1):
        pytest.skip("this machine's products do not depend on their rows")
    assert len(uneven_rows(loaded.model, 1)) > 1
