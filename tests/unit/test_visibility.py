"""Gold is unreachable from inference, by name, by path and by link, and the error shows the way."""

from __future__ import annotations

import msgspec
import pytest
from support.workspaces import READER, edit_build, edit_manifest, make_workspace, set_reader, write_text

from gsum.rules.analysis import analyse
from gsum.rules.graph import Action, ActionGraph, ActionKind
from gsum.rules.loader import load_workspace
from gsum.rules.snapshot import Scope
from gsum.rules.visibility import VisibilityError, check_graph
from gsum.store.digests import blob_digest


class Unread:
    """Digests that fail the test when asked: no document may be opened before visibility holds."""

    def digest(self, path, max_bytes):
        raise AssertionError(f"{path} was read")


@pytest.fixture
def root(tmp_path):
    root = make_workspace(tmp_path / "w", {"S-1": 2, "S-2": 2})
    write_text(root / "corpus/labels/S-1.json", "{}")
    return root


def test_a_workspace_with_gold_beside_its_sources_is_fine(root):
    assert len(analyse(load_workspace(root), ["//..."]).actions) == 12


def test_a_package_may_not_name_an_audit_source(root):
    edit_build(root, 'rule = "extract"\nsources = "corpus"', 'rule = "extract"\nsources = "labels"')
    _refused(root, "//baseline:S-1", "//baseline → //labels")
    assert analyse(load_workspace(root), ["//dossier:S-1"])


def test_a_source_may_not_hold_an_audit_source(root):
    edit_build(root, '"corpus/dossiers"', '"corpus"')
    _refused(root, "//dossier:all", "//dossier → //corpus → corpus → //labels")


def test_a_source_may_not_stand_in_an_audit_source(root):
    (root / "corpus/labels/sub").mkdir()
    edit_build(root, '"corpus/dossiers"', '"corpus/labels/sub"')
    _refused(root, "//dossier:all", "//dossier → //corpus → corpus/labels/sub → //labels")


def test_a_source_may_not_link_to_an_audit_source(root):
    (root / "other").symlink_to("corpus/labels")
    edit_build(root, '"corpus/dossiers"', '"other"')
    _refused(root, "//dossier:all", "//dossier → //corpus → other → //labels")


def test_an_audit_source_may_not_link_to_a_source(root):
    (root / "gold").symlink_to("corpus/dossiers")
    edit_build(root, '"corpus/labels"', '"gold"')
    _refused(root, "//dossier:all", "//dossier → //corpus → corpus/dossiers → //labels")


def test_a_dossier_may_not_link_into_an_audit_source(root):
    (root / "corpus/dossiers/S-3").symlink_to("../labels")
    _refused(root, "//dossier:all", "//corpus:S-3 → corpus/dossiers/S-3 → //labels")


def test_a_manifest_may_not_link_into_an_audit_source(root):
    file = root / "corpus/dossiers/S-2/dossier.toml"
    file.rename(root / "corpus/labels/dossier.toml")
    file.symlink_to("../../labels/dossier.toml")
    _refused(root, "//dossier:S-2", "//corpus:S-2 → corpus/dossiers/S-2/dossier.toml → //labels")


@pytest.mark.parametrize("link", ["file", "folder"])
def test_a_readable_document_may_not_link_into_an_audit_source(root, link):
    if link == "file":
        path = "documents/gold.txt"
        (root / "corpus/dossiers/S-2/documents/gold.txt").symlink_to("../../../labels/S-1.json")
    else:
        path = "documents/gold/S-1.json"
        (root / "corpus/dossiers/S-2/documents/gold").symlink_to("../../../labels")
    edit_manifest(root, "S-2", "documents/D-01.v1.txt", path)
    way = f"//corpus:S-2/D-01 → corpus/dossiers/S-2/{path} → //labels"
    _refused(root, "//dossier:...", way)
    set_reader(root, "S-2", "D-01", granted=False, revision=2)
    assert analyse(load_workspace(root), ["//dossier:..."], READER)


def test_a_plain_file_may_not_link_into_an_audit_source(root):
    (root / "corpus/dossiers/plain").mkdir()
    (root / "corpus/dossiers/plain/x").symlink_to("../../labels/S-1.json")
    _refused(root, "//dossier:plain", "//corpus:plain/x → corpus/dossiers/plain/x → //labels")


@pytest.mark.parametrize("name", ["documents/gold.txt", "documents/D-01.v1.txt"])
def test_a_readable_document_may_not_be_a_hard_link_of_gold(root, name):
    file = root / "corpus/dossiers/S-2" / name
    file.unlink(missing_ok=True)
    file.hardlink_to(root / "corpus/labels/S-1.json")
    edit_manifest(root, "S-2", "documents/D-01.v1.txt", name)
    _refused(root, "//dossier:...", f"//corpus:S-2/D-01 → corpus/dossiers/S-2/{name} → //labels")
    set_reader(root, "S-2", "D-01", granted=False, revision=2)
    assert analyse(load_workspace(root), ["//dossier:..."], READER)


def test_a_manifest_may_not_be_a_hard_link_of_gold(root):
    file = root / "corpus/dossiers/S-2/dossier.toml"
    (root / "corpus/labels/below").mkdir()
    (root / "corpus/labels/below/x").hardlink_to(file)
    _refused(root, "//dossier:S-2", "//corpus:S-2 → corpus/dossiers/S-2/dossier.toml → //labels")


def test_documents_that_share_a_file_that_is_no_gold_are_fine(root):
    folder = root / "corpus/dossiers/S-2/documents"
    (folder / "again.txt").hardlink_to(folder / "D-01.v1.txt")
    edit_manifest(root, "S-2", "documents/D-01.v1.txt", "documents/again.txt")
    assert len(analyse(load_workspace(root), ["//dossier:S-2"]).actions) == 3


def test_a_prompt_may_not_stand_in_an_audit_source(root):
    edit_build(root, 'instruction = "List its facts."', 'instruction = { file = "corpus/labels/S-1.json" }')
    with pytest.raises(VisibilityError) as caught:
        load_workspace(root)
    assert caught.value.facts["path"] == "//prompt:map-v1 → corpus/labels/S-1.json → //labels"


def test_a_graph_is_checked_whatever_a_rule_emitted(root):
    """A leaf three levels down that names gold is found, with the labels on the way."""
    scope = Scope("D", True, True, 0, "1", blob_digest(b""))
    leaf = Action(
        "//dossier:S-1/leaf-00", ActionKind.MAP, "summary_tree", "dossier", "S-1", "corpus", READER, (), scope,
        "corpus/labels/S-1.json", "map-v1", "product", "fake", 1, None,
    )  # fmt: skip
    middle = _parent("//dossier:S-1/reduce-00", leaf.label)
    root_action = _parent("//dossier:S-1/root", middle.label)
    actions = {action.label: action for action in (leaf, middle, root_action)}
    workspace = load_workspace(root)
    with pytest.raises(VisibilityError) as caught:
        check_graph(workspace, ActionGraph(actions, (root_action.label,)))
    assert caught.value.facts["path"] == (
        "//dossier:S-1/root → //dossier:S-1/reduce-00 → //dossier:S-1/leaf-00 → corpus/labels/S-1.json → //labels"
    )


def test_analysis_checks_the_graph_whatever_a_rule_emitted(root):
    class Leaking:
        name, version = "leaking", 1

        def expand(self, name, package, snapshot, toolchain):
            leaf, top = f"//{name}:S-1/leaf-00", _parent(f"//{name}:S-1/root", f"//{name}:S-1/leaf-00")
            gold = msgspec.structs.replace(top, label=leaf, children=(), path="corpus/labels/S-1.json")
            return gold, top

    with pytest.raises(VisibilityError):
        analyse(load_workspace(root), ["//dossier:S-1"], rules={"summary_tree": Leaking()})


def _parent(label: str, child: str) -> Action:
    return Action(
        label, ActionKind.REDUCE, "summary_tree", "dossier", "S-1", "corpus", READER, (child,), None, None,
        "reduce-v1", "product", "fake", 1, 4,
    )  # fmt: skip


def _refused(root, pattern, way):
    with pytest.raises(VisibilityError) as caught:
        analyse(load_workspace(root), [pattern], digests=Unread())
    assert caught.value.exit_code == 3
    assert caught.value.facts["path"] == way
