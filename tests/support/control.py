"""An independent control of a mutations run: it shares no code with the product and trusts none of its summaries.

From the databases' raw rows and the labels files alone it recomputes keys, perimeters, rights, citations, statuses,
comparisons and metrics. `control(folder)` raises AssertionError at the first thing that does not hold.
"""

import hashlib
import json
import re
import sqlite3
from collections import Counter
from pathlib import Path

from blake3 import blake3

FACT = re.compile(r"Product (P-\d+-\d+) (delivery|status|quantity|site): ([^.\n]+)\.")


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def key_of(kind, data):
    return blake3(data, derive_key_context=f"gsum 2026-11-30 {kind} v1").hexdigest()


class Raw:
    """The rows of one store, every hash recomputed on the way in."""

    def __init__(self, folder):
        database = sqlite3.connect(f"file:{folder / 'store.sqlite'}?mode=ro", uri=True)
        self.records, self.blobs, self.entries, self.built = {}, {}, {}, {}
        for key, kind, data in database.execute(
            "SELECT key, kind, data FROM record"
            " UNION ALL SELECT key, 'action', preimage FROM entry WHERE preimage NOT NULL"
            " UNION ALL SELECT perimeter, 'perimeter', perimeter_preimage FROM entry WHERE perimeter NOT NULL"
            " UNION ALL SELECT request, 'request', preimage FROM execution WHERE preimage NOT NULL"
        ):
            assert key_of(kind, data) == key.hex(), f"record of kind {kind} does not hash to its key"
            assert canonical(json.loads(data)) == data, f"record of kind {kind} is not canonical"
            self.records[key.hex()] = json.loads(data)
        for digest, data in database.execute("SELECT digest, data FROM blob"):
            name = digest.hex()
            content = (folder / "blobs" / name[:2] / name[2:]).read_bytes() if data is None else data
            assert blake3(content).hexdigest() == name, "a blob does not hash to its digest"
            self.blobs[name] = content
        for key, result, request, generation, sources, how, status in database.execute(
            "SELECT key, result, request, generation, sources, how, status FROM entry"
        ):
            digests = [sources[at : at + 32].hex() for at in range(0, len(sources), 32)]
            self.entries[key.hex()] = {
                "result": json.loads(self.blobs[result.hex()]),
                "request": None if request is None else self.records[request.hex()],
                "generation": None if generation is None else json.loads(self.blobs[generation.hex()]),
                "sources": [self.blobs[digest] for digest in digests],
                "how": how,
                "status": status,
            }
        for label, key in database.execute(
            "SELECT label, key FROM (SELECT label, key, number AS at, 0 AS later FROM entry WHERE principal NOT NULL"
            " UNION ALL SELECT label, key, behind, number FROM target) ORDER BY at, later"
        ):
            self.built.setdefault(label, []).append(key.hex())


def check_node(raw, key, below=None):
    """Hold one target and all below it to what its preimage says; return its perimeter and its readable documents."""
    below = {} if below is None else below
    if key in below:
        return below[key]
    preimage, entry = raw.records[key], raw.entries[key]
    for name in ("toolchain", "prompt", "schema"):
        assert preimage[name] is None or preimage[name] in raw.records, f"the {name} of a key is not kept"
    children = [check_node(raw, child, below) for child in preimage["children"]]
    source, result = preimage["source"], entry["result"]
    assert entry["status"] == result["status"], "an entry has another status than its result"
    if source is None:
        perimeter = {"children": [child[0] for child in children], "key_schema": 1}
        documents = {name: document for child in children for name, document in child[1].items()}
    else:
        rights = {name: source[name] for name in ("id", "active", "eligible", "access_revision")}
        perimeter = rights | {"principal": preimage["principal"], "key_schema": 1}
        documents = {}
        if source["active"] and source["eligible"]:
            (data,) = entry["sources"]
            assert blake3(data).hexdigest() == source["text"], "a leaf's source is not the text of its key"
            documents = {source["id"]: (source["version"], data.decode())}
        else:
            assert (source["version"], source["text"], entry["request"]) == (None, None, None), "a text that is hidden"
            assert entry["how"] == "ineligible"
    assert key_of("perimeter", canonical(perimeter)) == preimage["perimeter"]
    if entry["request"] is not None:
        assert entry["request"]["perimeter"] == preimage["perimeter"], "a request of another perimeter"
    check_status(result, [raw.entries[child]["result"]["status"] for child in preimage["children"]], source, documents)
    check_citations(result, documents, [raw.entries[child]["result"] for child in preimage["children"]])
    check_generation(entry)
    below[key] = preimage["perimeter"], documents
    return below[key]


def check_status(result, children, source, documents):
    if not documents:
        assert result["status"] == "INELIGIBLE"
    elif result["status"] != "INVALID":
        wanted = "PARTIAL" if source is None and {"INVALID", "PARTIAL"} & set(children) else "VALID"
        assert result["status"] == wanted, "a status does not follow from the children's"


def check_citations(result, documents, children):
    records = {record["id"]: record for record in result["evidence"]}
    assert len(records) == len(result["evidence"])
    assert set(records) == {cited for claim in result["claims"] for cited in claim["evidence"]}
    assert all(claim["evidence"] for claim in result["claims"])
    if result["status"] in ("INVALID", "INELIGIBLE"):
        assert not result["claims"]
    for record in records.values():
        version, text = documents[record["doc_id"]]
        assert record["version"] == version
        assert record["text_sha256"] == hashlib.sha256(text.encode()).hexdigest()
        assert text[record["start"] : record["end"]] == record["quote"]
        assert record["id"] == f"{record['doc_id']}@{version}:{record['start']}:{record['end']}"
        assert not children or any(record in child["evidence"] for child in children), "cited by no child"


def check_generation(entry):
    """Hold a result to what was generated: the same claims, in the same order, and nothing repaired away."""
    if entry["generation"] is None or entry["status"] == "INVALID":
        return
    said = json.loads(entry["generation"]["text"].strip().removeprefix("```json").removesuffix("```"))["claims"]
    kept = [claim["values"] for claim in entry["result"]["claims"]]
    assert [{name: claim[name] for name in values} for claim, values in zip(said, kept, strict=False)] == kept, (
        "a result is not what was generated"
    )


def metrics(result, documents, labels):
    """Count by the definitions: supported by one cited line as a whole; correct and expected as sets of triples."""
    gold = {
        (fact["product"], fact["field"], fact["value"])
        for document in labels["documents"]
        for version in document["versions"]
        if document["document"] in documents and version["version"] == documents[document["document"]][0]
        for fact in version["facts"]
    }
    quotes = {record["id"]: record["quote"] for record in result["evidence"]}
    triples = [tuple(claim["values"][name] for name in ("subject", "field", "value")) for claim in result["claims"]]
    supported = 0
    for claim, triple in zip(result["claims"], triples, strict=True):
        matches = [FACT.fullmatch(quotes[cited]) for cited in claim["evidence"]]
        supported += any(match is not None and match.groups() == triple for match in matches)
    return Counter(
        claims=len(triples),
        supported=supported,
        predicted=len(set(triples)),
        correct=len(set(triples) & gold),
        expected=len(gold),
    )


def control(folder: Path, package: str = "dossier") -> dict:
    """Recompute a finished mutations run; return what a report must say of it."""
    stages = sorted((folder / "stages").iterdir())
    raw, own = Raw(folder / "store"), [Raw(stage / "store") for stage in stages[1:]]
    trees = [{label: keys[0] for label, keys in raw.built.items() if label.startswith(f"//{package}:")}]
    for one in own:
        assert all(len(keys) == 1 for keys in one.built.values()), "a full build's store holds more than one build"
        trees.append({label: keys[0] for label, keys in one.built.items() if label.startswith(f"//{package}:")})
    seen, counters, full, quality, pairs = set(), [], [], [], []
    for number, tree in enumerate(trees):
        ran = [raw.entries[key] for key in tree.values() if key not in seen]
        seen |= set(tree.values())
        assert all(key in raw.built[label] for label, key in tree.items()), "the two builds have other keys"
        counters.append(_counters(ran, len(tree)))
        sides = [raw] if number == 0 else [raw, own[number - 1]]
        if number:
            full.append(_counters([sides[1].entries[key] for key in tree.values()], len(tree)))
            pairs.append(_pairs(tree, *sides))
        for side in sides:
            quality.append((number, Counter(), Counter()))
            for label, key in tree.items():
                _, documents = check_node(side, key)
                if label.endswith("/root"):
                    dossier = label.rpartition("/")[0].rpartition(":")[2]
                    labels = json.loads((folder / f"workspace/corpus/labels/{dossier}.json").read_bytes())
                    result = side.entries[key]["result"]
                    quality[-1][1].update(metrics(result, documents, labels))
                    quality[-1][2][result["status"]] += 1
    return {"incremental": counters, "full": full, "quality": quality, "pairs": pairs}


def _counters(ran, targets):
    how = Counter(entry["how"] for entry in ran)
    tokens = sum(len(entry["generation"]["token_ids"]) for entry in ran if entry["how"] == "generated")
    counts = {"targets": targets, "recomputed": len(ran), "hits": targets - len(ran), "model_calls": how["generated"]}
    return counts | {name: how[name] for name in ("cut_off", "ineligible", "pure")} | {"new_tokens": tokens}


def _pairs(tree, one, other):
    """Return by dossier whether statuses and claims are equal, and whether token ids are where both have some."""
    found = {}
    for label, key in tree.items():
        a, b = one.entries[key], other.entries[key]
        equal = (a["status"], a["result"]["claims"]) == (b["status"], b["result"]["claims"])
        both = a["generation"] is not None and b["generation"] is not None
        tokens = not both or a["generation"]["token_ids"] == b["generation"]["token_ids"]
        found.setdefault(label.rpartition("/")[0].rpartition(":")[2], []).append((equal, tokens))
    return found
