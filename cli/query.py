"""`gsum query EXPR`: what depends on what, in Bazel's query language. Executes nothing, opens no store."""

from __future__ import annotations

import click

from gsum.cli.config import current_config, options
from gsum.cli.render import emit, emit_json
from gsum.engine.query import run_query
from gsum.engine.query.load import load_target_graph
from gsum.engine.query.output import Output, dot_lines, label_lines, node_records, tree_lines

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
  a + b, a - b, a ^ b          union, except, intersect; equal precedence, from the left
  set(a b c), let v = x in y   a union of labels; a variable, used as $v

A `-` needs a space before it; what holds white space, brackets, `,`, `+` or `^` is quoted. `deps LABEL` is short for
`deps(LABEL)`, `rdeps LABEL` for `rdeps(//..., LABEL)`.
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
    graph = load_target_graph(config.root, principal=config.principal, toolchain=config.toolchain)
    selection = run_query(graph, text)
    match Output.JSON if config.json else Output(output):
        case Output.LABEL:
            lines = label_lines(selection)
        case Output.TREE:
            lines = tuple(tree_lines(graph, selection))
        case Output.DOT:
            lines = tuple(dot_lines(graph, selection))
        case Output.JSON:
            emit_json("query", {"expression": text, "nodes": node_records(graph, selection)})
            return 0
    if lines:
        emit(config, "\n".join(lines))
    return 0
