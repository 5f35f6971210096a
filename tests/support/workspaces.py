"""Builders of small workspaces on disk, and the edits that tests make to them.

`make_workspace(tmp_path, dossiers={"S-1": 3})` writes BUILD.toml, manifests and documents (two versions each).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

READER = "reader-demo"

FAKE_TOOLCHAIN = """
[toolchain.fake]
executor = "command"
command = ["gsum-fake"]
identity = "fake-1"
reproducible = true
network = false
grammar = { strength = "none" }
"""

_BUILD = """\
[workspace]
name = "test"
principal = "reader-demo"
default_toolchain = "fake"

[sources.corpus]
path = "corpus/dossiers"

[sources.labels]
path = "corpus/labels"
visibility = "audit"
{toolchain}
[prompt.map-v1]
system = "Read one document."
instruction = "List its facts."

[prompt.reduce-v1]
system = "Read a list of claims."
instruction = "Choose the facts to keep."

[schema.product]
fields = ["subject", "field", "value"]
enums = {{ field = ["delivery", "status", "quantity", "site"] }}
fact_pattern = 'Product (?P<subject>P-\\d+-\\d+) (?P<field>delivery|status|quantity|site): (?P<value>[^.\\n]+)\\.'

[package.dossier]
rule = "summary_tree"
sources = "corpus"
map_prompt = "map-v1"
reduce_prompt = "reduce-v1"
schema = "product"
fan_in = {fan_in}
map_input_tokens = 2048
reduce_input_tokens = 3072

[package.baseline]
rule = "extract"
sources = "corpus"
schema = "product"
"""


def make_workspace(
    root: Path,
    dossiers: Mapping[str, int | Mapping[str, str]] | None = None,
    *,
    toolchain: str = FAKE_TOOLCHAIN,
    fan_in: int = 4,
    extra: str = "",
) -> Path:
    """Write a workspace and return its root.

    A dossier is a number of documents (`D-00`, …) or their texts by id. `toolchain` is TOML that declares `fake`
    or more; `extra` is appended to BUILD.toml.
    """
    root.mkdir(parents=True, exist_ok=True)
    (root / "BUILD.toml").write_text(_BUILD.format(toolchain=toolchain, fan_in=fan_in) + extra)
    (root / "corpus/dossiers").mkdir(parents=True)
    (root / "corpus/labels").mkdir(parents=True)
    for name, content in (dossiers if dossiers is not None else {"S-1": 3}).items():
        make_dossier(root, name, content)
    return root


def make_dossier(root: Path, name: str, content: int | Mapping[str, str]) -> Path:
    """Write a dossier with a manifest, each document at version 1 of two, and return its folder."""
    if isinstance(content, int):
        content = {f"D-{number:02}": document_text(name, number) for number in range(content)}
    folder = root / "corpus/dossiers" / name
    (folder / "documents").mkdir(parents=True)
    manifest = f'schema = 1\nid = "{name}"\ntitle = "Dossier {name}"\n'
    for identifier, text in content.items():
        write_text(folder / f"documents/{identifier}.v1.txt", text)
        write_text(folder / f"documents/{identifier}.v2.txt", second_version(text))
        manifest += (
            f'\n[[documents]]\nid = "{identifier}"\nactive = "1"\nwithdrawn = false\n'
            f'versions = {{ 1 = "documents/{identifier}.v1.txt", 2 = "documents/{identifier}.v2.txt" }}\n'
            f"readers = {{ {READER} = {{ granted = true, revision = 1 }} }}\n"
        )
    write_text(folder / "dossier.toml", manifest)
    return folder


def document_text(dossier: str, number: int) -> str:
    """Return the three lines of a test document: a reference line and two facts."""
    product = f"P-{re.sub('[^0-9]', '', dossier) or '0'}-{number:02}"
    return (
        f"Reference {dossier}/{number:02}.\n"
        f"Product {product} delivery: {number + 1} March.\n"
        f"Product {product} site: Hall {number + 1}.\n"
    )


def second_version(text: str) -> str:
    """Return version 2 of a test document: March becomes April."""
    return text.replace("March", "April")


def edit_text(root: Path, dossier: str, document: str, text: str, version: str = "1") -> None:
    """Replace the text of one version of a document."""
    write_text(root / f"corpus/dossiers/{dossier}/documents/{document}.v{version}.txt", text)


def activate(root: Path, dossier: str, document: str, version: str) -> None:
    """Make a version of a document the active one."""
    _edit_entry(root, dossier, document, r'active = "[^"]*"', f'active = "{version}"')


def withdraw(root: Path, dossier: str, document: str) -> None:
    """Withdraw a document."""
    _edit_entry(root, dossier, document, r"withdrawn = \w+", "withdrawn = true")


def restore(root: Path, dossier: str, document: str) -> None:
    """Restore a withdrawn document."""
    _edit_entry(root, dossier, document, r"withdrawn = \w+", "withdrawn = false")


def set_reader(root: Path, dossier: str, document: str, *, granted: bool, revision: int, reader: str = READER) -> None:
    """Make `reader` the one reader of a document, with these rights."""
    right = f"readers = {{ {reader} = {{ granted = {str(granted).lower()}, revision = {revision} }} }}"
    _edit_entry(root, dossier, document, r"readers = .*", right)


def set_prompt(root: Path, name: str, instruction: str) -> None:
    """Replace the instruction of a prompt."""
    _edit_build(root, rf'(\[prompt\.{re.escape(name)}\]\n[^\[]*?instruction = )"[^"]*"', instruction)


def set_fan_in(root: Path, fan_in: int) -> None:
    """Change the fan-in of package `dossier`."""
    file = root / "BUILD.toml"
    text, count = re.subn(r"fan_in = \d+", f"fan_in = {fan_in}", file.read_text())
    assert count == 1
    file.write_text(text)


def edit_build(root: Path, old: str, new: str) -> None:
    """Replace a text that stands exactly once in BUILD.toml."""
    file = root / "BUILD.toml"
    text = file.read_text()
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
    file.write_text(text.replace(old, new))


def edit_manifest(root: Path, dossier: str, old: str, new: str) -> None:
    """Replace the first occurrence of a text in a manifest."""
    file = root / f"corpus/dossiers/{dossier}/dossier.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def write_text(path: Path, text: str) -> None:
    """Write text as it is: no newline is translated."""
    path.write_bytes(text.encode())


def _edit_build(root: Path, pattern: str, value: str) -> None:
    file = root / "BUILD.toml"
    quoted = json.dumps(value, ensure_ascii=False)
    text, count = re.subn(pattern, lambda match: match[1] + quoted, file.read_text())
    assert count == 1
    file.write_text(text)


def _edit_entry(root: Path, dossier: str, document: str, pattern: str, value: str) -> None:
    file = root / f"corpus/dossiers/{dossier}/dossier.toml"
    head, *entries = file.read_text().split("[[documents]]")
    for number, entry in enumerate(entries):
        if f'id = "{document}"' in entry:
            entries[number], count = re.subn(pattern, value, entry)
            assert count == 1
            break
    else:
        raise AssertionError(f"no document {document} in {dossier}")
    file.write_text("[[documents]]".join([head, *entries]))
