"""Prefixes kept between workers: bit for bit what would be computed, found only where all is the same."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import msgspec
import pytest
import torch
from support.tiny_model import NUMERICS, make_model, toolchain_for

from gsum.engine.llm import kept, prefixes, shared
from gsum.engine.llm.decode import Decoder
from gsum.engine.llm.kept import Start, circumstances, started
from gsum.engine.llm.load import load
from gsum.engine.llm.prefixes import PrefixFiles
from gsum.engine.llm.schemes import SCHEMES
from gsum.engine.llm.serve import Served, open_model
from gsum.engine.llm.wire import Hello
from gsum.rules.config import Dtype, NumericsSection
from gsum.rules.requests import Message, Request, Role

ASKED = Request(
    (Message(Role.SYSTEM, "You copy facts."), Message(Role.USER, "[1] hello harbour")), 1, None, 24, 500, "t", "p"
)
OTHER = msgspec.structs.replace(ASKED, messages=(Message(Role.SYSTEM, "Another."), ASKED.messages[1]))
START = Start("code")
SCHEME_NAMES = ("single-2", "ragged-1", "ragged-2", "fixed-1")


@pytest.fixture(scope="module", params=[Dtype.FLOAT32, Dtype.BFLOAT16], ids=lambda dtype: dtype.value)
def loaded(request, tmp_path_factory):
    folder = make_model(tmp_path_factory.mktemp("tiny") / "m")
    return load("tiny", toolchain_for(folder, dtype=request.param), folder, folder)


def decoder(loaded, cache, scheme="ragged-1", told="here"):
    return Decoder(loaded, SCHEMES[scheme], PrefixFiles(cache, told))


def logits_of(made, request, monkeypatch):
    """Generate; return what was generated and the logits of every pass but those over the prefix."""
    seen = []
    with monkeypatch.context() as patch:
        choose = made._choose
        patch.setattr(made, "_choose", lambda row, grammar: (seen.append(row.clone()), choose(row, grammar))[1])
        return made.generate(request), seen


@pytest.mark.parametrize("scheme", SCHEME_NAMES)
def test_a_prefix_read_gives_the_logits_of_one_computed(loaded, tmp_path, monkeypatch, scheme):
    first, computed = logits_of(decoder(loaded, tmp_path, scheme), ASKED, monkeypatch)
    second, read = logits_of(decoder(loaded, tmp_path, scheme), ASKED, monkeypatch)
    assert len(computed) == len(read) == 24
    assert all(map(torch.equal, computed, read))
    assert (first.reused, first.prefilled) == (0, first.prompt_tokens)
    assert second.reused > 0
    assert second.reused + second.prefilled == second.prompt_tokens


def test_what_is_damaged_or_cut_short_is_computed_again(loaded, tmp_path):
    right = decoder(loaded, tmp_path).generate(ASKED)
    [file] = (tmp_path / prefixes.FOLDER).iterdir()
    whole = file.read_bytes()
    for damaged in (whole[:-1], b"", whole[:40], whole[:-5] + b"\0" + whole[-4:], b"\0" * len(whole), whole + b"\0"):
        file.write_bytes(damaged)
        done = decoder(loaded, tmp_path).generate(ASKED)
        assert (done.reused, done.token_ids) == (0, right.token_ids)
        assert file.read_bytes() == whole


def test_other_tokens_or_circumstances_find_nothing(loaded, tmp_path):
    decoder(loaded, tmp_path).generate(ASKED)
    assert decoder(loaded, tmp_path).generate(OTHER).reused == 0
    assert decoder(loaded, tmp_path, told="elsewhere").generate(ASKED).reused == 0
    assert decoder(loaded, tmp_path).generate(ASKED).reused > 0


def test_only_the_latest_used_files_stay(loaded, tmp_path, monkeypatch):
    monkeypatch.setattr(prefixes, "_MOST", 2)
    decoder(loaded, tmp_path).generate(ASKED)
    decoder(loaded, tmp_path).generate(OTHER)
    decoder(loaded, tmp_path).generate(ASKED)
    decoder(loaded, tmp_path, told="elsewhere").generate(ASKED)
    assert len(list((tmp_path / prefixes.FOLDER).iterdir())) == 2
    assert decoder(loaded, tmp_path).generate(ASKED).reused > 0
    assert decoder(loaded, tmp_path).generate(OTHER).reused == 0


def test_a_cache_that_can_not_be_written_costs_a_pass(loaded, tmp_path):
    (tmp_path / "file").write_text("")
    done = [decoder(loaded, tmp_path / "file").generate(ASKED) for _ in range(2)]
    assert [one.reused for one in done] == [0, 0]
    assert done[0].token_ids == done[1].token_ids


def test_a_worker_that_is_to_compute_all_itself_reads_and_keeps_no_prefix(tmp_path):
    folder = make_model(tmp_path / "m")
    cache = tmp_path / "cache"
    hello = Hello("tiny", toolchain_for(folder), NUMERICS, str(folder), str(cache))
    for keeps, reused in ((False, False), (True, False), (True, True), (False, False)):
        served = open_model(msgspec.structs.replace(hello, keep_prefixes=keeps), START)
        assert isinstance(served, Served)
        done = Decoder(served.loaded, served.scheme, served.prefixes).generate(ASKED)
        assert (done.reused > 0) is reused
        assert (cache / prefixes.FOLDER).exists() or not keeps


def test_all_that_decides_a_bit_is_among_the_circumstances(tmp_path, monkeypatch):
    folder = make_model(tmp_path / "m")
    toolchain = toolchain_for(folder)
    hello = Hello("tiny", toolchain, NUMERICS, str(folder), "")
    ragged = SCHEMES["ragged-1"]
    told = [
        circumstances(hello, ragged, {"threads": "1"}, START),
        circumstances(hello, ragged, {"threads": "2"}, START),
    ]
    told.append(circumstances(hello, SCHEMES["ragged-2"], {"threads": "1"}, START))
    for changed in (
        msgspec.structs.replace(hello, numerics=NumericsSection("ragged-1", 2)),
        msgspec.structs.replace(hello, toolchain=toolchain_for(folder, dtype=Dtype.BFLOAT16)),
        msgspec.structs.replace(hello, toolchain=msgspec.structs.replace(toolchain, files={"a": "b"})),
    ):
        told.append(circumstances(changed, ragged, {"threads": "1"}, START))
    for name, value in (("processor", "another"), ("interpreter", []), ("torch_build", "t"), ("library_versions", {})):
        with monkeypatch.context() as patch:
            patch.setattr(kept, name, lambda value=value: value)
            told.append(circumstances(hello, ragged, {"threads": "1"}, START))
    for start in (Start("other code"), started("code", {"LD_LIBRARY_PATH": "/x"})):
        told.append(circumstances(hello, ragged, {"threads": "1"}, start))
    assert len(set(told)) == len(told) == 12
    assert circumstances(hello, ragged, {"threads": "1"}, started("code", {"HOME": "/x"})) == told[0]
    renamed = msgspec.structs.replace(hello, name="other", cache_dir="elsewhere")
    assert circumstances(renamed, ragged, {"threads": "1"}, START) == told[0]


HOLDER = """
import sys, time
from pathlib import Path
from gsum.engine.llm.prefixes import PrefixFiles
with PrefixFiles(Path(sys.argv[1]), "here").claim(eval(sys.argv[2]), 0) as mine:
    print(mine, flush=True)
    time.sleep(600)
"""


def answered(made, **hints):
    """Return what becomes of the request, asked with hints."""
    made.add("", ASKED, **hints)
    while not (ended := made.step()):
        pass
    return ended[0][1]


@contextlib.contextmanager
def held_elsewhere(cache, tokens):
    """Let another process claim a prefix; it is given by its process id."""
    argv = [sys.executable, "-c", HOLDER, str(cache), repr(list(tokens))]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "True\n"
        try:
            yield holder.pid
        finally:
            holder.kill()


def test_a_prefix_is_claimed_by_one_process_until_it_ends_however_it_ends(tmp_path):
    files = PrefixFiles(tmp_path / "cache", "here")
    with held_elsewhere(tmp_path / "cache", (1, 2)) as pid:
        with files.claim((1, 2), 0) as mine:
            assert not mine
        with files.claim((1, 3), 0) as mine:
            assert mine
        with PrefixFiles(tmp_path / "cache", "elsewhere").claim((1, 2), 0) as mine:
            assert mine
        os.kill(pid, signal.SIGKILL)
        with files.claim((1, 2), 60) as mine:
            assert mine
    with files.claim((1, 2), 0) as mine:
        assert mine


def test_where_nothing_can_be_kept_every_process_computes(tmp_path):
    (tmp_path / "file").write_text("")
    with PrefixFiles(tmp_path / "file", "here").claim((1, 2), 0) as mine:
        assert mine


def test_while_another_worker_computes_a_prefix_the_one_wanted_later_is_computed(loaded, tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "_PATIENCE", 0.05)
    alone = Decoder(loaded, SCHEMES["ragged-1"])
    right, after = alone.generate(ASKED), alone.generate(OTHER)
    made = decoder(loaded, tmp_path)
    tokens = made._tokens.shared(ASKED.messages[:1])
    passed = []
    forward = made._ragged.forward
    monkeypatch.setattr(made._ragged, "forward", lambda fed: (passed.append(fed), forward(fed))[1])
    with held_elsewhere(tmp_path, tokens):  # it never comes to an end: after some time its work is done twice
        done = answered(made, then=OTHER.messages[:1])
    assert (done.token_ids, done.reused) == (right.token_ids, 0)
    assert len(list((tmp_path / prefixes.FOLDER).iterdir())) == 2
    first, again = made.generate(OTHER), made.generate(OTHER)
    assert first.token_ids == again.token_ids == after.token_ids
    assert (first.reused, again.reused > 0) == (0, True), "what was computed ahead counts where it is first used"
    passed.clear()
    made.generate(OTHER)
    assert len(passed) == 24, "and is not computed again"


def test_the_time_that_another_worker_is_waited_for_is_no_time_of_a_generation(loaded, tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "_PATIENCE", 3.0)
    made = decoder(loaded, tmp_path)
    began = time.monotonic()
    with held_elsewhere(tmp_path, made._tokens.shared(ASKED.messages[:1])):
        done = made.generate(ASKED)
    assert time.monotonic() - began > 3
    assert done.seconds < 2.5


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't allocate memory"), ZeroDivisionError()])
def test_nothing_that_goes_wrong_with_what_may_be_wanted_later_fails_a_request(loaded, tmp_path, monkeypatch, error):
    monkeypatch.setattr(shared, "_PATIENCE", 0.05)
    right = Decoder(loaded, SCHEMES["ragged-1"]).generate(ASKED)
    made = decoder(loaded, tmp_path)
    tokens = made._tokens.shared(ASKED.messages[:1])

    def fail(*_):
        raise error

    of = made._tokens if isinstance(error, ZeroDivisionError) else made._shared
    monkeypatch.setattr(of, "shared" if of is made._tokens else "_prepare", fail)
    with held_elsewhere(tmp_path, tokens):
        assert answered(made, then=OTHER.messages[:1]).token_ids == right.token_ids
    assert len(list((tmp_path / prefixes.FOLDER).iterdir())) == 1


def test_much_that_may_be_wanted_later_is_not_computed_for_a_short_wait(loaded, tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "_PATIENCE", 0.05)
    made = decoder(loaded, tmp_path)
    long = (Message(Role.SYSTEM, "hello harbour " * 2000),)
    with held_elsewhere(tmp_path, made._tokens.shared(ASKED.messages[:1])):
        answered(made, then=long)
    assert len(list((tmp_path / prefixes.FOLDER).iterdir())) == 1


def test_what_another_worker_has_written_meanwhile_is_read(loaded, tmp_path, monkeypatch):
    right = decoder(loaded, tmp_path / "theirs").generate(ASKED)
    [file] = (tmp_path / "theirs" / prefixes.FOLDER).iterdir()
    made = decoder(loaded, tmp_path / "ours")
    claim = PrefixFiles.claim

    @contextlib.contextmanager
    def written(self, tokens, patience):
        """Be late: what was claimed by another worker is there when it lets go."""
        with claim(self, tokens, patience) as mine:
            kept.keep(tmp_path / "ours" / prefixes.FOLDER / file.name, file.read_bytes())
            yield mine

    monkeypatch.setattr(PrefixFiles, "claim", written)
    done = made.generate(ASKED)
    assert (done.token_ids, done.reused > 0) == (right.token_ids, True)


@pytest.mark.parametrize("kind", ["folder", "fifo", "link", "dangling"])
def test_a_file_of_claims_that_is_none_stops_nobody(tmp_path, kind):
    claims = tmp_path / prefixes.CLAIMS
    if kind == "folder":
        claims.mkdir()
    elif kind == "fifo":
        os.mkfifo(claims)
    else:
        claims.symlink_to(tmp_path if kind == "link" else tmp_path / "nowhere")
    with PrefixFiles(tmp_path, "here").claim((1, 2), 0) as mine:
        assert mine


def test_only_its_owner_may_open_the_file_of_claims(tmp_path):
    with PrefixFiles(tmp_path, "here").claim((1, 2), 0):
        assert (tmp_path / prefixes.CLAIMS).stat().st_mode & 0o777 == 0o600
