"""Write the controlled corpus: manifests and texts under `dossiers/`, gold under `labels/`.

Run `python -m gsum.corpus.generate [--out DIR] [--check]`. Byte-identical on any machine. Nothing in gsum may
import this module: the texts are inputs, the gold is for evaluation only.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gsum.corpus import settings
from gsum.corpus.writing import VERSIONS, Bank, Document, Version, write_document

SCHEMA_VERSION: Final = 1


@dataclass(frozen=True)
class Dossier:
    """One dossier as it is written to disk."""

    number: str
    title: str
    split: str
    documents: tuple[Document, ...]

    @property
    def id(self) -> str:
        """Return the dossier's id, such as `S-037`."""
        return f"S-0{self.number}"


def write_dossier(index: int) -> Dossier:
    """Write the dossier at this place of `settings.SETTINGS`."""
    number = str(settings.FIRST_NUMBER + index)
    bank = Bank(number)
    documents = tuple(write_document(number, f"{slot:02d}", bank) for slot in range(settings.DOCUMENTS))
    split = "test" if index < settings.TEST_DOSSIERS else "development"
    return Dossier(number, settings.SETTINGS[index].title, split, documents)


def corpus_files() -> dict[str, str]:
    """Return the whole corpus: text by path relative to the corpus folder."""
    files: dict[str, str] = {}
    for index in range(len(settings.SETTINGS)):
        dossier = write_dossier(index)
        folder = f"dossiers/{dossier.id}"
        files[f"{folder}/dossier.toml"] = render_manifest(dossier)
        files[f"labels/{dossier.id}.json"] = render_labels(dossier)
        for document in dossier.documents:
            for version in VERSIONS:
                files[f"{folder}/{_text_path(dossier, document, version)}"] = document.text(version)
    return files


def render_manifest(dossier: Dossier) -> str:
    """Return `dossier.toml` of a dossier."""
    setting = settings.SETTINGS[int(dossier.number) - settings.FIRST_NUMBER]
    note = f"{setting.office}: {len(dossier.documents)} papers, each in two versions; what is active stands below."
    paths = {
        _document_id(dossier, document): {version: _text_path(dossier, document, version) for version in VERSIONS}
        for document in dossier.documents
    }
    return manifest_text(note, dossier.id, dossier.title, paths)


def manifest_text(note: str, dossier: str, title: str, documents: Mapping[str, Mapping[Version, str]]) -> str:
    """Return a `dossier.toml`: version 1 of every document active, and the principal may read them all.

    `documents` has the path of each version by version and document id.
    """
    lines = [f"# {note}", f"schema = {SCHEMA_VERSION}", f'id = "{dossier}"', f'title = "{title}"']
    for document, versions in documents.items():
        paths = ", ".join(f'{version} = "{path}"' for version, path in versions.items())
        lines += [
            "",
            "[[documents]]",
            f'id = "{document}"',
            f'active = "{VERSIONS[0]}"',
            "withdrawn = false",
            f"versions = {{ {paths} }}",
            f"readers = {{ {settings.PRINCIPAL} = {{ granted = true, revision = 1 }} }}",
        ]
    return "".join(f"{line}\n" for line in lines)


def render_labels(dossier: Dossier) -> str:
    """Return the gold of a dossier as JSON, one fact a line.

    `line` counts all lines from 1; `start` and `end` are indices of characters in the text of that version.
    """
    head = {"schema": SCHEMA_VERSION, "dossier": dossier.id, "split": dossier.split}
    documents = ",\n".join(_document_labels(dossier, document) for document in dossier.documents)
    return f'{json.dumps(head)[:-1]}, "documents": [\n{documents}\n]}}\n'


def _document_labels(dossier: Dossier, document: Document) -> str:
    versions = []
    for version in VERSIONS:
        text = document.text(version)
        head = {"version": version, "text_sha256": hashlib.sha256(text.encode()).hexdigest()}
        facts = ",\n".join(f"  {json.dumps(fact)}" for fact in _gold(document, version))
        versions.append(f'{json.dumps(head)[:-1]}, "facts": [\n{facts}\n ]}}')
    head = {"document": _document_id(dossier, document), "product": document.product}
    return f'{json.dumps(head)[:-1]}, "versions": [\n ' + ",\n ".join(versions) + "\n]}"


def _gold(document: Document, version: Version) -> list[dict[str, str | int]]:
    """Return the facts of a version in the order of its lines, each with its place."""
    facts: list[dict[str, str | int]] = []
    start = 0
    for number, template in enumerate(document.lines, start=1):
        is_fact = template in settings.FIELDS
        line = document.fact_line(template, version) if is_fact else template
        if is_fact:
            value = document.facts[version][template]
            place = {"line": number, "start": start, "end": start + len(line)}
            facts.append({"product": document.product, "field": template, "value": value, **place, "quote": line})
        start += len(line) + 1
    return facts


def _document_id(dossier: Dossier, document: Document) -> str:
    return f"D-{dossier.number}-{document.slot}"


def _text_path(dossier: Dossier, document: Document, version: Version) -> str:
    return f"documents/{_document_id(dossier, document)}.v{version}.txt"


def differences(folder: Path, files: dict[str, str]) -> list[str]:
    """Compare a folder with the corpus, both ways; return one line for each path that is not as generated."""
    present = {
        path.relative_to(folder).as_posix()
        for part in ("dossiers", "labels")
        for path in (folder / part).rglob("*")
        if path.is_file()
    }
    missing = [f"missing  {path}" for path in sorted(files.keys() - present)]
    extra = [f"extra    {path}" for path in sorted(present - files.keys())]
    shared = sorted(present & files.keys())
    changed = [f"differs  {path}" for path in shared if (folder / path).read_bytes() != files[path].encode()]
    return missing + extra + changed


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write the corpus; files that do not belong to it are left alone (`--check` names them)."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the corpus, or with `--check` compare it with what is there; return 1 if anything differs."""
    return run(
        "Write the controlled corpus, byte for byte the same everywhere.", Path(__file__), corpus_files(), arguments
    )


def run(description: str, module: Path, files: dict[str, str], arguments: Sequence[str] | None) -> int:
    """Write or check the files of a corpus, by default beside the module that generates them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=module.resolve().parent, help="the corpus folder")
    parser.add_argument("--check", action="store_true", help="write nothing; list what is not as generated")
    options = parser.parse_args(arguments)
    if not options.check:
        write_files(options.out, files)
    found = differences(options.out, files)
    for line in found:
        print(line, file=sys.stderr)
    print(f"{len(files)} files, {len(found)} not as generated")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
