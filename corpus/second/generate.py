"""Write the second corpus: manifests and texts under `dossiers/`, gold under `labels/`.

Run `python -m gsum.corpus.second.generate [--out DIR] [--check]`. Byte-identical on any machine. Nothing in gsum may
import this module: the texts are inputs, the gold is for evaluation only.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from gsum.corpus.generate import manifest_text, run
from gsum.corpus.second import settings
from gsum.corpus.second.lines import EARLIER, Document, Fact, Place, naming
from gsum.corpus.second.writing import write_documents
from gsum.corpus.writing import Version

LABELS_SCHEMA: Final = 1
SPLIT: Final = "second"


def corpus_files() -> dict[str, str]:
    """Return the whole corpus: text by path relative to its folder."""
    files: dict[str, str] = {}
    for index, setting in enumerate(settings.SETTINGS):
        number = str(settings.FIRST_NUMBER + index)
        dossier, documents = f"T-{number}", write_documents(number)
        note = f"{setting.office}: {len(documents)} papers; the first has a second version, not active."
        paths = {
            _id(number, document): {version: _path(number, document, version) for version in document.versions}
            for document in documents
        }
        files[f"dossiers/{dossier}/dossier.toml"] = manifest_text(note, dossier, setting.title, paths)
        files[f"labels/{dossier}.json"] = render_labels(number, documents)
        for document in documents:
            for version in document.versions:
                files[f"dossiers/{dossier}/{_path(number, document, version)}"] = document.text(version)
    return files


def render_labels(number: str, documents: Sequence[Document]) -> str:
    """Return the gold of a dossier as JSON, a fact or superseded statement a line.

    `line` counts all lines from 1; `start` and `end` are indices of characters in the text of that version.
    """
    head = {"schema": LABELS_SCHEMA, "dossier": f"T-{number}", "split": SPLIT}
    body = ",\n".join(_document_labels(number, document) for document in documents)
    return f'{json.dumps(head)[:-1]}, "documents": [\n{body}\n]}}\n'


def _document_labels(number: str, document: Document) -> str:
    products = list(dict.fromkeys(fact.product for fact in document.facts))
    head = {"document": _id(number, document), "date": document.date, "products": products}
    versions = ",\n ".join(_version_labels(document, version) for version in document.versions)
    return f'{json.dumps(head)[:-1]}, "versions": [\n {versions}\n]}}'


def _version_labels(document: Document, version: Version) -> str:
    digest = hashlib.sha256(document.text(version).encode()).hexdigest()
    head = {"version": version, "text_sha256": digest}
    facts = ",\n".join(f"  {json.dumps(fact)}" for fact in _supported(document, version))
    void = ",\n".join(f"  {json.dumps(statement)}" for statement in _superseded(document, version))
    return f'{json.dumps(head)[:-1]}, "facts": [\n{facts}\n ], "superseded": [\n{void}\n ]}}'


def _supported(document: Document, version: Version) -> list[dict[str, Any]]:
    """Return the current facts, each with every line from which a reader can take its value."""
    places = document.places(version)
    return [
        {
            **_claim(fact, fact.values[version]),
            "intervals": [
                _interval(places, place, fact)
                for place, line in zip(places, document.lines, strict=True)
                if index in line.states
            ],
        }
        for index, fact in enumerate(document.facts)
    ]


def _superseded(document: Document, version: Version) -> list[dict[str, Any]]:
    """Return the statements of old values, in the order of their lines: denied ones, and ones of an earlier date."""
    places = document.places(version)
    found: list[dict[str, Any]] = []
    for place, line in zip(places, document.lines, strict=True):
        if line.old is not None:
            fact = document.facts[line.old.fact]
            said = {"said": line.old.said} if line.old.why == EARLIER else {}
            intervals = [_interval(places, place, fact)]
            found.append({**_claim(fact, fact.old), "why": line.old.why, **said, "intervals": intervals})
    return found


def _claim(fact: Fact, value: str) -> dict[str, str]:
    return {"product": fact.product, "field": fact.field, "value": value}


def _interval(places: Sequence[Place], place: Place, fact: Fact) -> dict[str, Any]:
    """Return a line as an interval, with where its product is named: in it, or in a line above it."""
    where = naming(places, place.line, fact.product)
    own = {"line": place.line, "start": place.start, "end": place.end, "quote": place.quote}
    if where is place:
        return {**own, "product_in": "line"}
    heading = {"line": where.line, "start": where.start, "end": where.end, "quote": where.quote}
    return {**own, "product_in": "heading", "heading": heading}


def _id(number: str, document: Document) -> str:
    return f"E-{number}-{document.slot}"


def _path(number: str, document: Document, version: Version) -> str:
    return f"documents/{_id(number, document)}.v{version}.txt"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the corpus, or with `--check` compare it with what is there; return 1 if anything differs."""
    return run("Write the second corpus, byte for byte the same everywhere.", Path(__file__), corpus_files(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
