"""Action keys, computed bottom-up from declarations alone: one preimage per key, hashed once, diffed to explain. Pure.

Every field of every preimage is set, absent ones as null. Names of toolchains, prompts and schemas, labels and
paths are in no key; the content behind them is.
"""

from __future__ import annotations

import msgspec

from gsum.rules.config import CommandToolchain, LocalToolchain, NumericsSection, ToolchainSection, Workspace
from gsum.rules.graph import Action, ActionGraph
from gsum.rules.kinds import RULES
from gsum.rules.rule import ModelTerms
from gsum.rules.snapshot import Scope
from gsum.store.digests import KEY_SCHEMA, Key, Preimage, RecordKind, preimage_of

CHUNKING = "whole-document"


class ActionPreimage(msgspec.Struct, frozen=True):
    """All that an action depends on; the canonical JSON of this is what its key hashes."""

    kind: str
    rule: str
    rule_version: int
    principal: str
    salt: str
    source: Scope | None
    children: tuple[Key, ...]
    perimeter: Key
    toolchain: Key | None
    prompt: Key | None
    schema: Key
    input_tokens: int | None
    fan_in: int | None
    chunking: str | None
    key_schema: int = KEY_SCHEMA


class LeafPerimeter(msgspec.Struct, frozen=True):
    """Who may read what, at a leaf."""

    id: str
    active: bool
    eligible: bool
    access_revision: int
    principal: str
    key_schema: int = KEY_SCHEMA


class NodePerimeter(msgspec.Struct, frozen=True):
    """Who may read what, below an inner node."""

    children: tuple[Key, ...]
    key_schema: int = KEY_SCHEMA


class Keyed(msgspec.Struct, frozen=True):
    """An action's key with its preimage, and its perimeter."""

    action: Preimage
    perimeter: Key

    @property
    def key(self) -> Key:
        """The action key."""
        return self.action.key


class KeySet(msgspec.Struct, frozen=True):
    """Keys of a whole graph by label, and every record their preimages refer to by key."""

    actions: dict[str, Keyed]
    records: dict[Key, Preimage]
    terms: dict[str, ModelTerms]
    """By toolchain name: what renderings need of it."""
    refs: dict[str, tuple[Key, ...]]
    """By label: the records of names that its preimage refers to (toolchain, prompt, schema)."""


def toolchain_record(toolchain: ToolchainSection, numerics: dict[str, NumericsSection]) -> dict[str, object]:
    """Return the record of a toolchain: declared values only, without paths, commands and time limits."""
    common: dict[str, object] = {
        "key_schema": KEY_SCHEMA,
        "decoding": {
            "method": toolchain.decoding.method,
            "max_new_tokens": toolchain.decoding.max_new_tokens,
            "do_sample": False,
            "num_beams": 1,
            "temperature": None,
            "top_k": None,
            "top_p": None,
            "repetition_penalty": None,
        },
        "grammar": {
            "strength": toolchain.grammar.strength.value,
            "backend": toolchain.grammar.backend,
            "version": toolchain.grammar.version,
        },
    }
    match toolchain:
        case LocalToolchain():
            source = msgspec.to_builtins(toolchain.source)
            source.pop("path", None)
            profile = numerics[toolchain.numerics]
            return common | {
                "executor": "local",
                "source": source,
                "files": toolchain.files,
                "tied_embeddings": toolchain.tied_embeddings,
                "chat_template": toolchain.chat_template,
                "device": toolchain.device.value,
                "dtype": toolchain.dtype.value,
                "attention": toolchain.attention.value,
                "numerics": {"name": toolchain.numerics, "profile": msgspec.to_builtins(profile)},
            }
        case CommandToolchain():
            return common | {
                "executor": "command",
                "identity": toolchain.identity,
                "reproducible": toolchain.reproducible,
                "network": toolchain.network,
                "epoch": toolchain.epoch,
            }


def named_record(workspace: Workspace, kind: RecordKind, name: str) -> object:
    """Return the record of a declared toolchain, prompt or schema."""
    match kind:
        case RecordKind.TOOLCHAIN:
            return toolchain_record(workspace.toolchains[name], workspace.numerics)
        case RecordKind.PROMPT:
            return {"key_schema": KEY_SCHEMA, "prompt": workspace.prompts[name]}
        case RecordKind.SCHEMA:
            return {"key_schema": KEY_SCHEMA, "schema": workspace.schemas[name]}
        case _:
            raise ValueError(f"records of kind {kind.value} have no name")


_Names = tuple[str | None, str | None, str]


class _Records:
    """The records a key set refers to, each hashed once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._named: dict[tuple[RecordKind, str], Key] = {}
        self._together: dict[_Names, tuple[Key | None, Key | None, Key]] = {}
        self._perimeters: dict[LeafPerimeter | NodePerimeter, Key] = {}
        self.kept: dict[Key, Preimage] = {}

    def keep(self, kind: RecordKind, record: object) -> Key:
        preimage = preimage_of(kind, record)
        self.kept[preimage.key] = preimage
        return preimage.key

    def named(self, kind: RecordKind, name: str | None) -> Key | None:
        if name is None:
            return None
        if (kind, name) not in self._named:
            self._named[kind, name] = self.keep(kind, named_record(self._workspace, kind, name))
        return self._named[kind, name]

    def of_action(self, action: Action) -> tuple[Key | None, Key | None, Key]:
        """Return the keys of an action's toolchain, prompt and schema."""
        names = (action.toolchain, action.prompt, action.schema)
        known = self._together.get(names)
        if known is None:
            toolchain = self.named(RecordKind.TOOLCHAIN, action.toolchain)
            schema = self.named(RecordKind.SCHEMA, action.schema)
            assert schema is not None
            known = self._together[names] = toolchain, self.named(RecordKind.PROMPT, action.prompt), schema
        return known

    def perimeter(self, record: LeafPerimeter | NodePerimeter) -> Key:
        """Return the key of a perimeter: documents of many dossiers have equal names and rights."""
        known = self._perimeters.get(record)
        if known is None:
            known = self._perimeters[record] = self.keep(RecordKind.PERIMETER, record)
        return known


def compute_keys(workspace: Workspace, graph: ActionGraph) -> KeySet:
    """Compute the keys of every action of a graph.

    `graph.actions` must hold children before parents and every declared name must exist (analysis sees to both).
    """
    records = _Records(workspace)
    actions: dict[str, Keyed] = {}
    terms: dict[str, ModelTerms] = {}
    refs: dict[str, tuple[Key, ...]] = {}
    for label, action in graph.actions.items():
        children = tuple(actions[child] for child in action.children)
        perimeter = _perimeter(records, action, children)
        toolchain, prompt, schema = records.of_action(action)
        if action.toolchain is not None and toolchain is not None and action.toolchain not in terms:
            section = workspace.toolchains[action.toolchain]
            terms[action.toolchain] = ModelTerms(
                toolchain, section.grammar.strength, section.decoding.max_new_tokens, workspace.section.salt
            )
        record = ActionPreimage(
            kind=action.kind.value,
            rule=action.rule,
            rule_version=RULES[action.rule].version,
            principal=action.principal,
            salt=workspace.section.salt,
            source=action.scope,
            children=tuple(child.key for child in children),
            perimeter=perimeter,
            toolchain=toolchain,
            prompt=prompt,
            schema=schema,
            input_tokens=action.input_tokens,
            fan_in=action.fan_in,
            chunking=CHUNKING if action.scope is not None and not children else None,
        )
        actions[label] = Keyed(preimage_of(RecordKind.ACTION, record), perimeter)
        named = (toolchain, prompt, schema)
        refs[label] = tuple(key for key in named if key is not None)
    return KeySet(actions, records.kept, terms, refs)


def _perimeter(records: _Records, action: Action, children: tuple[Keyed, ...]) -> Key:
    scope = action.scope
    if scope is None or children:
        return records.perimeter(NodePerimeter(tuple(child.perimeter for child in children)))
    return records.perimeter(
        LeafPerimeter(scope.id, scope.active, scope.eligible, scope.access_revision, action.principal)
    )
