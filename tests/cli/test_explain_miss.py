"""`gsum explain-miss`: the tree from a target to its root causes, for now and for past builds; exact output."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.cli import Gsum, normalised
from support.workspaces import activate, edit_build, make_dossier, set_prompt, set_reader, withdraw

ROOT = "//dossier:S-1/root"


@pytest.fixture
def gsum(tmp_path: Path) -> Gsum:
    gsum = Gsum(tmp_path / "ws", {"S-1": 6})
    assert gsum("build", ROOT).code == 0
    return gsum


def test_one_edit_is_explained_down_to_its_line(gsum: Gsum) -> None:
    activate(gsum.root, "S-1", "D-05", "2")
    for label in ("//dossier:S-1", ROOT):
        ran = gsum("explain-miss", label)
        assert (ran.code, ran.err) == (0, "")
        assert re.sub(r"[0-9a-f]{12},", "KEY,", normalised(ran.out)) == (
            "//dossier:S-1/root is STALE: 3 targets would run; 1 cause\n"
            "\n"
            "//dossier:S-1/root\n"
            "└─ //dossier:S-1/reduce-01\n"
            "   └─ //dossier:S-1/leaf-05\n"
            "      └─ 1. document `D-05`: version 1 → 2, line 2 changed\n"
            "\n"
            "1. document `D-05`: version 1 → 2, line 2 changed\n"
            "   3 targets: leaf-05, reduce-01, root\n"
            "     @@ -1,3 +1,3 @@\n"
            "      Reference S-1/05.\n"
            "     -Product P-1-05 delivery: 6 March.\n"
            "     +Product P-1-05 delivery: 6 April.\n"
            "      Product P-1-05 site: Hall 6.\n"
            "\n"
            "to be served again as in build INVOCATION, put back 1 (key KEY, recomputed)\n"
            "\n"
            "hint: gsum build //dossier:S-1/root\n"
        )


def test_several_causes_are_each_listed_once(gsum: Gsum) -> None:
    withdraw(gsum.root, "S-1", "D-00")
    set_reader(gsum.root, "S-1", "D-01", granted=False, revision=2)
    edit_build(gsum.root, "[schema.product]", '[prompt.reduce-v2]\nsystem = "S"\ninstruction = "I"\n\n[schema.product]')
    edit_build(gsum.root, 'reduce_prompt = "reduce-v1"', 'reduce_prompt = "reduce-v2"')
    edit_build(gsum.root, "reduce_input_tokens = 3072", "reduce_input_tokens = 99")
    assert gsum("explain-miss", ROOT).out == (
        "//dossier:S-1/root is STALE: 5 targets would run; 4 causes\n"
        "\n"
        "//dossier:S-1/root\n"
        "├─ 3. prompt `reduce-v1` → `reduce-v2`\n"
        "├─ 4. `reduce_input_tokens`: 3072 → 99\n"
        "├─ //dossier:S-1/reduce-00\n"
        "│  ├─ 3. see above\n"
        "│  ├─ 4. see above\n"
        "│  ├─ //dossier:S-1/leaf-00\n"
        "│  │  └─ 1. document `D-00` withdrawn\n"
        "│  └─ //dossier:S-1/leaf-01\n"
        "│     └─ 2. access of `reader-demo` to `D-01` revoked (revision 1 → 2)\n"
        "└─ //dossier:S-1/reduce-01\n"
        "   ├─ 3. see above\n"
        "   └─ 4. see above\n"
        "\n"
        "1. document `D-00` withdrawn\n"
        "   3 targets: leaf-00, reduce-00, root\n"
        "\n"
        "2. access of `reader-demo` to `D-01` revoked (revision 1 → 2)\n"
        "   3 targets: leaf-01, reduce-00, root\n"
        "\n"
        "3. prompt `reduce-v1` → `reduce-v2`\n"
        "   3 targets: reduce-00, reduce-01, root\n"
        "     @@ -1,4 +1,4 @@\n"
        "      [instruction]\n"
        "     -Choose the facts to keep.\n"
        "     +I\n"
        "      [system]\n"
        "     -Read a list of claims.\n"
        "     +S\n"
        "\n"
        "4. `reduce_input_tokens`: 3072 → 99\n"
        "   3 targets: reduce-00, reduce-01, root\n"
        "   note: a budget is part of the key even where no input reaches it\n"
        "\n"
        "hint: gsum build //dossier:S-1/root\n"
    )


def test_what_is_current_would_not_run(gsum: Gsum) -> None:
    ran = gsum("explain-miss", ROOT)
    assert (ran.code, ran.out) == (0, "//dossier:S-1/root is current: nothing would run\n")


def test_what_was_never_built_says_so(gsum: Gsum) -> None:
    assert gsum("explain-miss", ROOT, "--principal", "other").out == (
        "//dossier:S-1/root is NOT BUILT: 9 targets would run; 1 cause\n"
        "\n"
        "1. never built for principal `other` and toolchain `fake`\n"
        "   9 targets: leaf-00, leaf-01, leaf-02, leaf-03, leaf-04, leaf-05, reduce-00, reduce-01, and 1 more\n"
        "\n"
        "hint: gsum build //dossier:S-1/root\n"
    )


def test_without_a_store_all_is_not_built_and_none_is_made(tmp_path: Path) -> None:
    gsum = Gsum(tmp_path / "ws", {"S-1": 1})
    assert gsum("explain-miss", ROOT).out.startswith("//dossier:S-1/root is NOT BUILT: 2 targets would run; 1 cause\n")
    assert not (gsum.root / ".gsum").exists()


def test_a_child_that_is_current_is_marked(gsum: Gsum) -> None:
    activate(gsum.root, "S-1", "D-05", "2")
    gsum("build", "//dossier:S-1/leaf-05")
    out = gsum("explain-miss", ROOT).out
    assert out.startswith("//dossier:S-1/root is STALE: 2 targets would run; 1 cause\n")
    assert "\n   └─ //dossier:S-1/leaf-05 (current)\n      └─ 1. document `D-05`" in out


def test_the_last_builds_misses(gsum: Gsum) -> None:
    activate(gsum.root, "S-1", "D-05", "2")
    gsum("build", ROOT)
    out = normalised(gsum("explain-miss", "--last").out)
    assert out.startswith(
        "build INVOCATION: 3 targets ran; 1 cause\n"
        "\n"
        "//dossier:S-1/root\n"
        "└─ //dossier:S-1/reduce-01\n"
        "   └─ //dossier:S-1/leaf-05\n"
        "      └─ 1. document `D-05`: version 1 → 2, line 2 changed\n"
    )
    assert "hint" not in out
    one = normalised(gsum("explain-miss", "--last", "//dossier:S-1/leaf-05").out)
    assert one.startswith("build INVOCATION: 1 target ran; 1 cause\n\n//dossier:S-1/leaf-05\n└─ 1. document `D-05`")
    served = normalised(gsum("explain-miss", "--last", "//dossier:S-1/leaf-04").out)
    assert served == "//dossier:S-1/leaf-04 did not run in build INVOCATION: it was served, or not reached\n"


def test_an_earlier_build_by_the_beginning_of_its_id(gsum: Gsum) -> None:
    activate(gsum.root, "S-1", "D-05", "2")
    gsum("build", ROOT)
    set_prompt(gsum.root, "map-v1", "List all.")
    gsum("build", ROOT)
    second = gsum("log", "--json").document["invocations"][1]["id"]
    document = gsum("explain-miss", "--invocation", second[:-2], "--json").document
    assert document["invocation"] == second
    assert [cause["text"] for cause in document["causes"]] == ["document `D-05`: version 1 → 2, line 2 changed"]


def test_a_build_that_ran_nothing(gsum: Gsum) -> None:
    gsum("build", ROOT)
    assert normalised(gsum("explain-miss", "--last").out) == "nothing ran in build INVOCATION\n"


def test_json_holds_fields_targets_and_the_tree(gsum: Gsum) -> None:
    activate(gsum.root, "S-1", "D-05", "2")
    document = gsum("explain-miss", ROOT, "--json").document
    (cause,) = document.pop("causes")
    nodes = document.pop("nodes")
    assert document.pop("way_back") == {
        "key": nodes[0]["previous"],
        "invocation": gsum("log", "--json").document["invocations"][0]["id"],
        "put_back": [{name: cause[name] for name in ("kind", "subject", "text", "fields")}],
    }
    branch = ["//dossier:S-1/leaf-05", "//dossier:S-1/reduce-01", ROOT]
    assert document == {
        "schema": 1,
        "command": "explain-miss",
        "label": ROOT,
        "verdict": "STALE",
        "principal": "reader-demo",
        "toolchain": "fake",
        "invocation": None,
        "before": None,
        "runs": branch,
    }
    assert cause["targets"] == branch
    assert cause["kind"] == "document"
    assert cause["subject"] == "//corpus:S-1/D-05"
    assert cause["fields"][0] == {"name": "source.version", "before": '"1"', "after": '"2"'}
    assert "+Product P-1-05 delivery: 6 April." in cause["details"]
    assert [(node["label"], node["causes"], node["children"]) for node in nodes] == [
        (branch[2], [], [branch[1]]),
        (branch[1], [], [branch[0]]),
        (branch[0], [0], []),
    ]
    assert nodes[0]["key"] == gsum("key", ROOT).out.strip()


def test_nothing_of_a_revoked_document_is_printed(gsum: Gsum) -> None:
    activate(gsum.root, "S-1", "D-05", "2")
    gsum("build", ROOT)
    set_reader(gsum.root, "S-1", "D-05", granted=False, revision=2)
    for flags in ((ROOT,), ("--last",), (ROOT, "--json"), ("--last", "--json")):
        ran = gsum("explain-miss", *flags)
        assert ran.code == 0
        assert "April" not in ran.out
        assert "source.text" not in ran.out
        assert "version 1" not in ran.out


def test_control_characters_of_a_document_do_not_reach_the_terminal(gsum: Gsum) -> None:
    file = gsum.root / "corpus/dossiers/S-1/documents/D-05.v1.txt"
    file.write_text(file.read_text() + "\x1b[2J\u202egone\n")
    out = gsum("explain-miss", ROOT).out
    assert "+\\x1b[2J\\u202egone" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["explain-miss"], 2, "error: missing argument `LABEL`"),
        (
            ["explain-miss", "--last", "--invocation", "x"],
            2,
            "error: `--last`, `--invocation` and `--between` exclude each other",
        ),
        (["explain-miss", "//dossier:S-1/leaf-55"], 2, "error: target `//dossier:S-1/leaf-55` does not exist"),
        (["explain-miss", "//dossier:..."], 2, "error: `//dossier:...` names many targets where one is needed"),
        (["explain-miss", "//corpus:S-1/D-00"], 2, "error: `//corpus:S-1/D-00` names an input, not a target"),
        (["explain-miss", "--invocation", "none"], 2, "error: principal `reader-demo` has no invocation `none`"),
        (["explain-miss", "--last", "//dossier:S-1/leaf-55"], 2, "error: `//dossier:S-1/leaf-55` was not visited"),
        (["explain-miss", "--last", "--principal", "x"], 2, "error: nothing was built for principal `x` yet"),
        (["explain-miss", ROOT, "--toolchain", "x"], 2, "error: toolchain `x` is not declared"),
    ],
)
def test_what_can_not_be_explained_is_an_error(gsum: Gsum, words: list[str], code: int, message: str) -> None:
    ran = gsum(*words)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(message)
    assert "hint: " in ran.err
    assert json.loads(gsum(*words, "--json").out)["error"]["exit_code"] == code


def test_explaining_executes_nothing_and_writes_nothing(gsum: Gsum) -> None:
    activate(gsum.root, "S-1", "D-05", "2")
    calls = gsum.calls
    before = gsum("log", "--json").out
    gsum("explain-miss", ROOT)
    gsum("explain-miss", "--last")
    assert gsum.calls == calls
    assert gsum("log", "--json").out == before
    assert gsum("status", ROOT).code == 4


def ids(gsum: Gsum) -> list[str]:
    """Ids of builds, oldest first."""
    return [one["id"] for one in reversed(gsum("log", "--json").document["invocations"])]


def test_any_two_builds_are_compared_whatever_was_built_between(gsum: Gsum) -> None:
    activate(gsum.root, "S-1", "D-05", "2")
    gsum("build", ROOT)
    set_prompt(gsum.root, "reduce-v1", "Otherwise.")
    gsum("build", ROOT)
    gsum("build", "//baseline:S-1")
    gsum("build", ROOT)  # nothing to do: it visits nothing, and is as the build before
    set_prompt(gsum.root, "reduce-v1", "Again.")
    gsum("build", ROOT)
    first, edited, prompted, _, null, last = ids(gsum)

    def texts(*words: str) -> list[str]:
        found = gsum("explain-miss", ROOT, "--json", *words).document
        return [cause["text"].partition(" (was")[0] for cause in found["causes"]]

    document = "document `D-05`: version 1 → 2, line 2 changed"
    prompt = "prompt `reduce-v1`: `instruction` changed"
    assert texts("--between", first, edited) == [document]
    assert texts("--between", edited, null) == texts("--between", edited, prompted)
    assert len(texts("--between", first, null)) == 2
    assert document in texts("--between", first, last)
    assert prompt in texts("--between", edited, last)
    assert texts("--between", prompted, null) == []
    back = gsum("explain-miss", ROOT, "--between", edited, first).out
    assert back.startswith(f"{ROOT} from build {edited} to {first}: 3 targets changed; 1 cause\n")
    assert "1. document `D-05`: version 2 → 1, line 2 changed" in back
    same = gsum("explain-miss", ROOT, "--between", prompted, null).out
    assert same == f"{ROOT} is the same in builds {prompted} and {null}\n"


def test_what_was_not_built_until_then_can_not_be_compared(gsum: Gsum) -> None:
    gsum("build", "//baseline:S-1")
    first, second = ids(gsum)
    ran = gsum("explain-miss", "//baseline:S-1", "--between", first, second)
    assert (ran.code, ran.err.splitlines()[0]) == (2, "error: `//baseline:S-1/root` was not built until then")


def test_one_label_is_explained_though_another_manifest_is_broken(gsum: Gsum) -> None:
    make_dossier(gsum.root, "S-9", 1)
    (gsum.root / "corpus/dossiers/S-9/dossier.toml").write_text("broken = [")
    activate(gsum.root, "S-1", "D-05", "2")
    assert gsum("explain-miss", ROOT).code == 0
    assert gsum("build", ROOT).code == 0
    assert gsum("explain-miss", "--last", ROOT).code == 0
    assert gsum("explain-miss", "--last").code == 3
