"""The stat index: what a null build opens, what is never trusted, and what stands for nothing else."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import workspaces
from support.engine import labels_of, quick_look, run_build
from support.fake_executor import FakeExecutor
from support.opening import opened_files
from support.ticks import age, settle, wait_a_tick

from gsum.engine.events import BuildFinished, BuildStarted
from gsum.engine.index import consulting, fingerprints, looking, quick
from gsum.engine.index.encoding import decode_index, encode_index
from gsum.engine.index.fingerprints import MISSING, NEVER, WIDTH, fingerprint, fingerprint_as, trusted
from gsum.engine.states import target_states
from gsum.engine.universe import load_universe
from gsum.store.local import open_store

DOSSIERS = ("S-1", "S-2", "S-3")


@pytest.fixture
def root(tmp_path):
    root = workspaces.make_workspace(tmp_path / "ws", dict.fromkeys(DOSSIERS[:2], 4))
    age(root)
    return root


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "store") as opened:
        yield opened


def test_a_null_build_opens_no_document_and_no_manifest(root, store, tmp_path):
    run_build(root, store, index=tmp_path / "index")
    os.utime(root)
    run_build(root, store, index=tmp_path / "index")  # ctimes were in the tick of the first: looked at again
    wait_a_tick()
    run_build(root, store, index=tmp_path / "index")
    with opened_files() as names:
        built = run_build(root, store, index=tmp_path / "index")
    assert [name for name in names if name.endswith((".txt", "dossier.toml"))] == []
    assert any(name.endswith("BUILD.toml") for name in names)
    assert [type(event) for event in built.events] == [BuildStarted, BuildFinished]
    assert built.report.targets == len(built.report.cached) == 10
    assert sorted(built.report.cached) == sorted(load_universe(root, ["//dossier:..."]).graph.actions)


def test_a_quick_look_opens_only_the_index_and_is_what_a_build_finds(root, store, tmp_path):
    settle(root, store, tmp_path / "index")
    with opened_files() as names:
        for pattern, count, alone in [
            ("//dossier:...", 10, ()),
            ("//dossier:all", 10, ()),
            ("//dossier:S-2", 5, ("//dossier:S-2/root",)),
            ("//dossier:S-2/root", 5, ("//dossier:S-2/root",)),
            ("//dossier:S-2/...", 5, ()),
        ]:
            found = quick_look(root, store, tmp_path / "index", pattern)
            assert (len(labels_of(found)), found.targets, found.alone) == (count, count, alone)
            assert (found.principal, found.toolchain) == (workspaces.READER, "fake")
    opened = {Path(name) for name in names if name.startswith(str(tmp_path))}
    assert {path.suffix for path in opened - {root}} == {".index"}


@pytest.mark.parametrize(
    "pattern",
    ["//baseline:all", "//...", "//nothing:all", "//dossier:S-9", "//dossier:S-1/leaf-00", "//corpus:S-1/D-00"],
)
def test_a_quick_look_does_not_answer_what_it_does_not_know(root, store, tmp_path, pattern):
    settle(root, store, tmp_path / "index")
    assert quick_look(root, store, tmp_path / "index", pattern) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda root: workspaces.set_prompt(root, "map-v1", "Another."),
        lambda root: workspaces.set_fan_in(root, 3),
        lambda root: (root / "BUILD.toml").touch(),
        lambda root: (root / "corpus/dossiers/S-2/documents/D-00.v1.txt").unlink(),
        lambda root: workspaces.withdraw(root, "S-2", "D-00"),
        lambda root: workspaces.make_dossier(root, "S-4", 1),
    ],
)
def test_a_quick_look_sees_every_kind_of_change(root, store, tmp_path, change):
    settle(root, store, tmp_path / "index")
    assert quick_look(root, store, tmp_path / "index", "//dossier:all") is not None
    change(root)
    assert quick_look(root, store, tmp_path / "index", "//dossier:all") is None


def test_a_quick_look_under_another_toolchain_or_principal_finds_nothing(root, store, tmp_path):
    settle(root, store, tmp_path / "index")
    assert quick_look(root, store, tmp_path / "index", "//dossier:all", toolchain="other") is None
    assert quick_look(root, store, tmp_path / "index", "//dossier:all", principal="other") is None


def test_declarations_changed_in_the_tick_of_the_look_are_never_trusted(root, store, tmp_path):
    run_build(root, store, index=tmp_path / "index")
    wait_a_tick()
    workspaces.set_prompt(root, "map-v1", "First.")
    run_build(root, store, index=tmp_path / "index")
    assert quick_look(root, store, tmp_path / "index", "//dossier:all") is None
    settle(root, store, tmp_path / "index")
    assert quick_look(root, store, tmp_path / "index", "//dossier:all") is not None


def test_a_quick_look_looks_at_each_path_once(root, store, tmp_path, monkeypatch):
    settle(root, store, tmp_path / "index")
    looked_at, real = [], os.stat

    def counted(path, *arguments, **settings_given):
        looked_at.append(str(path))
        return real(path, *arguments, **settings_given)

    monkeypatch.setattr(fingerprints, "os", SimpleNamespace(stat=counted))
    assert quick_look(root, store, tmp_path / "index", "//dossier:...") is not None
    sources = [path for path in looked_at if "dossiers/" in path]
    assert len(sources) == len(set(sources)) == 2 * (1 + 4)


def test_the_print_of_the_code_covers_all_rules(monkeypatch, tmp_path):
    import gsum.rules

    (tmp_path / "kinds/deeper").mkdir(parents=True)
    (tmp_path / "kinds/deeper/rule.py").write_text("1\n")
    monkeypatch.setattr(gsum.rules, "__path__", [str(tmp_path)])
    before = looking.code_print()
    (tmp_path / "kinds/deeper/rule.py").write_text("10\n")
    assert looking.code_print() != before


def test_an_index_of_other_code_is_not_believed(root, store, tmp_path, monkeypatch):
    settle(root, store, tmp_path / "index")
    monkeypatch.setattr(quick, "code_print", lambda: b"other")
    assert quick_look(root, store, tmp_path / "index", "//dossier:all") is None


def test_after_an_edit_only_its_dossier_is_read(root, store, tmp_path):
    run_build(root, store, index=tmp_path / "index")
    wait_a_tick()
    run_build(root, store, index=tmp_path / "index")
    workspaces.edit_text(root, "S-2", "D-03", "Product P-2-03 site: Hall 9.\n")
    with opened_files() as names:
        built = run_build(root, store, index=tmp_path / "index")
    assert built.ran() == ("leaf-03", "root")
    # D-03 to digest it, and those that the leaves reused by the root cite.
    assert {Path(name).parts[-3] for name in names if name.endswith(".txt")} == {"S-2"}
    assert {Path(name).parts[-2] for name in names if name.endswith("dossier.toml")} == {"S-2"}


def test_an_edit_in_the_tick_of_the_look_is_found(root, store, tmp_path, monkeypatch):
    """The racy case: same size, and timestamps that do not move, right after the build looked."""
    file = root / "corpus/dossiers/S-1/documents/D-00.v1.txt"
    frozen = file.stat()
    real = os.stat

    class Frozen:
        def __init__(self, status):
            self.st_mtime_ns = self.st_ctime_ns = now
            self.st_size, self.st_ino = status.st_size, status.st_ino

    now = frozen.st_mtime_ns + 10_000_000_000
    monkeypatch.setattr(consulting, "clock_ns", lambda _: now)

    def coarse(path, *arguments, **settings_given):
        status = real(path, *arguments, **settings_given)
        return Frozen(status) if str(root / path) == str(file) else status

    monkeypatch.setattr(fingerprints, "os", SimpleNamespace(stat=coarse))
    run_build(root, store, index=tmp_path / "index")
    text = file.read_text()
    file.write_text(text.replace("1 March", "9 March"))
    built = run_build(root, store, index=tmp_path / "index")
    assert "leaf-00" in built.ran()


def test_trust_ends_at_the_tick_of_the_look():
    look = 1_000_000_000_123_456_789
    old, tick = look - fingerprints.TICK_NS - 1, look - fingerprints.TICK_NS
    second = look // 10**9 * 10**9

    def of(mtime, ctime):
        return trusted(b"".join(value.to_bytes(8, "little", signed=True) for value in (mtime, ctime, 5, 6)), look)

    assert of(old, old) != NEVER
    assert of(tick, old) == NEVER
    assert of(old, tick) == NEVER
    assert of(look + 10**12, old) == NEVER
    assert of(second - 10**9, second - 10**9) == NEVER  # whole seconds: perhaps a coarse clock
    assert of(second - 3 * 10**9, second - 3 * 10**9) != NEVER
    assert trusted(MISSING, look) == MISSING


def test_a_missing_file_has_a_fingerprint_of_its_own(tmp_path):
    assert fingerprint(str(tmp_path / "none")) == MISSING
    assert len(fingerprint(str(tmp_path))) == WIDTH
    assert fingerprint("no\0name") == MISSING


def test_a_damaged_index_costs_a_look_and_no_error(root, store, tmp_path):
    run_build(root, store, index=tmp_path / "index")
    (file,) = (tmp_path / "index").glob("*.index")
    good = file.read_bytes()
    assert encode_index(decode_index(good)) == good
    for place in range(0, len(good), max(1, len(good) // 40)):
        file.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        assert decode_index(file.read_bytes()) is None
    for bad in (b"", good[:-1], good + b"x", b"\0" * 100):
        file.write_bytes(bad)
        assert run_build(root, store, index=tmp_path / "index").ran() == ()


def test_a_store_that_lost_something_is_asked_again(root, store, tmp_path):
    run_build(root, store, "//dossier:all", index=tmp_path / "index")
    wait_a_tick()
    run_build(root, store, "//dossier:all", index=tmp_path / "index")
    built = run_build(root, store, "//dossier:all", index=tmp_path / "index")
    assert built.universe.graph.actions == {}
    store._db.query("DELETE FROM entry WHERE label LIKE '%S-1/root'")
    assert run_build(root, store, "//dossier:all", index=tmp_path / "index").ran() == ("root",)


def test_another_store_with_the_same_index_folder_is_not_believed(root, store, tmp_path):
    run_build(root, store, index=tmp_path / "index")
    wait_a_tick()
    run_build(root, store, index=tmp_path / "index")
    with open_store(tmp_path / "other") as other:
        assert len(run_build(root, other, index=tmp_path / "index").ran()) == 10


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('instruction = "List its facts."', 'instruction = "List all facts."'),
        ('system = "Read a list of claims."', 'system = "Read claims."'),
        ("fan_in = 4", "fan_in = 3"),
        ("map_input_tokens = 2048", "map_input_tokens = 2047"),
        ("fact_pattern", "max_length = 99\nfact_pattern"),
        ('identity = "fake-1"', 'identity = "fake-2"'),
        ('strength = "none"', 'strength = "schema", backend = "llguidance", version = "1"'),
        ('default_toolchain = "fake"', 'default_toolchain = "fake"\nsalt = "x"'),
    ],
)
def test_no_dossier_stands_under_changed_declarations(root, store, tmp_path, old, new):
    settle(root, store, tmp_path / "index")
    workspaces.edit_build(root, old, new)
    assert quick_look(root, store, tmp_path / "index", "//dossier:...") is None
    assert len(run_build(root, store, index=tmp_path / "index").ran()) >= 2
    assert everything_is_current(root, store, "//dossier:...")


def everything_is_current(root, store, pattern) -> bool:
    universe = load_universe(root, [pattern])
    states = target_states(universe, store, universe.graph.requested)
    return all(found.state.current for found in states.values())


def test_a_file_added_to_a_plain_folder_is_seen(root, store, tmp_path):
    plain = root / "corpus/dossiers/S-3"
    plain.mkdir()
    (plain / "a.txt").write_text("Product P-3-00 site: Hall 1.\n")
    settle(root, store, tmp_path / "index", "//dossier:S-3")
    (plain / "b.txt").write_text("Product P-3-01 site: Hall 2.\n")
    assert quick_look(root, store, tmp_path / "index", "//dossier:S-3") is None
    assert run_build(root, store, "//dossier:S-3", index=tmp_path / "index").ran() == ("leaf-01", "root")


def test_a_dossier_that_is_gone_is_looked_for_once(root, store, tmp_path):
    settle(root, store, tmp_path / "index")
    shutil.rmtree(root / "corpus/dossiers/S-2")
    wait_a_tick()
    assert quick_look(root, store, tmp_path / "index", "//dossier:all") is None
    assert run_build(root, store, "//dossier:all", index=tmp_path / "index").report.targets == 5
    assert quick_look(root, store, tmp_path / "index", "//dossier:all").targets == 5


def test_what_one_package_looked_at_does_not_stand_for_another(root, store, tmp_path):
    settle(root, store, tmp_path / "index", "//...")
    workspaces.activate(root, "S-2", "D-00", "2")
    settle(root, store, tmp_path / "index", "//dossier:S-2")
    assert quick_look(root, store, tmp_path / "index", "//baseline:S-2") is None
    assert run_build(root, store, "//baseline:S-2", index=tmp_path / "index").ran() == ("leaf-00", "root")


def test_what_changes_between_the_look_and_the_reading_stands_for_nobody(root, store, tmp_path, monkeypatch):
    settle(root, store, tmp_path / "index", "//...")
    workspaces.set_prompt(root, "map-v1", "Another.")
    wait_a_tick()
    real = consulting.look_at

    def look_then_edit(*arguments):
        found = real(*arguments)
        workspaces.edit_text(root, "S-2", "D-03", "Product P-2-03 site: Hall 9.\n")
        wait_a_tick()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(consulting, "look_at", look_then_edit)
        patched.setattr(consulting, "clock_ns", lambda _: time.time_ns() + 10**9)
        assert "leaf-03" in run_build(root, store, "//dossier:S-2", index=tmp_path / "index").ran()
    assert run_build(root, store, "//baseline:S-2", index=tmp_path / "index").ran() == ("leaf-03", "root")


def test_a_package_that_was_not_built_since_its_declarations_changed_does_not_stand(root, store, tmp_path):
    settle(root, store, tmp_path / "index", "//...")
    workspaces.set_prompt(root, "map-v1", "Another.")
    settle(root, store, tmp_path / "index", "//baseline:all")
    assert quick_look(root, store, tmp_path / "index", "//baseline:all") is not None
    assert quick_look(root, store, tmp_path / "index", "//dossier:all") is None
    assert len(run_build(root, store, "//dossier:all", index=tmp_path / "index").ran()) == 10


def test_what_one_dossier_was_built_under_does_not_stand_for_another(root, store, tmp_path):
    settle(root, store, tmp_path / "index", "//dossier:all")
    workspaces.set_prompt(root, "reduce-v1", "Another.")
    settle(root, store, tmp_path / "index", "//dossier:S-1")
    assert quick_look(root, store, tmp_path / "index", "//dossier:S-2") is None
    assert run_build(root, store, "//dossier:S-2", index=tmp_path / "index").ran() == ("root",)
    assert everything_is_current(root, store, "//dossier:all")


def test_a_store_put_back_to_an_earlier_state_is_not_believed(root, tmp_path):
    kept, backup, index = tmp_path / "kept", tmp_path / "backup", tmp_path / "index"
    with open_store(kept) as store:
        settle(root, store, index)
    shutil.copytree(kept, backup)
    workspaces.activate(root, "S-2", "D-03", "2")
    with open_store(kept) as store:
        settle(root, store, index)
        assert quick_look(root, store, index, "//dossier:all") is not None
    shutil.rmtree(kept)
    backup.rename(kept)
    with open_store(kept) as store:
        assert quick_look(root, store, index, "//dossier:all") is None
        assert run_build(root, store, index=index).ran() == ("leaf-03", "root")


def test_an_invalid_result_never_stands(root, store, tmp_path):
    for _ in range(3):
        broken = FakeExecutor(answer=lambda request: "no json")
        assert run_build(root, store, "//dossier:all", executor=broken, index=tmp_path / "index").report.exit_code == 7
        wait_a_tick()


def test_failures_do_not_stand(root, store, tmp_path):
    from gsum.engine.executors.protocol import FailureReason

    failing = FakeExecutor(fails=lambda _: FailureReason.CRASH)
    for _ in range(2):
        built = run_build(root, store, executor=failing, keep_going=True, index=tmp_path / "index")
        assert built.report.failed
        wait_a_tick()
    assert len(run_build(root, store, index=tmp_path / "index").ran()) == 10


def test_a_fifo_in_the_place_of_the_index_is_no_index_and_is_not_waited_for(root, store, tmp_path):
    run_build(root, store, index=tmp_path / "index")
    (file,) = (tmp_path / "index").glob("*.index")
    file.unlink()
    os.mkfifo(file)
    assert quick_look(root, store, tmp_path / "index", "//dossier:all") is None
    assert run_build(root, store, index=tmp_path / "index").ran() == ()
    assert file.is_file()


def test_one_file_s_fingerprint_is_that_among_many_and_admits_an_inode_of_64_bits(tmp_path):
    (tmp_path / "a").write_text("a")
    paths = [str(tmp_path / "a"), str(tmp_path / "none"), "nul\0"]
    assert b"".join(map(fingerprint, paths)) == fingerprints.fingerprints(paths)
    assert fingerprint(paths[0]) != fingerprint(paths[1]) == fingerprint(paths[2]) == MISSING
    assert fingerprint_as(1, 2, 3, (1 << 64) - 7)[24:] == (-7).to_bytes(8, sys.byteorder, signed=True)
