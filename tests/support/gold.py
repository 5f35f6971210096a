"""Gold for small workspaces, and the packages that audit against it."""

from __future__ import annotations

import json

from gsum.store.digests import sha256_hex

EVAL = """
[package.eval]
rule = "audit"
targets = "dossier"
labels = "labels"

[package.eval-baseline]
rule = "audit"
targets = "baseline"
labels = "labels"
"""


def labels_of(root, dossier, *, split="test", leave_out=(), versions=("1", "2")):
    """Write gold for a dossier of `make_workspace`: two facts a document, read with no code of the product."""
    documents = []
    for file in sorted((root / f"corpus/dossiers/{dossier}/documents").glob("*.v1.txt")):
        name = file.name.removesuffix(".v1.txt")
        if name in leave_out:
            continue
        found = []
        for version in versions:
            text = file.with_name(f"{name}.v{version}.txt").read_text()
            facts = [line.rstrip(".").split(" ", 2)[1:] for line in text.splitlines() if line.startswith("Product ")]
            found.append(
                {
                    "version": version,
                    "text_sha256": sha256_hex(text.encode()),
                    "facts": [
                        {"product": product, "field": rest.split(": ")[0], "value": rest.split(": ")[1]}
                        for product, rest in facts
                    ],
                }
            )
        documents.append({"document": name, "versions": found})
    file = root / f"corpus/labels/{dossier}.json"
    file.write_text(json.dumps({"schema": 1, "dossier": dossier, "split": split, "documents": documents}))
    return file
