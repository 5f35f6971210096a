"""The sample that is set aside for a reader, and the record that it was read. Its status here is always PENDING.

A claim is shown under the snapshot of its stage, and only while its sources may be read in the workspace now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from gsum.engine.experiment.records import RunDeclaration, StageRecord, write_record
from gsum.engine.inputs import decode_result
from gsum.rules.config import Workspace
from gsum.rules.ingest import has_dossier, load_dossier
from gsum.store.api import Store
from gsum.store.digests import Digest, blob_digest
from gsum.store.errors import ExitCode, GsumError

SAMPLE_SCHEMA: Final = 1
PENDING: Final = "PENDING"
REVIEWED: Final = "REVIEWED"
HISTORICAL, LAST = "HISTORICAL", "LAST STAGE"
REVIEWS_SUFFIX = ".reviews.json"


class SampleError(GsumError):
    """A file is no sample that can be reviewed."""

    exit_code = ExitCode.USAGE


class SampleEvidence(msgspec.Struct, frozen=True):
    """One citation of a claim."""

    id: str
    document: str
    version: str
    start: int
    end: int
    quote: str


class SampleClaim(msgspec.Struct, frozen=True):
    """One claim with its quotes."""

    values: dict[str, str]
    evidence: tuple[SampleEvidence, ...]


class SampleItem(msgspec.Struct, frozen=True):
    """A root at one stage. `when` is HISTORICAL for all but the last stage; `withheld` claims may not be read now."""

    stage: str
    title: str
    when: str
    label: str
    key: str
    status: str
    claims: tuple[SampleClaim, ...]
    withheld: int


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All root claims of one dossier over all stages of a run."""

    dossier: str
    toolchain: str
    toolchain_key: str
    principal: str
    status: Literal["PENDING"]
    items: tuple[SampleItem, ...]
    schema: Literal[1] = SAMPLE_SCHEMA

    @property
    def claims(self) -> int:
        """How many claims it shows."""
        return sum(len(item.claims) for item in self.items)


class Review(msgspec.Struct, frozen=True):
    """That somebody read a sample: which bytes, who (a human or an assistant), what they say, when."""

    digest: str
    by: Literal["human", "assistant"]
    note: str
    time: str
    status: Literal["REVIEWED"] = REVIEWED


class Reviews(msgspec.Struct, frozen=True):
    """All reviews of a file; each holds for the bytes that it names and no others."""

    reviews: tuple[Review, ...] = ()
    schema: Literal[1] = SAMPLE_SCHEMA


def take_sample(
    declared: RunDeclaration,
    stages: Sequence[StageRecord],
    store: Store,
    fields: Sequence[str],
    readable: Callable[[str, str], bool],
) -> Sample:
    """Return the sample of a run: the first mutated dossier. `store` is that of the incremental builds.

    `fields` are the schema's, in order; `readable` says of a dossier and a document whether it may be read now.
    """
    dossier = declared.mutated[0]
    label = f"//{declared.package}:{dossier}/root"
    items = []
    for number, stage in enumerate(stages, 1):
        node = next(node for node in stage.incremental.nodes if node.label == label)
        result = decode_result(store.get_blob(Digest(node.result)))
        records = {record.id: record for record in result.evidence}
        claims = [
            SampleClaim(
                {field: claim.values[field] for field in fields},
                tuple(
                    SampleEvidence(one.id, one.doc_id, one.version, one.start, one.end, one.quote)
                    for one in (records[cited] for cited in claim.evidence)
                ),
            )
            for claim in result.claims
        ]
        shown = [claim for claim in claims if all(readable(dossier, one.document) for one in claim.evidence)]
        when = LAST if number == len(stages) else HISTORICAL
        withheld = len(claims) - len(shown)
        items.append(SampleItem(stage.stage, stage.title, when, label, node.key, node.status, tuple(shown), withheld))
    return Sample(dossier, declared.toolchain, declared.toolchain_key, declared.principal, PENDING, tuple(items))


def readable_now(workspace: Workspace, source: str, principal: str) -> Callable[[str, str], bool]:
    """Return whether a document of a dossier may be read in the workspace as it stands, by its manifest alone."""
    known: dict[str, frozenset[str]] = {}

    def readable(dossier: str, document: str) -> bool:
        if dossier not in known:
            found = (
                load_dossier(workspace, source, dossier).documents if has_dossier(workspace, source, dossier) else ()
            )
            known[dossier] = frozenset(one.id for one in found if not one.withdrawn and one.rights(principal)[0])
        return document in known[dossier]

    return readable


def add_review(path: Path, *, by: Literal["human", "assistant"], note: str, time: str) -> tuple[Review, Path]:
    """Record that a sample was read, in a file beside it; the sample itself is not touched.

    Raises:
        SampleError: if the file is no sample, or its reviews can't be read.
    """
    data = _read(path)
    try:
        msgspec.json.decode(data, type=Sample)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = str(error) if isinstance(error, msgspec.ValidationError) else "it is not JSON"
        hint = "give the `sample.json` that `gsum experiment report` wrote"
        raise SampleError(f"`{path.name}` is no sample", facts={"file": path, "why": why}, hint=hint) from None
    beside = path.with_name(path.name + REVIEWS_SUFFIX)
    review = Review(blob_digest(data), by, note, time)
    write_record(beside, Reviews((*read_reviews(beside).reviews, review)))
    return review, beside


def read_reviews(path: Path) -> Reviews:
    """Read the reviews of a sample; none where there is no such file."""
    if not path.exists():
        return Reviews()
    try:
        return msgspec.json.decode(path.read_bytes(), type=Reviews)
    except (msgspec.DecodeError, UnicodeDecodeError):
        hint = "move it away, and record the review again"
        raise SampleError(f"`{path.name}` holds no reviews that can be read", facts={"file": path}, hint=hint) from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise SampleError(f"`{path.name}` can't be read", facts={"file": path, "why": why}) from None
