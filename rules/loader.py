"""BUILD.toml, subpackages and prompt files to a validated `Workspace`: the I/O of declarations.

After it every name that is used is declared. It opens no document and no manifest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from gsum.rules import checks, paths, visibility
from gsum.rules.config import (
    UNSTEADY,
    AuditPackage,
    AuditSection,
    BuildFile,
    PackageSection,
    Prompt,
    PromptExample,
    PromptFile,
    PromptSection,
    SchemaSection,
    Source,
    SourcesSection,
    Stamp,
    SubBuildFile,
    SummaryTreePackage,
    Visibility,
    Workspace,
)
from gsum.rules.files import without_waiting
from gsum.rules.labels import PACKAGE_SEGMENT, RESERVED
from gsum.rules.locate import Path as TomlPath
from gsum.rules.locate import Point
from gsum.rules.nearest import suggest
from gsum.rules.root import BUILD_FILE
from gsum.rules.toml import DeclarationError, TomlText, decode, dotted

PROMPT_MAX_BYTES = 1_048_576

V = TypeVar("V")


class _Unit(msgspec.Struct, frozen=True):
    """One BUILD.toml: its folder ('' for the root's), its text and its sections."""

    folder: str
    text: TomlText
    file: BuildFile | SubBuildFile

    def full(self, name: str) -> str:
        return f"{self.folder}/{name}" if self.folder else name


def load_workspace(root: Path) -> Workspace:
    """Read and cross-check all declarations of a workspace.

    Raises:
        DeclarationError: with file, line, column and an excerpt of the place.
        VisibilityError: if a prompt's file stands in an audit source.
    """
    root = root.absolute()
    read = _Files(root)
    text = read.build_file(BUILD_FILE)
    file = decode(text, BuildFile)
    main = _Unit("", text, file)
    units = (main, *_subpackages(read, main, file.workspace.subpackages))
    for unit in units:
        _check_names(unit)
    sources = dict(item for unit in units for item in _sources(root, unit))
    workspace = Workspace(
        root=str(root),
        section=file.workspace,
        sources=sources,
        toolchains=file.toolchain,
        numerics=file.numerics,
        prompts={},
        schemas={unit.full(name): schema for unit in units for name, schema in unit.file.schema.items()},
        packages={},
    )
    _check_sections(units, file)
    prompts = dict(item for unit in units for item in _prompts(read, workspace, unit))
    workspace = msgspec.structs.replace(workspace, prompts=prompts)
    made = {unit.full(name): _resolved(workspace, unit, name) for unit, name in _packages(units, audits=False)}
    workspace = msgspec.structs.replace(workspace, packages=made)
    audits = {unit.full(name): _audit(workspace, unit, name) for unit, name in _packages(units, audits=True)}
    order = [unit.full(name) for unit in units for name in unit.file.package]
    packages = {name: (made | audits)[name] for name in order}
    files = _files(units)
    stamps = tuple(read.stamps.get(file, UNSTEADY) for file in files)
    return msgspec.structs.replace(workspace, packages=packages, files=files, stamps=stamps)


def _files(units: tuple[_Unit, ...]) -> tuple[str, ...]:
    """Return every file that declarations were read from."""
    texts = [
        (unit, text)
        for unit in units
        for prompt in unit.file.prompt.values()
        for text in (prompt.system, prompt.instruction)
    ]
    prompts = [paths.join(unit.folder, text.file) for unit, text in texts if isinstance(text, PromptFile)]
    return (*(paths.join(unit.folder, BUILD_FILE) for unit in units), *dict.fromkeys(prompts))


class _Files:
    """Reads files of declarations, and notes in `stamps` what each was while it was open."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.stamps: dict[str, Stamp] = {}

    def build_file(self, file: str) -> TomlText:
        return TomlText(file, self.text(file, None))

    def text(self, file: str, limit: int | None) -> str:
        hint = "check that it exists, is a file and is readable"
        try:
            with open(self.root / file, "rb", opener=without_waiting) as stream:
                status = os.fstat(stream.fileno())
                data = stream.read(-1 if limit is None else limit + 1)
        except OSError as error:
            why = {"file": str(self.root / file), "why": error.strerror}
            raise DeclarationError(f"`{file}` can't be read", facts=why, hint=hint) from None
        stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        self.stamps[file] = stamp if self.stamps.get(file, stamp) == stamp else UNSTEADY
        if limit is not None and len(data) > limit:
            raise DeclarationError(f"`{file}` is larger than {limit} bytes", facts={"file": file}, hint="shorten it")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            facts: dict[str, object] = {"file": file, "line": line, "byte": error.start}
            raise DeclarationError(f"`{file}` is not UTF-8", facts=facts, hint="save it as UTF-8") from None


def _subpackages(read: _Files, main: _Unit, folders: tuple[str, ...]) -> Iterator[_Unit]:
    root = read.root
    top = paths.real_path(root, "")
    seen: dict[str, str] = {}
    for number, folder in enumerate(folders):
        at: TomlPath = ("workspace", "subpackages", number)
        if reason := paths.refusal(folder):
            raise main.text.error(f"the path of a subpackage {reason}", at)
        real = paths.real_path(root, folder)
        if real == top:
            hint = "remove it from `subpackages`"
            raise main.text.error(f"subpackages form a cycle: `{folder}` is the root, which lists it", at, hint=hint)
        if not paths.inside(real, top):
            raise main.text.error(f"subpackage `{folder}` leads outside the workspace", at)
        if any(not PACKAGE_SEGMENT.fullmatch(segment) for segment in folder.split("/")):
            hint = "write a folder as `reports` or `reports/legal`, relative to the workspace"
            raise main.text.error(f"`{folder}` is no name for a subpackage", at, hint=hint)
        if real in seen:
            raise main.text.error(f"subpackage `{folder}` is the same folder as `{seen[real]}`", at, hint="keep one")
        seen[real] = folder
        if not (root / folder / BUILD_FILE).is_file():
            raise main.text.error(f"`{folder}` has no `{BUILD_FILE}`", at, hint="write one, or remove the subpackage")
        text = read.build_file(f"{folder}/{BUILD_FILE}")
        yield _Unit(folder, text, decode(text, SubBuildFile))


def _check_names(unit: _Unit) -> None:
    """Refuse names that labels can't hold, reserved names, and a package named as a source."""
    tables: dict[str, Mapping[str, object]] = {
        "sources": unit.file.sources,
        "prompt": unit.file.prompt,
        "schema": unit.file.schema,
        "package": unit.file.package,
    }
    if isinstance(unit.file, BuildFile):
        tables |= {"toolchain": unit.file.toolchain, "numerics": unit.file.numerics}
    for section, table in tables.items():
        for name in table:
            at = (section, name)
            if not PACKAGE_SEGMENT.fullmatch(name):
                hint = "names are letters, digits, `.`, `_` and `-`"
                raise unit.text.error(f"`{dotted(at)}` has no valid name", at, point=Point.KEY, hint=hint)
            if section in ("sources", "package") and unit.full(name) in RESERVED:
                hint = f"`//{name}:…` names the {name}s of the workspace: choose another name"
                raise unit.text.error(f"the name `{name}` is reserved", at, point=Point.KEY, hint=hint)
    for name in unit.file.package:
        if name in unit.file.sources:
            message = f"`//{unit.full(name)}:…` would name both a package and a source"
            raise unit.text.error(message, ("package", name), point=Point.KEY, hint="rename one of the two")


def _sources(root: Path, unit: _Unit) -> Iterator[tuple[str, Source]]:
    for name, section in unit.file.sources.items():
        at: TomlPath = ("sources", name, "path")
        if reason := paths.refusal(section.path):
            hint = "a path is relative to its BUILD.toml and stays inside the workspace"
            raise unit.text.error(f"the path of source `{name}` {reason}", at, hint=hint)
        yield unit.full(name), _source(root, unit, name, section)


def _source(root: Path, unit: _Unit, name: str, section: SourcesSection) -> Source:
    path = paths.join(unit.folder, section.path)
    at: TomlPath = ("sources", name, "path")
    if not paths.inside(paths.real_path(root, path), paths.real_path(root, "")):
        raise unit.text.error(f"the path of source `{name}` leads outside the workspace", at)
    if section.visibility is Visibility.INFERENCE and not (root / path).is_dir():
        raise unit.text.error(
            f"the path of source `{name}` is not a folder", at, hint=f"create `{path}`, or correct it"
        )
    return Source(unit.full(name), path, section.visibility, section.max_bytes)


def _check_sections(units: tuple[_Unit, ...], main: BuildFile) -> None:
    text = units[0].text
    for unit in units:
        for name, schema in unit.file.schema.items():
            checks.check_schema(unit.text, ("schema", name), schema)
    for name, toolchain in main.toolchain.items():
        checks.check_toolchain(text, ("toolchain", name), toolchain, main.numerics)
    default = main.workspace.default_toolchain
    if default not in main.toolchain:
        hint = suggest(default, main.toolchain, "the toolchains declared are")
        raise text.error(f"toolchain `{default}` is not declared", ("workspace", "default_toolchain"), hint=hint)


def _prompts(read: _Files, workspace: Workspace, unit: _Unit) -> Iterator[tuple[str, Prompt]]:
    for name, section in unit.file.prompt.items():
        system = _prompt_text(read, workspace, unit, name, "system", section)
        instruction = _prompt_text(read, workspace, unit, name, "instruction", section)
        examples = tuple(
            PromptExample(_without_last_newline(example.input), _without_last_newline(example.output))
            for example in section.examples
        )
        yield unit.full(name), Prompt(system, instruction, examples)


def _prompt_text(read: _Files, workspace: Workspace, unit: _Unit, name: str, key: str, section: PromptSection) -> str:
    value: str | PromptFile = getattr(section, key)
    at: TomlPath = ("prompt", name, key)
    if isinstance(value, str):
        if not value.strip():
            raise unit.text.error(f"`{dotted(at)}` is empty", at)
        return _without_last_newline(value)
    if reason := paths.refusal(value.file):
        raise unit.text.error(f"the file of `{dotted(at)}` {reason}", at, hint="a prompt's file stays in the workspace")
    root = Path(workspace.root)
    path = paths.join(unit.folder, value.file)
    real = paths.real_path(root, path)
    visibility.check_path((f"//prompt:{unit.full(name)}", path), real, visibility.audited(workspace))
    if not paths.inside(real, paths.real_path(root, "")):
        raise unit.text.error(f"the file of `{dotted(at)}` leads outside the workspace", at)
    if not Path(real).is_file():
        raise unit.text.error(f"the file of `{dotted(at)}` does not exist", at, hint=f"create `{path}`, or correct it")
    text = read.text(path, PROMPT_MAX_BYTES)
    if not text.strip():
        raise unit.text.error(f"the file of `{dotted(at)}` is empty", at)
    return _without_last_newline(text)


def _without_last_newline(text: str) -> str:
    """Return a prompt's text without the one newline that ends its last line, as editors and multi-line strings add."""
    return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")


def _packages(units: tuple[_Unit, ...], *, audits: bool) -> Iterator[tuple[_Unit, str]]:
    for unit in units:
        for name, package in unit.file.package.items():
            if isinstance(package, AuditSection) is audits:
                yield unit, name


def _audit(workspace: Workspace, unit: _Unit, name: str) -> PackageSection:
    """Return an audit package with full names, and the source and schema of the package that it audits.

    `workspace` holds all packages that can be audited.
    """
    package = unit.file.package[name]
    assert isinstance(package, AuditSection)
    at: TomlPath = ("package", name)
    targets = _reference(unit, (*at, "targets"), package.targets, workspace.packages, "package of summaries")
    labels = _reference(unit, (*at, "labels"), package.labels, workspace.sources, "source")
    if workspace.sources[labels].visibility is not Visibility.AUDIT:
        hint = f'add `visibility = "audit"` to `[sources.{package.labels}]`: gold must be out of reach of summaries'
        raise unit.text.error(f"source `{package.labels}` holds no gold", (*at, "labels"), hint=hint)
    audited = workspace.packages[targets]
    return AuditPackage(targets, labels, audited.sources, audited.schema)


def _resolved(workspace: Workspace, unit: _Unit, name: str) -> PackageSection:
    """Return a package with full names in place of the names as written, all of them declared."""
    package = unit.file.package[name]
    assert not isinstance(package, AuditSection)
    at: TomlPath = ("package", name)
    sources = _reference(unit, (*at, "sources"), package.sources, workspace.sources, "source")
    schema = _reference(unit, (*at, "schema"), package.schema, workspace.schemas, "schema")
    resolved: PackageSection
    strength = None
    if isinstance(package, SummaryTreePackage):
        toolchain = package.toolchain or workspace.section.default_toolchain
        strength = _declared(unit, (*at, "toolchain"), toolchain, workspace.toolchains, "toolchain").grammar.strength
        resolved = msgspec.structs.replace(
            package,
            sources=sources,
            schema=schema,
            map_prompt=_reference(unit, (*at, "map_prompt"), package.map_prompt, workspace.prompts, "prompt"),
            reduce_prompt=_reference(unit, (*at, "reduce_prompt"), package.reduce_prompt, workspace.prompts, "prompt"),
        )
    else:
        resolved = msgspec.structs.replace(package, sources=sources, schema=schema)
    declared: SchemaSection = workspace.schemas[schema]
    if reason := checks.mismatch(resolved, declared, strength):
        raise unit.text.error(reason, (*at, "schema"), hint=f"add a `fact_pattern` to `[schema.{package.schema}]`")
    return resolved


def _reference(unit: _Unit, at: TomlPath, name: str, declared: Mapping[str, object], noun: str) -> str:
    """Return the full name that a name means: the file's own first, then the root's."""
    for candidate in (unit.full(name), name):
        if candidate in declared and "/" not in name:
            return candidate
    prefix = f"{unit.folder}/" if unit.folder else ""
    own = [full.removeprefix(prefix) for full in declared if full.startswith(prefix)]
    known = [full for full in (*own, *declared) if "/" not in full]
    raise unit.text.error(
        f"{noun} `{name}` is not declared", at, hint=suggest(name, known, f"the {noun}s declared are")
    )


def _declared(unit: _Unit, at: TomlPath, name: str, declared: Mapping[str, V], noun: str) -> V:
    if name not in declared:
        hint = suggest(name, declared, f"the {noun}s declared are")
        raise unit.text.error(f"{noun} `{name}` is not declared", at, hint=hint)
    return declared[name]
