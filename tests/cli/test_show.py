"""`gsum show`, `status`, `key`: exact output of what is current, refusal of what is not."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from blake3 import blake3
from support.cli import Gsum, normalised
from support.workspaces import activate, document_text, edit_text, set_reader, withdraw

from gsum.store.errors import ExitCode

SHOWN = """\
//dossier:S-1/root  VALID
  dossier    S-1: Dossier S-1
  principal  reader-demo
  toolchain  fake
  built      TIME by INVOCATION

1. subject: P-1-00 · field: delivery · value: 1 March
   D-00, version 1, [18:51), line 2
   “Product P-1-00 delivery: 1 March.”

2. subject: P-1-00 · field: site · value: Hall 1
   D-00, version 1, [52:80), line 3
   “Product P-1-00 site: Hall 1.”
"""


@pytest.fixture
def gsum(tmp_path):
    return Gsum(tmp_path / "w", {"S-1": 1})


def texts_of(root):
    return [path.read_text() for path in (root / "corpus/dossiers").rglob("*.txt")]


def test_each_claim_stands_over_document_version_interval_line_and_quote(gsum):
    gsum("build", "//dossier:S-1")
    ran = gsum("show", "//dossier:S-1")
    assert (normalised(ran.out), ran.code, ran.err) == (SHOWN, 0, "")


def test_a_leaf_and_a_baseline_can_be_shown(gsum):
    gsum("build", "//...")
    assert gsum("show", "//dossier:S-1/leaf-00").out.startswith("//dossier:S-1/leaf-00  VALID\n")
    assert "toolchain" not in gsum("show", "//baseline:S-1").out


def test_json_holds_what_lets_others_check_every_quote(gsum):
    gsum("build", "//dossier:S-1")
    document = gsum("show", "//dossier:S-1", "--json").document
    text = (gsum.root / "corpus/dossiers/S-1/documents/D-00.v1.txt").read_text()
    assert len(document["claims"]) == 2
    for claim in document["claims"]:
        for evidence in claim["evidence"]:
            assert text[evidence["start"] : evidence["end"]] == evidence["quote"]
            assert text.splitlines()[evidence["line"] - 1] == evidence["quote"]
            assert evidence["text_sha256"] == __import__("hashlib").sha256(text.encode()).hexdigest()
    assert document["key"] == gsum("key", "//dossier:S-1").out.strip()


def test_line_numbers_count_newlines_alone_and_offsets_do_not_shift(tmp_path):
    text = "\ufeffReference\u2028x.\r\n\r\n\x0cNote\x85.\r\nProduct P-1-00 site: Hall 9.\r\n"
    gsum = Gsum(tmp_path / "w", {"S-1": {"D-00": text}})
    gsum("build", "//dossier:S-1")
    (claim,) = gsum("show", "//dossier:S-1", "--json").document["claims"]
    (evidence,) = claim["evidence"]
    assert text[evidence["start"] : evidence["end"]] == evidence["quote"] == "Product P-1-00 site: Hall 9."
    assert evidence["line"] == 4


def test_what_could_steer_a_terminal_is_shown_as_escapes(tmp_path):
    gsum = Gsum(tmp_path / "w", {"S-1": {"D-00": "Product P-1-00 site: Hall \x1b[2J\u202e9.\n"}})
    gsum("build", "//dossier:S-1")
    ran = gsum("show", "//dossier:S-1")
    assert "“Product P-1-00 site: Hall \\x1b[2J\\u202e9.”" in ran.out
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out


def test_a_target_that_was_never_built_is_refused_with_exit_4(gsum):
    ran = gsum("show", "//dossier:S-1")
    assert (ran.code, ran.out) == (ExitCode.STALE, "")
    assert ran.err == (
        "error: `//dossier:S-1/root` is NOT BUILT\n"
        "  target  //dossier:S-1/root\n"
        "  state   NOT BUILT\n"
        "hint: gsum build //dossier:S-1/root\n"
    )
    assert not (gsum.root / ".gsum").exists()


def test_a_stale_target_names_its_root_causes_and_what_to_type(tmp_path):
    gsum = Gsum(tmp_path / "w", {"S-1": 3})
    gsum("build", "//dossier:S-1", "--toolchain", "fake")
    activate(gsum.root, "S-1", "D-01", "2")
    set_reader(gsum.root, "S-1", "D-02", granted=False, revision=2)
    ran = gsum("show", "//dossier:S-1", "--toolchain", "fake")
    assert (ran.code, ran.out) == (ExitCode.STALE, "")
    assert ran.err == (
        "error: `//dossier:S-1/root` is STALE\n"
        "  target  //dossier:S-1/root\n"
        "  state   STALE\n"
        "  why     document `D-01`: version 1 → 2, line 2 changed\n"
        "          access of `reader-demo` to `D-02` revoked (revision 1 → 2)\n"
        "hint: gsum build //dossier:S-1/root --toolchain fake\n"
    )


@pytest.mark.parametrize("edit", ["activate", "text", "withdraw", "revoke"])
def test_a_stale_target_is_refused_says_why_and_shows_no_claim(gsum, edit):
    gsum("build", "//dossier:S-1")
    old = texts_of(gsum.root)
    match edit:
        case "activate":
            activate(gsum.root, "S-1", "D-00", "2")
        case "text":
            edit_text(gsum.root, "S-1", "D-00", document_text("S-1", 0).replace("1 March", "9 March"))
        case "withdraw":
            withdraw(gsum.root, "S-1", "D-00")
        case "revoke":
            set_reader(gsum.root, "S-1", "D-00", granted=False, revision=2)
    for options in ((), ("--json",)):
        ran = gsum("show", "//dossier:S-1", *options)
        assert ran.code == ExitCode.STALE
        assert "STALE" in ran.out + ran.err
        assert "gsum build //dossier:S-1/root" in ran.out + ran.err
        assert "why" in ran.out + ran.err
        if edit in ("withdraw", "revoke"):
            for line in (line for text in old for line in text.splitlines()):
                assert line not in ran.out + ran.err
        assert "1 March" not in ran.out
    assert gsum.calls == 2


def test_mtime_alone_changes_nothing(gsum):
    gsum("build", "//dossier:S-1")
    for path in (gsum.root / "corpus").rglob("*"):
        path.touch()
    assert gsum("show", "//dossier:S-1").code == 0


def test_an_invalid_target_is_refused_with_exit_7_and_its_diagnostic(tmp_path):
    gsum = Gsum(tmp_path / "w", None, "--max-claims", "9")
    gsum("build", "//dossier:S-1")
    ran = gsum("show", "//dossier:S-1")
    assert (ran.code, ran.out) == (ExitCode.INVALID, "")
    assert "`//dossier:S-1/root` is INVALID" in ran.err
    assert "March" not in ran.err
    digest = ran.err.split("gsum cat ")[1].strip()
    assert gsum("cat", digest).out.startswith('{"schema":1,"stop":"eos","text":')


def test_partial_names_the_children_that_make_it_so(tmp_path):
    texts = {"D-00": "".join(f"Product P-1-00 site: Hall {n}.\n" for n in range(5)), "D-01": document_text("S-1", 1)}
    gsum = Gsum(tmp_path / "w", {"S-1": texts}, "--max-claims", "5")
    assert gsum("build", "//dossier:S-1").code == 0
    ran = gsum("show", "//dossier:S-1")
    assert ran.out.startswith("//dossier:S-1/root  PARTIAL\n")
    assert "  partial    its child //dossier:S-1/leaf-00 is INVALID\n" in ran.out
    assert gsum("show", "//dossier:S-1", "--json").document["partial_because"] == [
        {"label": "//dossier:S-1/leaf-00", "state": "INVALID"}
    ]


def test_partial_names_the_invalid_targets_far_below(tmp_path):
    texts = {f"D-0{n}": document_text("S-1", n) for n in range(3)}
    texts["D-01"] = "".join(f"Product P-1-00 site: Hall {n}.\n" for n in range(5))
    gsum = Gsum(tmp_path / "w", {"S-1": texts}, "--max-claims", "5", fan_in=2)
    gsum("build", "//dossier:S-1")
    ran = gsum("show", "//dossier:S-1")
    assert (
        "  partial    its child //dossier:S-1/reduce-00 is PARTIAL\n"
        "             below it //dossier:S-1/leaf-01 is INVALID\n"
    ) in ran.out


def test_ineligible_and_empty_results_say_so(tmp_path):
    gsum = Gsum(tmp_path / "w", {"S-1": {"D-00": "No facts here\n"}})
    gsum("build", "//dossier:S-1")
    assert gsum("show", "//dossier:S-1").out.splitlines()[-1] == (
        "No claims: its sources assert nothing that the schema asks for"
    )
    withdraw(gsum.root, "S-1", "D-00")
    gsum("build", "//dossier:S-1")
    ran = gsum("show", "//dossier:S-1")
    assert ran.out.startswith("//dossier:S-1/root  INELIGIBLE\n")
    assert ran.out.splitlines()[-1] == (
        "No claims: `reader-demo` may read none of the documents below, or they are withdrawn"
    )


def test_status_is_a_line_per_target_and_a_gate(tmp_path):
    gsum = Gsum(tmp_path / "w", {"S-1": 2})
    gsum("build", "//dossier:S-1")
    assert gsum("status", "//dossier:S-1/...").out == (
        "VALID       //dossier:S-1/leaf-00\n"
        "VALID       //dossier:S-1/leaf-01\n"
        "VALID       //dossier:S-1/root\n"
        "3 targets: 3 VALID\n"
    )
    activate(gsum.root, "S-1", "D-01", "2")
    ran = gsum("status", "//...")
    assert ran.out == (
        "VALID       //dossier:S-1/leaf-00\n"
        "STALE       //dossier:S-1/leaf-01\n"
        "STALE       //dossier:S-1/root\n"
        "NOT BUILT   //baseline:S-1/leaf-00\n"
        "NOT BUILT   //baseline:S-1/leaf-01\n"
        "NOT BUILT   //baseline:S-1/root\n"
        "6 targets: 1 VALID, 2 STALE, 3 NOT BUILT\n"
    )
    assert ran.code == ExitCode.STALE
    assert gsum("status", "//dossier:S-1", "--json").document["counts"] == {"STALE": 1}


def test_anyone_recomputes_a_key_from_what_is_printed(gsum):
    gsum("build", "//dossier:S-1")
    key = gsum("key", "//dossier:S-1").out.strip()
    context = gsum("cat", "--context", key).out.removesuffix("\n")
    assert context == gsum("key", "--context", "//dossier:S-1").out.removesuffix("\n")
    kept = gsum("cat", key).raw
    assert kept == gsum("key", "--preimage", "//dossier:S-1").raw
    assert blake3(kept, derive_key_context=context).hexdigest() == key


@pytest.mark.skipif(shutil.which("b3sum") is None, reason="needs Debian's b3sum")
def test_b3sum_recomputes_a_key(gsum):
    gsum("build", "//dossier:S-1")
    key = gsum("key", "//dossier:S-1").out.strip()
    context = gsum("cat", "--context", key).out.removesuffix("\n")
    done = subprocess.run(
        ["b3sum", "--no-names", "--derive-key", context], input=gsum("cat", key).raw, capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == key
