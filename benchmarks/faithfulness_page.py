"""The page of faithfulness by grammar strength: a table, why summaries were INVALID, and how to read both. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

READING = """\
What the grammar does and what the model does. Under `none` the model writes freely; the prompt states the JSON shape,
the limit of four claims and that evidence is integers. Under `schema` the grammar gives that shape, the admitted fields
and line numbers. Under `pattern` the declared fact pattern reads the lines and the model only chooses among facts that
are right already. Under `literal` it depends on the text. Where a line carries a label that the schema admits
(`status: sealed`), or stands in columns, the grammar cuts out the value, and a label also settles the field: on such
lines, hence on all fact lines of `corpus`, the grammar does the reading and the model chooses. In prose the grammar
says only that the subject is a word of the cited line with the shape that the fact pattern declares, that the value is
a run of words of one clause outside quoted sayings and questions, and that no two claims are about the same subject and
field: which statement holds, and what it is about, is the model's reading. `corpus/second` is mostly prose, and a
model of this size hardly reads it.

In reductions the grammar of `literal` and `pattern` copies claims whole, and `reduce_once` holds subjects and fields
apart; which facts make up a summary is the model's choice. A root over wrong claims repeats them.

Support: of all claims, those that cite a line which the gold names for exactly that triple. Precision: of distinct
claims, those that the gold holds. Recall of ceiling: of the facts that `max_claims` leaves room for, those claimed.
Varied: summaries of which no two claims share a subject or a field.
"""


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table, one row for the leaves and one for the roots of each record."""
    head = ["strength", "corpus", "dossiers", "of", "summaries", "INVALID", "claims", "supported", "duplicates"]
    head += ["support", "precision", "recall of ceiling", "varied"]
    rows = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for record in records:
        for part in ("leaves", "roots"):
            if part in record:
                counts: dict[str, Any] = record[part]
                cells = [record["strength"], record["corpus"], " ".join(record["dossiers"]), part]
                cells += [counts[name] for name in ("summaries", "invalid", "claims", "supported", "duplicates")]
                cells += [counts[name] or "–" for name in ("support", "precision", "recall_of_ceiling")]
                cells.append(counts["varied"])
                rows.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(rows)


def reasons(records: Sequence[dict[str, Any]]) -> str:
    """Return why summaries were INVALID, a line for each strength, corpus and part."""
    lines = []
    for record in records:
        for part in ("leaves", "roots"):
            counts: dict[str, Any] = record.get(part, {})
            why: dict[str, int] = counts.get("diagnostics", {})
            told = "; ".join(f"{count} × {reason}" for reason, count in sorted(why.items(), key=lambda one: -one[1]))
            if told:
                lines.append(f"INVALID under `{record['strength']}` on {record['corpus']}, {part}: {told}.")
    return "\n".join(lines)


def page(records: Sequence[dict[str, Any]], pools: Mapping[str, Sequence[str]], machine: Mapping[str, Any]) -> str:
    """Return the whole page as Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    pool = ", ".join(f"`{one}` on {len(names)} dossiers ({' '.join(names)})" for one, names in pools.items())
    return f"""# Faithfulness by grammar strength

`python benchmarks/faithfulness.py` wrote this with the embedded model of 135 million parameters: greedy decoding, so
one answer a request; on a machine with {machine["cpus"]} CPUs ({machine["cpu"]}); {versions}.
Pool, of 12 documents each: {pool}.
None of these dossiers was used to tune the prompts and grammars. Under `none` leaves alone were asked.

{table(records)}

{reasons(records)}

{READING}"""
