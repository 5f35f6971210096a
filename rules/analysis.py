"""Analysis: patterns to the static, acyclic action graph of what they name. Pure but for ingestion.

Knows no rule kind: `EXPANSIONS` expand packages. Nothing after analysis adds targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from gsum.rules import checks
from gsum.rules.config import AuditPackage, SummaryTreePackage, Workspace
from gsum.rules.expand import Expansion
from gsum.rules.expand.rules import EXPANSIONS
from gsum.rules.gold_files import FileGolds, Golds, gold_snapshot
from gsum.rules.graph import Action, ActionGraph
from gsum.rules.ingest import Digests, Survey, has_dossier, list_dossiers, read_survey, survey
from gsum.rules.labels import Extent, Label, LabelError, Pattern, nearest, parse_pattern, unknown
from gsum.rules.nearest import suggest
from gsum.rules.places import Places
from gsum.rules.snapshot import Snapshot
from gsum.rules.toml import DeclarationError
from gsum.rules.visibility import audited, check_graph, check_package

Lister = Callable[[Workspace, str], Sequence[str]]


class Selection(msgspec.Struct, frozen=True):
    """Which parts of one dossier a pattern asks for: all, or one by name."""

    pattern: str
    package: str
    dossier: str
    part: str | None


def analyse(
    workspace: Workspace,
    patterns: Iterable[str],
    principal: str | None = None,
    toolchain: str | None = None,
    digests: Digests | None = None,
    rules: Mapping[str, Expansion] = EXPANSIONS,
    golds: Golds | None = None,
) -> ActionGraph:
    """Return the graph of the targets that patterns name and of all they are built from.

    `principal` and `toolchain` replace the workspace's and the packages' own. Only dossiers that a pattern names
    are read; no document is opened before visibility holds for all of them.

    Raises:
        LabelError: if a pattern is malformed or matches nothing, or the toolchain is not declared.
        DeclarationError: on a bad manifest or document, or a cycle.
        VisibilityError: if a package can reach an audit source.
        GoldError: if an audit is asked for and its labels file lacks what it needs.
    """
    golds = golds or FileGolds()
    selections = resolve_patterns(workspace, patterns)
    check_toolchain(workspace, {selection.package for selection in selections}, toolchain)
    snapshots = _snapshots(workspace, selections, principal or workspace.section.principal, digests)
    expanded: dict[tuple[str, str], tuple[Action, ...]] = {}
    actions: dict[str, Action] = {}
    requested: dict[str, None] = {}
    for selection in selections:
        taken = snapshots[workspace.packages[selection.package].sources, selection.dossier]
        for package in (*_audited(workspace, selection.package), selection.package):
            if (package, selection.dossier) not in expanded:
                shown = _with_gold(workspace, package, taken, golds)
                expanded[package, selection.dossier] = _expand(workspace, package, shown, toolchain, rules)
                _add(actions, expanded[package, selection.dossier])
        requested |= dict.fromkeys(_requested(selection, expanded[selection.package, selection.dossier]))
    graph = _closure(actions, tuple(requested), {pair: taken.title for pair, taken in snapshots.items()})
    check_graph(workspace, graph)
    return graph


def resolve_patterns(
    workspace: Workspace, patterns: Iterable[str], names: Lister = list_dossiers
) -> tuple[Selection, ...]:
    """Return which dossiers of which packages patterns name, without reading any of them.

    `names` lists the dossiers of a source.

    Raises:
        LabelError: if a pattern is malformed or names no package or dossier, with the nearest one.
        VisibilityError: if a package named can reach an audit source.
    """
    audit = audited(workspace)
    found: dict[tuple[str, str, str | None], Selection] = {}
    checked: set[str] = set()
    for text in patterns:
        pattern = parse_pattern(text)
        packages = _packages(workspace, pattern)
        for package in packages:
            if package not in checked:
                check_package(workspace, package, audit)
                checked.add(package)
        selected = [item for package in packages for item in _dossiers(workspace, pattern, package, names)]
        if not selected:
            raise LabelError(f"`{text}` matches nothing", hint="`gsum query //...` lists all targets")
        for item in selected:
            found.setdefault((item.package, item.dossier, item.part), item)
    return tuple(found.values())


def check_acyclic(actions: Mapping[str, Action]) -> tuple[str, ...]:
    """Return the labels of actions, children before parents.

    Raises:
        DeclarationError: naming a cycle, or a child that no rule made.
    """
    order: list[str] = []
    done: set[str] = set()
    for label, action in actions.items():  # rules put children before parents: then that is the order
        if not done.issuperset(action.children):
            break
        done.add(label)
    else:
        return tuple(actions)
    done.clear()
    for start in actions:
        path: dict[str, None] = {}
        stack = [(start, False)]
        while stack:
            label, leaving = stack.pop()
            if leaving:
                path.popitem()
                done.add(label)
                order.append(label)
                continue
            if label in done:
                continue
            if label in path:
                raise _cycle(list(path), label)
            if label not in actions:
                raise DeclarationError(f"`{next(reversed(path), start)}` needs `{label}`, which does not exist")
            path[label] = None
            stack.append((label, True))
            stack += [(child, False) for child in reversed(actions[label].children)]
    return tuple(order)


def _cycle(path: list[str], label: str) -> DeclarationError:
    cycle = [*path[path.index(label) :], label]
    return DeclarationError(
        f"`{label}` depends on itself", facts={"cycle": " → ".join(cycle)}, hint="remove one of the references"
    )


def _packages(workspace: Workspace, pattern: Pattern) -> list[str]:
    found = [package for package in workspace.packages if pattern.covers_package(package)]
    if found or (pattern.extent is Extent.TREE and not pattern.package):
        return found
    name = pattern.package
    if name in workspace.sources or name in ("prompt", "schema", "toolchain"):
        raise LabelError(
            f"`{pattern.text}` names an input, not a target",
            hint=f"`gsum query 'rdeps {pattern.text}'` lists what uses it",
        )
    hint = suggest(name, workspace.packages, "the packages are")
    close = nearest(name, workspace.packages)
    if close is not None:
        hint = f"did you mean `{pattern.text.replace(name, close, 1)}`?"
    raise LabelError(f"package `{name}` is not declared", facts={"label": pattern.text}, hint=hint)


def _dossiers(workspace: Workspace, pattern: Pattern, package: str, names: Lister) -> list[Selection]:
    source = workspace.packages[package].sources
    if pattern.extent in (Extent.PACKAGE, Extent.TREE, Extent.ROOTS):
        part = "root" if pattern.extent is Extent.ROOTS else None
        return [Selection(pattern.text, package, name, part) for name in names(workspace, source)]
    if not has_dossier(workspace, source, pattern.name):
        close = nearest(pattern.name, list_dossiers(workspace, source))
        label = str(Label(package, close, pattern.part)) if close else None
        message = f"source `{source}` has no dossier `{pattern.name}`"
        raise unknown(pattern.text, message, label, f"`gsum query //{package}:all` lists the dossiers")
    part = None if pattern.extent is Extent.PARTS else pattern.part or "root"
    return [Selection(pattern.text, package, pattern.name, part)]


def _snapshots(
    workspace: Workspace, selections: tuple[Selection, ...], principal: str, digests: Digests | None
) -> dict[tuple[str, str], Snapshot]:
    """Survey every dossier before a document of any is opened, then read them."""
    places = Places(workspace)
    surveys: dict[tuple[str, str], Survey] = {}
    for selection in selections:
        pair = (workspace.packages[selection.package].sources, selection.dossier)
        if pair not in surveys:
            surveys[pair] = survey(workspace, *pair, principal, places)
    return {pair: read_survey(workspace, surveyed, digests) for pair, surveyed in surveys.items()}


def _expand(
    workspace: Workspace, name: str, taken: Snapshot, toolchain: str | None, rules: Mapping[str, Expansion]
) -> tuple[Action, ...]:
    package = workspace.packages[name]
    chosen = None
    summaries = workspace.packages[package.targets] if isinstance(package, AuditPackage) else package
    if isinstance(summaries, SummaryTreePackage):
        chosen = toolchain or summaries.toolchain or workspace.section.default_toolchain
    return rules[str(package.__struct_config__.tag)].expand(name, package, taken, chosen)


def _audited(workspace: Workspace, name: str) -> tuple[str, ...]:
    package = workspace.packages[name]
    return (package.targets,) if isinstance(package, AuditPackage) else ()


def _with_gold(workspace: Workspace, name: str, taken: Snapshot, golds: Golds | None) -> Snapshot:
    """Return the snapshot that a package expands: an audit's is of its gold, not looked at without `golds`."""
    package = workspace.packages[name]
    if not isinstance(package, AuditPackage):
        return taken
    digest = None if golds is None else golds.digest(workspace, package, taken)
    return gold_snapshot(workspace, package, taken, digest)


def _add(actions: dict[str, Action], expanded: tuple[Action, ...]) -> None:
    for action in expanded:
        if action.label in actions:
            raise DeclarationError(f"target `{action.label}` is declared twice", hint="rename one of the two")
        actions[action.label] = action


def _requested(selection: Selection, expanded: tuple[Action, ...]) -> list[str]:
    labels = [action.label for action in expanded]
    if selection.part is None:
        return labels
    wanted = str(Label(selection.package, selection.dossier, selection.part))
    if wanted not in labels:
        close = nearest(wanted, labels)
        hint = f"`gsum query //{selection.package}:{selection.dossier}/...` lists its parts"
        raise unknown(selection.pattern, f"target `{wanted}` does not exist", close, hint)
    return [wanted]


def _closure(actions: dict[str, Action], requested: tuple[str, ...], titles: dict[tuple[str, str], str]) -> ActionGraph:
    order = check_acyclic(actions)
    needed = set(requested)
    for label in reversed(order):
        if label in needed:
            needed.update(actions[label].children)
    return ActionGraph({label: actions[label] for label in order if label in needed}, requested, titles)


def check_toolchain(workspace: Workspace, packages: set[str], toolchain: str | None) -> None:
    """Check that a toolchain asked for is declared and fits the schemas of packages.

    Raises:
        LabelError: if it is not declared.
        DeclarationError: if its strength needs what a schema does not declare.
    """
    if toolchain is None:
        return
    if toolchain not in workspace.toolchains:
        hint = suggest(toolchain, workspace.toolchains, "the toolchains declared are")
        raise LabelError(f"toolchain `{toolchain}` is not declared", hint=hint)
    strength = workspace.toolchains[toolchain].grammar.strength
    for name in sorted(packages):
        package = workspace.packages[name]
        if reason := checks.mismatch(package, workspace.schemas[package.schema], strength):
            raise DeclarationError(
                reason, facts={"package": name, "toolchain": toolchain}, hint="choose another toolchain"
            )
