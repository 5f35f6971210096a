"""`gsum query EXPR`: what depends on what, in Bazel's query language. Executes nothing, and opens the store only for
functions that ask what it holds.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import click
import msgspec

from gsum.cli.config import current_config, options
from gsum.cli.render import emit, emit_json, safe, table
from gsum.engine.query import Selection, Table, TargetGraph, evaluate, needs_store, parse
from gsum.engine.query.load import load_target_graph
from gsum.engine.query.output import (
    TABLE_OUTPUTS,
    Output,
    dot_lines,
    label_kind_lines,
    label_lines,
    node_records,
    row_records,
    tree_lines,
)

HELP = """List the nodes that an expression selects.

Nodes are targets, documents (`//corpus:S-037/D-37-11`), prompts (`//prompt:NAME`), schemas and toolchains; an
edge goes from a target to what it depends on.

\b
  //dossier:S-037/root         a label; //dossier:S-037/... and //dossier:all are patterns
  deps(x[, depth])             x and what it depends on
  rdeps(universe, x[, depth])  x and what depends on it, within deps(universe)
  allpaths(a, b)               all nodes on paths from a to b
  somepath(a, b)               one shortest path, in its order
  kind(regex, x)               those of a kind: map, reduce, extract, merge, audit,
                               document, prompt, schema, toolchain
  filter(regex, x)             those whose label matches somewhere
  attr(name, regex, x)         those of which an attribute matches: rule, prompt, document, …
  siblings(x)                  all parts of the same dossier in the same package
  a + b, a - b, a ^ b          union, except, intersect; equal precedence, from the left
  set(a b c), let v = x in y   a union of labels; a variable, used as $v

What the store holds for the keys of this moment (x is all targets where it is left out):

\b
  stale([x]), cached([x])      those that changed since they were built; those that are served
  status(VALID|PARTIAL, x)     those in one of these states
  cites(DOC[start:end])        targets with a claim that cites these characters of a document
  uncited(DOC[, x])            lines of a document that no claim of x cites
  generations(x)               the model's outputs behind the current results
  cost(x)                      what building x would take, by what builds took here

A `-` needs a space before it; what holds white space, brackets, `,`, `+` or `^` is quoted. `deps LABEL` is short for
`deps(LABEL)`, `rdeps LABEL` for `rdeps(//..., LABEL)`. The last three give rows and stand outermost.
"""


@click.command("query", help=HELP)
@click.argument("expression", nargs=-1, required=True, metavar="EXPR")
@click.option(
    "--output",
    type=click.Choice([output.value for output in Output]),
    default=Output.LABEL.value,
    help="The form of the result; --json is --output json.",
)
@options(principal=True, toolchain=True)
def command(expression: tuple[str, ...], output: str) -> int:
    """Evaluate a query and print its result."""
    config = current_config()
    text = " ".join(expression)
    parsed = parse(text)
    if needs_store(parsed):
        graph, result = importlib.import_module("gsum.cli.query_store").evaluate_stored(config, text, parsed)
    else:
        graph = load_target_graph(config.root, parsed, principal=config.principal, toolchain=config.toolchain)
        result = evaluate(graph, text, parsed)
    form = Output.JSON if config.json else Output(output)
    if form is Output.JSON:
        emit_json("query", {"expression": text, **_document(graph, result)})
        return 0
    lines = list(_row_lines(result, form) if isinstance(result, Table) else _node_lines(graph, result, form))
    if lines:
        emit(config, "\n".join(lines))
    return 0


def _document(graph: TargetGraph, result: Selection | Table) -> dict[str, object]:
    if isinstance(result, Table):
        return {"rows": row_records(result)}
    return {"nodes": node_records(graph, result)}


def _row_lines(result: Table, form: Output) -> Iterator[str]:
    if form not in TABLE_OUTPUTS:
        forms = ", ".join(f"`{output.value}`" for output in TABLE_OUTPUTS)
        raise click.UsageError(f"rows can't be printed as `{form.value}`\nuse {forms}")
    if form is Output.JSONL:
        yield from (msgspec.json.encode(record).decode() for record in row_records(result))
        return
    rows = [tuple("-" if cell is None else safe(str(cell)) for cell in row) for row in result.rows]
    yield from table([result.columns, *rows]) if rows else ()


def _node_lines(graph: TargetGraph, result: Selection, form: Output) -> Iterator[str]:
    match form:
        case Output.LABEL_KIND:
            yield from label_kind_lines(graph, result)
        case Output.TREE:
            yield from tree_lines(graph, result)
        case Output.JSONL:
            yield from (msgspec.json.encode(record).decode() for record in node_records(graph, result))
        case Output.DOT:
            yield from dot_lines(graph, result)
        case Output.GRAPHML:
            yield from importlib.import_module("gsum.engine.query.graphml").graphml_lines(graph, result)
        case _:
            yield from label_lines(result)
