"""BUILD.toml: what loads, and each way in which it is refused, at its place and with a hint."""
# ruff: noqa: E501 - one case a line

from __future__ import annotations

import os

import pytest
from support.workspaces import edit_build, make_workspace, write_text

from gsum.rules.config import CommandToolchain, SummaryTreePackage, Visibility
from gsum.rules.loader import load_workspace
from gsum.rules.rendering import messages
from gsum.rules.root import NoWorkspace, find_root
from gsum.rules.toml import DeclarationError

LOCAL = """
[numerics.portable]
batching = "one-by-one/v1"

[toolchain.small]
executor = "local"
source = { kind = "folder", path = "models/small" }
files = { "model.safetensors" = "%s" }
tied_embeddings = true
device = "cpu"
dtype = "float32"
attention = "eager"
numerics = "portable"
grammar = { strength = "literal", backend = "llguidance", version = "1" }
""" % ("0" * 64)

SUB = """\
[prompt.map-v1]
system = "Own."
instruction = { file = "map.txt" }

[sources.letters]
path = "letters"

[package.legal]
rule = "summary_tree"
sources = "letters"
map_prompt = "map-v1"
reduce_prompt = "reduce-v1"
schema = "product"
fan_in = 2
map_input_tokens = 100
reduce_input_tokens = 100
"""


@pytest.fixture
def root(tmp_path):
    return make_workspace(tmp_path / "w", {"S-1": 2}, extra=LOCAL)


@pytest.fixture
def with_sub(root):
    (root / "reports/letters/L-1").mkdir(parents=True)
    write_text(root / "reports/BUILD.toml", SUB)
    write_text(root / "reports/map.txt", "Read.\r\n")
    write_text(root / "reports/letters/L-1/a.txt", "a letter\n")
    edit_build(root, 'name = "test"', 'name = "test"\nsubpackages = ["reports"]')
    return root


def test_a_workspace_loads_with_all_names_resolved(root):
    workspace = load_workspace(root)
    assert workspace.sources["corpus"].path == "corpus/dossiers"
    assert workspace.sources["labels"].visibility is Visibility.AUDIT
    assert isinstance(workspace.toolchains["fake"], CommandToolchain)
    package = workspace.packages["dossier"]
    assert isinstance(package, SummaryTreePackage)
    assert (package.fan_in, package.map_prompt, package.toolchain) == (4, "map-v1", None)
    assert workspace.prompts["map-v1"].instruction == "List its facts."


def test_a_subpackage_prefers_its_own_names_and_falls_back_to_the_roots(with_sub):
    workspace = load_workspace(with_sub)
    package = workspace.packages["reports/legal"]
    assert (package.map_prompt, package.reduce_prompt) == ("reports/map-v1", "reduce-v1")
    assert (package.sources, package.schema) == ("reports/letters", "product")
    assert workspace.sources["reports/letters"].path == "reports/letters"
    assert workspace.prompts["reports/map-v1"].instruction == "Read."
    assert workspace.prompts["map-v1"].system == "Read one document."


def test_the_root_does_not_see_a_subpackages_names(with_sub):
    edit_build(with_sub, 'sources = "corpus"\nmap_prompt', 'sources = "letters"\nmap_prompt')
    _refused(with_sub, "source `letters` is not declared", '"letters"')


def test_a_subpackages_error_names_its_file(with_sub):
    write_text(with_sub / "reports/BUILD.toml", SUB.replace("fan_in", "fan_out"))
    error = _refused(with_sub, "`package.legal` has no key `fan_out`", "fan_out")
    assert error.facts == {"file": "reports/BUILD.toml", "line": 14, "column": 1}


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        ('["."]', "subpackages form a cycle: `.` is the root, which lists it"),
        ('["loop"]', "subpackages form a cycle: `loop` is the root, which lists it"),
        ('["reports", "again"]', "subpackage `again` is the same folder as `reports`"),
        ('["reports", "reports"]', "subpackage `reports` is the same folder as `reports`"),
        ('[".."]', "the path of a subpackage leaves its folder by `..`"),
        ('["/tmp"]', "the path of a subpackage is absolute"),
        ('["outside"]', "subpackage `outside` leads outside the workspace"),
        ('["corpus"]', "`corpus` has no `BUILD.toml`"),
        ('["re ports"]', "`re ports` is no name for a subpackage"),
        ('["./reports"]', "`./reports` is no name for a subpackage"),
    ],
)
def test_a_subpackage_that_is_a_cycle_a_duplicate_or_elsewhere_is_refused(with_sub, tmp_path, folders, message):
    (with_sub / "loop").symlink_to(".")
    (with_sub / "again").symlink_to("reports")
    (with_sub / "outside").symlink_to(tmp_path)
    edit_build(with_sub, '["reports"]', folders)
    assert _refused(with_sub, message).facts["file"] == "BUILD.toml"


@pytest.mark.parametrize(
    ("old", "new", "message", "marked", "hint"),
    [
        ("fan_in", "fan_on", "`package.dossier` has no key `fan_on`", "fan_on", "did you mean `fan_in`?"),
        ("[schema.product]", "[schemas.product]", "`BUILD.toml` has no key `schemas`", "schemas", "did you mean `schema`?"),
        ("fan_in = 4", 'fan_in = "4"', "`package.dossier.fan_in` must be an integer, not a string", '"4"', None),
        ("fan_in = 4", "fan_in = 4.0", "`package.dossier.fan_in` must be an integer, not a fraction", "4.0", None),
        ("fan_in = 4", "fan_in = true", "`package.dossier.fan_in` must be an integer, not true or false", "true", None),
        ("fan_in = 4", "fan_in = [4]", "`package.dossier.fan_in` must be an integer, not an array", "[4]", None),
        ("fan_in = 4", "fan_in = 2026-01-01", "`package.dossier.fan_in` must be an integer, not date", "2026-01-01", None),
        ("fan_in = 4", "fan_in = 1", "`package.dossier.fan_in` must be an integer >= 2", "1", None),
        ("fan_in = 4", f"fan_in = {2**60}", f"`package.dossier.fan_in` must be an integer <= {2**53 - 1}", str(2**60), None),
        ("fan_in = 4\n", "", "`package.dossier` lacks `fan_in`", "dossier", "add `fan_in = …` there"),
        ('grammar = { strength = "none" }\n', "", "`toolchain.fake` lacks `grammar`", "fake", "add a section `[toolchain.fake.grammar]`"),
        ('grammar = { strength = "none" }', 'grammar = { strength = "none" }\ndecoding = { method = "sample" }', "`toolchain.fake.decoding.method` can't be `sample`", '"sample"', "the only `method` is `greedy`"),
        ('instruction = "List its facts."', 'instruction = "\\n"', "`prompt.map-v1.instruction` is empty", '"\\n"', None),
        ('rule = "extract"', 'rule = "extrac"', "`package.baseline.rule` can't be `extrac`", '"extrac"', "did you mean `extract`?"),
        ('rule = "extract"\n', "", "`package.baseline` lacks `rule`", "baseline", "add `rule = …` there"),
        ('map_prompt = "map-v1"', 'map_prompt = "map-v2"', "prompt `map-v2` is not declared", '"map-v2"', "did you mean `map-v1`?"),
        ('map_prompt = "map-v1"', 'map_prompt = ""', "`package.dossier.map_prompt` must be a string of length >= 1", '""', None),
        ("fan_in = 4", 'fan_in = 4\ntoolchain = "fale"', "toolchain `fale` is not declared", '"fale"', "did you mean `fake`?"),
        ('default_toolchain = "fake"', 'default_toolchain = "x"', "toolchain `x` is not declared", '"x"', "the toolchains declared are: `fake`, `small`"),
        ('schema = "product"\nfan_in', 'schema = "products"\nfan_in', "schema `products` is not declared", '"products"', "did you mean `product`?"),
        ('rule = "extract"\nsources = "corpus"', 'rule = "extract"\nsources = "corps"', "source `corps` is not declared", '"corps"', "did you mean `corpus`?"),
        ('numerics = "portable"', 'numerics = "portble"', "numerics profile `portble` is not declared", '"portble"', "did you mean `portable`?"),
        ("reproducible = true", "reproducible = false", "`toolchain.fake` is not reproducible and has no epoch", "false", 'add `epoch = "1"` and raise it to disown earlier generations'),
        ('{ strength = "none" }', '{ strength = "nome" }', "`toolchain.fake.grammar.strength` can't be `nome`", '"nome"', "did you mean `none`?"),
        ('{ strength = "none" }', '{ strength = "none", backend = "b" }', "a grammar of strength `none` has no `backend`", '"b"', "remove it, or choose a strength"),
        ('{ strength = "none" }', '{ strength = "schema", backend = "b" }', "a grammar of strength `schema` needs `backend` and `version`", '"schema"', 'add `backend = "llguidance"` and its `version`'),
        ("%s" % ("0" * 64), "00", '`toolchain.small.files."model.safetensors"` must be a string matching `^[0-9a-f]{64}$`', '"00"', None),
        ('kind = "folder"', 'kind = "foldr"', "`toolchain.small.source.kind` can't be `foldr`", '"foldr"', "did you mean `folder`?"),
        ('executor = "local"', 'executor = "remote"', "`toolchain.small.executor` can't be `remote`", '"remote"', "the choices are: `command`, `local`"),
        ('fields = ["subject", ', 'fields = ["evidence", ', "a field can't be named `evidence`", '"evidence"', "every claim has `evidence` anyway"),
        ('fields = ["subject", ', 'fields = ["field", ', "field `field` is declared twice", '"field"', None),
        ('fields = ["subject", ', 'fields = ["sub ject", ', "`schema.product.fields[0]` must be a string matching `^[A-Za-z_][A-Za-z0-9_]*$`", '"sub ject"', None),
        ('fields = ["subject", "field", "value"]', "fields = []", "`schema.product.fields` must be an array of length >= 1", "[]", None),
        ("enums = { field", "enums = { feld", "`schema.product` has no field `feld`", "feld", "did you mean `field`?"),
        ('"quantity", "site"]', '"quantity", "quantity"]', "the values of field `field` are empty or not distinct", '["delivery", "status", "quantity", "quantity"]', "list each once"),
        ("enums = { field", 'reduce_once = ["field", "feld"]\nenums = { field', "`schema.product` has no field `feld`", '"feld"', "did you mean `field`?"),
        ("enums = { field", 'reduce_once = ["field", "field"]\nenums = { field', "field `field` stands twice in `schema.product.reduce_once`", '"field"', None),
        ("enums = { field", 'reduce_once = "field"\nenums = { field', "`schema.product.reduce_once` must be an array, not a string", '"field"', None),
        ("(?P<value>", "(?P<val>", "the named groups of `schema.product.fact_pattern` are `subject`, `field`, `val` and the fields are `subject`, `field`, `value`", None, "name one group `(?P<field>…)` for each field"),
        ("(?P<value>", "(?P<value>(", "`schema.product.fact_pattern` is no regular expression: missing ), unterminated subpattern at position 73", None, None),
        ("[package.baseline]", "[package.prompt]", "the name `prompt` is reserved", "prompt", "`//prompt:…` names the prompts of the workspace: choose another name"),
        ("[package.baseline]", "[package.corpus]", "`//corpus:…` would name both a package and a source", "corpus", "rename one of the two"),
        ("[package.baseline]", '[package."a b"]', '`package."a b"` has no valid name', '"a b"', "names are letters, digits, `.`, `_` and `-`"),
        ("[package.baseline]", '[package."a/b"]', '`package."a/b"` has no valid name', '"a/b"', None),
        ("[prompt.reduce-v1]", '[prompt."é"]', '`prompt."é"` has no valid name', '"é"', None),
        ('"corpus/dossiers"', '"../dossiers"', "the path of source `corpus` leaves its folder by `..`", '"../dossiers"', None),
        ('"corpus/dossiers"', '"/dossiers"', "the path of source `corpus` is absolute", '"/dossiers"', None),
        ('"corpus/dossiers"', '"corpus/dosiers"', "the path of source `corpus` is not a folder", '"corpus/dosiers"', "create `corpus/dosiers`, or correct it"),
        ('visibility = "audit"', 'visibility = "hidden"', "`sources.labels.visibility` can't be `hidden`", '"hidden"', "the choices are: `audit`, `inference`"),
        ('instruction = "List its facts."', 'instruction = { file = "map.txt" }', "the file of `prompt.map-v1.instruction` does not exist", '{ file = "map.txt" }', "create `map.txt`, or correct it"),
        ('instruction = "List its facts."', 'instruction = { file = "../map.txt" }', "the file of `prompt.map-v1.instruction` leaves its folder by `..`", None, None),
        ('instruction = "List its facts."', "instruction = 5", "`prompt.map-v1.instruction` must be a string or a table, not an integer", "5", None),
        ('system = "Read one document."\n', "", "`prompt.map-v1` lacks `system`", "map-v1", None),
        ("command = [", "command = [1, ", "`toolchain.fake.command[0]` must be a string, not an integer", "1", None),
    ],
)  # fmt: skip
def test_a_wrong_declaration_is_refused_at_its_place_with_a_hint(root, old, new, message, marked, hint):
    text = (root / "BUILD.toml").read_text()
    assert old in text
    (root / "BUILD.toml").write_text(text.replace(old, new, 1))
    error = _refused(root, message, marked)
    assert set(error.facts) == {"file", "line", "column"}
    assert hint is None or error.hint == hint


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("a = \n", "`BUILD.toml` is not valid TOML: invalid value", 1, 5),
        ("[workspace]\nname = 1\nname = 2\n", "`name` is declared twice", 3, 1),
        ("[a.b]\n[c]\n  [a.b]\n", "`a.b` is declared twice", 3, 3),
        ('a = "x\n', "`BUILD.toml` is not valid TOML: illegal character '\\n'", 1, 7),
        ("[workspace\n", "`BUILD.toml` is not valid TOML: expected ']' at the end of a table declaration", 1, 11),
        ("a = [1\n\n", "`BUILD.toml` is not valid TOML: unclosed array", 1, 6),
        (
            "a = 2026-99-99\n",
            "`BUILD.toml` is not valid TOML: expected newline or end of document after a statement",
            1,
            9,
        ),
        ("", "`BUILD.toml` lacks `workspace`", 1, 1),
    ],
)
def test_a_syntax_error_shows_its_place(root, text, message, line, column):
    write_text(root / "BUILD.toml", text)
    error = _refused(root, message)
    assert (error.facts["line"], error.facts["column"]) == (line, column)


@pytest.mark.parametrize("text", ["a = " + "[" * 50_000, "a = " + "9" * 5000, "a" + ".a" * 2_000 + " = 1"])
def test_absurd_toml_is_an_error_and_no_crash(root, text):
    write_text(root / "BUILD.toml", text)
    with pytest.raises(DeclarationError):
        load_workspace(root)


def test_a_build_file_that_is_not_utf8_is_refused_with_its_line(root):
    (root / "BUILD.toml").write_bytes(b"# one\n# \xff\n")
    assert _refused(root, "`BUILD.toml` is not UTF-8").facts == {"file": "BUILD.toml", "line": 2, "byte": 8}


@pytest.mark.parametrize("kind", ["missing", "folder", "unreadable"])
def test_a_build_file_that_can_not_be_read_is_refused(root, kind):
    file = root / "BUILD.toml"
    if kind == "unreadable":
        if os.geteuid() == 0:
            pytest.skip("root reads everything")
        file.chmod(0)
    else:
        file.unlink()
        if kind == "folder":
            file.mkdir()
    assert _refused(root, "`BUILD.toml` can't be read").facts["why"]


def test_numbers_and_keys_of_free_tables_are_named_in_errors(root):
    edit_build(
        root,
        "[package.baseline]",
        '[numerics.other]\nbatching = "b"\nlibraries = { a = "1", torch = 2 }\n\n[package.baseline]',
    )
    _refused(root, "`numerics.other.libraries.torch` must be a string, not an integer", "2")


@pytest.mark.parametrize(("end", "kept"), [("", ""), ("\n", ""), ("\r\n", ""), ("\n\n", "\n"), (" \n", " ")])
def test_one_newline_at_the_end_of_a_prompt_s_text_is_no_part_of_it_wherever_it_stands(root, end, kept):
    written = end.replace("\r", "\\r").replace("\n", "\\n")
    write_text(root / "map.txt", f"Line 1\nLine 2{end}")
    edit_build(root, 'instruction = "List its facts."', 'instruction = { file = "map.txt" }')
    edit_build(root, 'system = "Read one document."', f'system = "Read.{written}"')
    example = f'[[prompt.map-v1.examples]]\ninput = "[1] a{written}"\noutput = "{{}}{written}"\n\n[package.baseline]'
    edit_build(root, "[package.baseline]", example)
    prompt = load_workspace(root).prompts["map-v1"]
    assert (prompt.instruction, prompt.system) == (f"Line 1\nLine 2{kept}", f"Read.{kept}")
    assert [(one.input, one.output) for one in prompt.examples] == [(f"[1] a{kept}", f"{{}}{kept}")]
    asked, _ = messages(prompt, "[1] Text.")
    assert asked[-1].content == f"Line 1\nLine 2{kept}\n\n[1] Text."


def test_a_prompt_file_is_read_exactly_but_for_its_last_newline(root):
    write_text(root / "map.txt", "\ufeffLine\r\nLine\n\n")
    edit_build(root, 'instruction = "List its facts."', 'instruction = { file = "map.txt" }')
    assert load_workspace(root).prompts["map-v1"].instruction == "\ufeffLine\r\nLine\n"
    write_text(root / "map.txt", " \n")
    _refused(root, "the file of `prompt.map-v1.instruction` is empty")
    (root / "map.txt").write_bytes(b"a\n\xff")
    _refused(root, "`map.txt` is not UTF-8")


def test_a_prompt_file_outside_the_workspace_is_refused(root, tmp_path):
    write_text(tmp_path / "p.txt", "x")
    (root / "p.txt").symlink_to(tmp_path / "p.txt")
    edit_build(root, 'instruction = "List its facts."', 'instruction = { file = "p.txt" }')
    _refused(root, "the file of `prompt.map-v1.instruction` leads outside the workspace")


def test_a_source_that_links_outside_the_workspace_is_refused(root, tmp_path):
    (root / "elsewhere").symlink_to(tmp_path)
    edit_build(root, '"corpus/dossiers"', '"elsewhere"')
    _refused(root, "the path of source `corpus` leads outside the workspace", '"elsewhere"')


def test_extract_needs_a_fact_pattern(root):
    text = (root / "BUILD.toml").read_text().split("\n")
    (root / "BUILD.toml").write_text("\n".join(line for line in text if not line.startswith("fact_pattern")))
    _refused(root, "rule `extract` needs a `fact_pattern` in schema `product`", '"product"')


def test_the_root_is_the_nearest_folder_with_a_workspace(with_sub):
    assert find_root(with_sub) == with_sub
    assert find_root(with_sub / "reports/letters/L-1") == with_sub
    inner = make_workspace(with_sub / "reports/inner")
    assert find_root(inner / "corpus") == inner


def test_a_broken_root_is_still_the_root(root):
    (root / "BUILD.toml").write_bytes(b"[workspace]\nname = \xff")
    assert find_root(root / "corpus") == root


def test_no_workspace_above_is_an_error(tmp_path):
    write_text(tmp_path / "BUILD.toml", "# [workspace]\n")
    with pytest.raises(NoWorkspace, match=r"no `BUILD.toml` with a `\[workspace\]` here or above") as caught:
        find_root(tmp_path)
    assert caught.value.exit_code == 3


def _refused(root, message, marked=None):
    with pytest.raises(DeclarationError) as caught:
        load_workspace(root)
    error = caught.value
    assert error.message == message
    assert error.exit_code == 3
    if marked is not None:
        _, line, carets = error.excerpt.split("\n")
        assert line[carets.index("^") : carets.rindex("^") + 1] == marked
    return error
