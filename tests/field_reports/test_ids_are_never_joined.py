"""Keys over ids that are joined without separators collide: ("ab", "c") is ("a", "bc") (llama_index#23002 and #23003).
The first document of a text then gives its name to every citation of the others.
"""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from support.cli import Gsum
from support.graphs import make_action
from support.workspaces import document_text, make_workspace

from gsum.engine.keys import compute_keys
from gsum.engine.universe import load_universe
from gsum.rules.config import (
    CommandToolchain,
    GrammarSection,
    Prompt,
    SchemaSection,
    Strength,
    Workspace,
    WorkspaceSection,
)
from gsum.rules.graph import ActionGraph
from gsum.rules.snapshot import Scope

TOOLCHAIN = CommandToolchain(("x",), "x-1", reproducible=True, network=False, grammar=GrammarSection(Strength.NONE))
WORKSPACE = Workspace(
    "/",
    WorkspaceSection("w", "reader", "fake"),
    {},
    {"fake": TOOLCHAIN},
    {},
    {"map": Prompt("s", "i")},
    {"fact": SchemaSection(("subject",))},
    {},
)


def key(identifier: str, version: str) -> str:
    leaf = make_action("//d:S/leaf-00", scope=Scope(identifier, True, True, 1, version, None))
    return compute_keys(WORKSPACE, ActionGraph({leaf.label: leaf}, (leaf.label,))).actions[leaf.label].key


@given(st.text(min_size=2, max_size=8), st.data())
def test_parts_that_join_to_the_same_text_have_different_keys(text: str, data: st.DataObject) -> None:
    cuts = st.integers(0, len(text))
    one, other = data.draw(cuts), data.draw(cuts)
    assert (key(text[:one], text[one:]) == key(text[:other], text[other:])) == (one == other)


def test_dossiers_whose_ids_join_to_the_same_text_have_different_keys(tmp_path: Path) -> None:
    found = []
    for number, ids in enumerate((("ab", "c"), ("a", "bc"), ("abc",))):
        root = make_workspace(tmp_path / str(number), {"S-1": dict.fromkeys(ids, "Same.\n")})
        found.append(load_universe(root, ["//dossier:S-1"]).keys.actions["//dossier:S-1/root"].key)
    assert len(set(found)) == 3


def test_documents_of_one_text_are_each_cited_by_their_own_name(tmp_path: Path) -> None:
    text = document_text("S-1", 0)
    gsum = Gsum(tmp_path / "ws", {"S-1": {"D-00": text, "D-01": text, "D-02": text}})
    gsum("build", "//dossier:S-1/...")
    for number in range(3):
        claims = gsum("show", f"//dossier:S-1/leaf-{number:02}", "--json").document["claims"]
        assert {cited["document"] for claim in claims for cited in claim["evidence"]} == {f"D-{number:02}"}
    assert gsum.calls == 4  # asked for apart, too: who may read the one may not read the other
