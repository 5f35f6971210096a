"""`gsum doc`: edits of a dossier's manifest, and what became stale by them."""

from __future__ import annotations

from collections.abc import Callable

import click

from gsum.cli.config import check_text
from gsum.cli.context import Config, current_config, options, reading_store
from gsum.cli.editing import Changed, Place, edit_manifest, find_place
from gsum.cli.render import emit, emit_json, safe
from gsum.rules import manifest_edit
from gsum.rules.labels import document_label
from gsum.rules.loader import load_workspace
from gsum.rules.manifest_edit import Edit

_READER = click.option(
    "--reader", metavar="P", callback=check_text, help="Whose right; else the principal of the workspace."
)
_LABEL = click.argument("label", metavar="DOSSIER")
_DOCUMENT = click.argument("document", metavar="DOCUMENT")


@click.group("doc")
def command() -> None:
    """Edit the manifest of a dossier: its documents' versions, withdrawals and rights.

    DOSSIER is the label of a dossier in a package or a source: //dossier:S-037, //corpus:S-037.
    """


@command.command("activate")
@_LABEL
@_DOCUMENT
@click.option("--version", required=True, metavar="V", help="The version to make the active one.")
@options(principal=True, toolchain=True)
def activate(label: str, document: str, version: str) -> None:
    """Make a version of DOCUMENT the active one."""
    _run(
        "activate",
        label,
        document,
        lambda text, file: manifest_edit.activate(text, document, version, file),
        f"version {version} is active",
    )


@command.command("withdraw")
@_LABEL
@_DOCUMENT
@options(principal=True, toolchain=True)
def withdraw(label: str, document: str) -> None:
    """Withdraw DOCUMENT from every reader."""
    _run("withdraw", label, document, lambda text, file: manifest_edit.withdraw(text, document, file), "withdrawn")


@command.command("restore")
@_LABEL
@_DOCUMENT
@options(principal=True, toolchain=True)
def restore(label: str, document: str) -> None:
    """Restore a withdrawn DOCUMENT."""
    _run("restore", label, document, lambda text, file: manifest_edit.restore(text, document, file), "restored")


@command.command("revoke")
@_LABEL
@_DOCUMENT
@_READER
@options(toolchain=True)
def revoke(label: str, document: str, reader: str | None) -> None:
    """Take DOCUMENT from a reader."""
    _set_right("revoke", label, document, reader)


@command.command("grant")
@_LABEL
@_DOCUMENT
@_READER
@options(toolchain=True)
def grant(label: str, document: str, reader: str | None) -> None:
    """Let a reader read DOCUMENT."""
    _set_right("grant", label, document, reader)


def _set_right(name: str, label: str, document: str, reader: str | None) -> None:
    config = current_config()
    who = reader or config.principal or load_workspace(config.root).section.principal
    edit = manifest_edit.grant if name == "grant" else manifest_edit.revoke
    state = f"`{safe(who)}` {'may' if name == 'grant' else 'may not'} read it"
    _run(name, label, document, lambda text, file: edit(text, document, who, file), state, principal=who)


def _run(
    name: str, label: str, document: str, edit: Callable[[str, str], Edit], state: str, principal: str | None = None
) -> None:
    """Make an edit and say what came of it, for the reader whose right changed or the principal of the command."""
    config = current_config()
    workspace = load_workspace(config.root)
    place = find_place(workspace, label)
    who = principal or config.principal or workspace.section.principal
    with reading_store(config, config.root) as store:
        changed = edit_manifest(
            workspace,
            place,
            store,
            lambda text: edit(text, place.file),
            principal=who,
            toolchain=config.toolchain,
        )
    node = str(document_label(place.source, place.dossier, document))
    if config.json:
        emit_json(
            "doc",
            {
                "edit": name,
                "document": node,
                "manifest": place.file,
                "principal": who,
                "changed": changed.changed,
                "stale": list(changed.stale),
                "current_again": list(changed.current_again),
                "switched": list(changed.switched),
                "stale_roots": list(changed.stale_roots),
            },
        )
    else:
        _print(config, f"{node}: {state}", place, changed)


def _print(config: Config, what: str, place: Place, changed: Changed) -> None:
    if not changed.changed:
        emit(config, f"no change: {what} already")
        return
    emit(config, f"{what} (written to {place.file})")
    headings = {
        "became STALE": changed.stale,
        "current again": changed.current_again,
        "current still, now as an earlier build made it": changed.switched,
    }
    for heading, labels in headings.items():
        if labels:
            emit(config, f"{heading}:")
        for label in labels:
            emit(config, f"  {label}")
    if not changed.compared:
        emit(config, "what became STALE by it is not known: the dossier could not be read before")
    elif not any(headings.values()):
        emit(config, "nothing that is built is touched by it")
    if changed.stale_roots:
        emit(config, f"next: {safe(config.typed('build', *changed.stale_roots))}")
