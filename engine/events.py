"""The typed events of a build: what the scheduler says, what reporters show and tests assert. Pure."""

from __future__ import annotations

import enum

import msgspec

from gsum.engine.forecast.model import Actual, Forecast, Outcomes
from gsum.store.digests import Digest, Key

EVENT_SCHEMA = 1


class Event(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    """An event of one invocation; encoded as JSON with its type's name under `event`."""


class Hit(enum.Enum):
    """What a served entry is to its label (for a principal and toolchain name): what that was last built as, another
    than that, or the first it has, made for another label or name.
    """

    LATEST = "latest"
    EARLIER = "earlier"
    SHARED = "shared"


class Miss(enum.Enum):
    """Why an action was not served: see `miss_of`."""

    NEVER_BUILT = "never built"
    KEY_CHANGED = "key changed"
    INCOMPLETE = "incomplete entry"
    FULL = "full build"


class BuildStarted(Event, frozen=True):
    """The plan is made. `targets` counts the closure, `to_run` the actions that have no entry."""

    invocation: str
    patterns: tuple[str, ...]
    targets: int
    to_run: int
    schema: int = EVENT_SCHEMA


class ActionCached(Event, frozen=True):
    """A visited action is served from the action cache; `kind` is null in what older builds kept."""

    label: str
    key: Key
    kind: Hit | None = None


class ActionStarted(Event, frozen=True):
    """A request went to an executor, as the action missed for `reason` (null in what older builds kept)."""

    label: str
    key: Key
    request: Key
    reason: Miss | None = None


class WorkerStarted(Event, frozen=True):
    """A model's worker was started, or found `warm` from an earlier build. `worker` counts a toolchain's from 0.

    Said while the build runs; not kept with the invocation.
    """

    toolchain: str
    worker: int
    warm: bool


class WorkerReady(Event, frozen=True):
    """A worker has its model loaded and checked, `seconds` after it was started or found. Not kept either."""

    toolchain: str
    worker: int
    warm: bool
    seconds: float


class ActionFinished(Event, frozen=True):
    """An action is committed. `how` and `status` as in the entry and result; `previous` is the key before this one.

    Token counts are 0 unless generated: new_tokens = forced + sampled; `drafted_tokens` of the sampled ones were
    foretold by a draft. `reason` says why there was no entry (null in what older builds kept).
    """

    label: str
    key: Key
    how: str
    status: str
    previous: Key | None
    seconds: float = 0.0
    prompt_tokens: int = 0
    reused_tokens: int = 0
    new_tokens: int = 0
    sampled_tokens: int = 0
    drafted_tokens: int = 0
    reason: Miss | None = None


class ActionFailed(Event, frozen=True):
    """An action failed: nothing is cached, its ancestors are skipped."""

    label: str
    key: Key
    previous: Key | None
    reason: str
    message: str
    exit_code: int
    facts: dict[str, str] = {}
    hint: str | None = None


class ActionSkipped(Event, frozen=True):
    """An action was not tried, because of `because` (the label of a failed descendant), or because the build was
    stopped before (null): by an interruption, or by the failure of something that it does not need.
    """

    label: str
    key: Key
    because: str | None


class Equivocation(Event, frozen=True):
    """A request gave a second, different output; the first one stays the one that is served."""

    label: str
    request: Key
    first: Digest
    second: Digest


class Difference(Event, frozen=True):
    """A full build's action differs from what the store serves for its key, or holds for its request, in `what`."""

    label: str
    key: Key
    what: tuple[str, ...]


class BuildFinished(Event, frozen=True):
    """The build ended."""

    invocation: str
    status: str
    exit_code: int
    seconds: float


class Accounted(Event, frozen=True):
    """A build's account of itself, the last event of one that ran anything: what was forecast for the actions that
    ran, what they took, and what came of each group of them. `complete`: none failed, none was skipped.
    """

    invocation: str
    complete: bool
    forecast: Forecast
    actual: Actual
    outcomes: tuple[Outcomes, ...]


AnyEvent = (
    BuildStarted
    | ActionCached
    | ActionStarted
    | WorkerStarted
    | WorkerReady
    | ActionFinished
    | ActionFailed
    | ActionSkipped
    | Equivocation
    | Difference
    | BuildFinished
    | Accounted
)

SAID = frozenset({"error", "stderr"})
"""Facts of a failure that hold what a program wrote, which may be the text of a document: the build that ran it shows
them, and nothing keeps them.
"""

_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def miss_of(key: Key, previous: Key | None, *, full: bool) -> Miss:
    """Return why an action of a key was not served, by the key its label was last built as."""
    if full:
        return Miss.FULL
    if previous is None:
        return Miss.NEVER_BUILT
    return Miss.INCOMPLETE if previous == key else Miss.KEY_CHANGED


def hit_of(key: Key, previous: Key | None) -> Hit:
    """Return what an entry that is served is to its label, by the key the label was last built as."""
    if previous is None:
        return Hit.SHARED
    return Hit.LATEST if previous == key else Hit.EARLIER


def kept_event(event: Event) -> Event:
    """Return an event as it may be kept: of a failure, without what a program wrote."""
    if isinstance(event, ActionFailed) and not SAID.isdisjoint(event.facts):
        facts = {name: text for name, text in event.facts.items() if name not in SAID}
        return msgspec.structs.replace(event, facts=facts)
    return event


def encode_event(event: Event) -> bytes:
    """Encode an event, as it may be kept, as one JSON object."""
    return _ENCODER.encode(kept_event(event))


def decode_event(data: bytes) -> AnyEvent:
    """Decode what `encode_event` wrote."""
    return _DECODER.decode(data)
