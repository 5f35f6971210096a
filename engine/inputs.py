"""What an action reads, gathered and verified: its document's text, or its children's results.

Before a result is shown, its evidence is held, character by character, against the documents of the current snapshot.
A build, which reads results of keys that hit, leans on the keys and holds what can be seen without the documents.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping

import msgspec

from gsum.engine.documents import Documents, DocumentText
from gsum.engine.keys import KeySet
from gsum.rules.claims import Result, Status
from gsum.rules.config import Workspace
from gsum.rules.evidence import unfit, verify
from gsum.rules.graph import Action, ActionGraph
from gsum.rules.rule import Inputs
from gsum.store.api import Store
from gsum.store.digests import Digest
from gsum.store.errors import ExitCode, GsumError

HELD_BYTES = 4 * 1024 * 1024
"""What is read for a leaf is needed again at most for the results above it: soon, or not at all."""

_DECODER = msgspec.json.Decoder(Result)


class EvidenceBroken(GsumError):
    """A stored result cites something that the current snapshot does not hold: damage, never an edit."""

    exit_code = ExitCode.DAMAGE


def decode_result(data: bytes) -> Result:
    """Decode a stored result."""
    return _DECODER.decode(data)


class InputReader:
    """Gathers inputs for one build or one display; the documents read last are held, up to `HELD_BYTES`."""

    def __init__(
        self, workspace: Workspace, graph: ActionGraph, keys: KeySet, store: Store, documents: Documents
    ) -> None:
        self._workspace = workspace
        self._graph = graph
        self._keys = keys
        self._store = store
        self._documents = documents
        self._texts: OrderedDict[str, DocumentText] = OrderedDict()
        self._held = 0
        self._leaves: dict[tuple[str, str], dict[str, Action]] | None = None

    def text(self, action: Action) -> DocumentText:
        """Return the text of a readable leaf's document."""
        known = self._texts.get(action.label)
        if known is not None:
            self._texts.move_to_end(action.label)
            return known
        read = self._texts[action.label] = self._documents.read(action)
        self._held += len(read.data)
        while self._held > HELD_BYTES and len(self._texts) > 1:
            self._held -= len(self._texts.popitem(last=False)[1].data)
        return read

    def inputs(self, action: Action, results: dict[str, Result], text: str | None) -> Inputs:
        """Return the inputs of an action; `results` holds those of its children, `text` is its document's, if any."""
        return Inputs(
            schema=self._workspace.schemas[action.schema],
            perimeter=self._keys.actions[action.label].perimeter,
            text=text,
            children=tuple(results[child] for child in action.children),
            prompt=self._workspace.prompts[action.prompt] if action.prompt is not None else None,
            terms=self._keys.terms[action.toolchain] if action.toolchain is not None else None,
        )

    def load_result(self, label: str, digest: Digest) -> Result:
        """Return a stored result of a label, its evidence verified against the current snapshot."""
        result = decode_result(self._store.get_blob(digest))
        self.verify_evidence(self._graph.actions[label], result)
        return result

    def load_hits(self, digests: Mapping[str, Digest]) -> dict[str, Result]:
        """Return the results of labels whose current keys hit, for others to be made of them.

        A key covers the text of each document below it, and a result is read by its digest: its evidence was held
        against these very texts when it was made, and is not held against them again.

        Raises:
            EvidenceBroken: if one cites what the snapshot does not hold, or claims more than its status allows.
        """
        blobs = self._store.get_blobs(digests.values())
        found = {label: decode_result(blobs[digest]) for label, digest in digests.items()}
        for label, result in found.items():
            self._verify(self._graph.actions[label], result, None)
        return found

    def verify_evidence(self, action: Action, result: Result) -> None:
        """Verify every evidence record of a result, and that its claims cite no other.

        Raises:
            EvidenceBroken: naming the record that fails and why.
        """
        self._verify(action, result, lambda leaf: self.text(leaf).text)

    def _verify(self, action: Action, result: Result, text_of: Callable[[Action], str] | None) -> None:
        """Verify a result, against texts if they are to be looked at."""
        if result.status in (Status.INVALID, Status.INELIGIBLE) and (result.claims or result.evidence):
            raise _broken(action.label, "-", f"a result that is {result.status.value} holds claims")
        leaves = self._leaves_of(action)
        known = set()
        for evidence in result.evidence:
            leaf = leaves.get(evidence.doc_id)
            if leaf is None or leaf.scope is None:
                raise _broken(action.label, evidence.id, "its document is not below the target")
            if not leaf.scope.readable:
                raise _broken(action.label, evidence.id, "its document is not active and eligible")
            scope = leaf.scope
            reason = unfit(evidence, scope) if text_of is None else verify(evidence, scope, text_of(leaf))
            if reason is not None:
                raise _broken(action.label, evidence.id, reason)
            known.add(evidence.id)
        for claim in result.claims:
            for cited in claim.evidence:
                if cited not in known:
                    raise _broken(action.label, cited, "a claim cites it and the result does not hold it")

    def _leaves_of(self, action: Action) -> dict[str, Action]:
        if self._leaves is None:
            self._leaves = {}
            for other in self._graph.actions.values():
                if other.scope is not None:
                    self._leaves.setdefault((other.package, other.dossier), {})[other.scope.id] = other
        return self._leaves.get((action.package, action.dossier), {})


def _broken(label: str, evidence: str, reason: str) -> EvidenceBroken:
    return EvidenceBroken(
        f"a stored result of `{label}` cites evidence that does not hold",
        facts={"evidence": evidence, "reason": reason},
        hint=f"gsum build --full {label}",
    )
