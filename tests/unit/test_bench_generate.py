"""The generation benchmark's own code: what it publishes of turns, and how it speaks with llama.cpp's server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SERVER = '''#!{python}
"""Speaks as llama.cpp's server does, as far as the benchmark uses it: answers count on from the prompt's last id."""
import http.server, json, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status); self.send_header("Content-Length", str(len(data))); self.end_headers()
        self.wfile.write(data)
    def do_GET(self):
        self.answer(200, {{"status": "ok"}})
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        exact = asked["temperature"] == 0 and asked["ignore_eos"] and asked["cache_prompt"] and "grammar" not in asked
        room = int(given["--ctx-size"]) // int(given["--parallel"])
        if not exact or len(asked["prompt"]) + asked["n_predict"] > room:
            return self.answer(400, {{"error": "not as expected"}})
        start = asked["prompt"][-1]
        self.answer(200, {{"tokens": list(range(start + 1, start + 1 + asked["n_predict"]))}})
http.server.ThreadingHTTPServer((given["--host"], int(given["--port"])), Handler).serve_forever()
'''


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.fixture
def server(tmp_path):
    binary = tmp_path / "llama-server"
    binary.write_text(SERVER.format(python=sys.executable))
    binary.chmod(0o755)
    return binary


class Fixed:
    """A way whose turns are given."""

    name, start = "fixed", 1.0

    def __init__(self, *turns):
        self.turns = iter(turns)

    def turn(self):
        return next(self.turns)

    def close(self):
        pass


def test_help_runs_nothing():
    ran = subprocess.run(
        [sys.executable, "bench_generate.py", "--help"], cwd=BENCHMARKS, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0
    assert "--llama-server" in ran.stdout
    assert ran.stderr == ""  # a way that is loaded says so there


def test_a_row_holds_medians_and_the_spread_of_the_turns():
    from generate.ways import Measured, Turn

    measured = Measured(Fixed(*(Turn(4, 100, 40, wall, cpu) for wall, cpu in ((2.0, 1.0), (8.0, 2.0), (4.0, 4.0)))))
    for _ in range(3):
        measured.measure()
    row = measured.row()
    assert (row["turns"], row["requests"], row["prompt tokens"], row["new tokens"]) == (3, 4, 100, 40)
    assert (row["requests a s"], row["from"], row["to"]) == (1.0, 0.5, 2.0)
    assert row["new tokens a s"] == 10.0
    assert row["cpu s a request"] == 0.5


def test_a_row_tells_how_many_tokens_a_step_of_the_model_gave():
    from generate.ways import Measured, Turn

    measured = Measured(Fixed(Turn(2, 100, 40, 1.0, 1.0, (), 30)))
    measured.measure()
    assert [measured.row()[name] for name in ("forced", "sampled", "tokens a step")] == [30, 10, 4.0]


def test_goals_of_speed_compare_ways_on_as_many_cores():
    from generate.goals import speed_goals

    rates = {
        "gsum smollm2, 8 at a time, 1 thread": 1.0,
        "gsum smollm2, 1 at a time, 1 thread": 0.5,
        "gsum smollm2, 8 at a time, no grammar, 1 thread": 9.0,
        "gsum smollm2, 8 at a time, 2 workers, 1 thread": 1.8,
        "transformers generate, float32 sdpa, 1 thread": 0.2,
        "llama.cpp bf16, 1 slot, 1 thread": 0.1,
        "llama.cpp bf16, 8 slots, 1 thread": 0.7,
        "llama.cpp bf16, 8 slots, 2 threads": 1.0,
    }
    assert speed_goals([{"way": way, "requests a s": rate} for way, rate in rates.items()]) == {
        "gsum smollm2, 8 at a time, 1 thread / transformers generate, float32 sdpa, 1 thread": "5.00, at least 5: met",
        "gsum smollm2, 8 at a time, 1 thread / llama.cpp bf16, 8 slots, 1 thread": "1.43, at least 1.5: NOT MET",
        "gsum smollm2, 8 at a time, 2 workers, 1 thread / llama.cpp bf16, 8 slots, 2 threads": (
            "1.80, at least 1.5: met"
        ),
    }


def test_goals_of_workers_are_of_medians_with_and_without_a_kept_prefix():
    from generate.goals import worker_goals

    none, warm = "with no prefix kept s", "warm, found in ms"
    rows = [{"way": "1 × 1", "first token s": s, none: s + 1, warm: ms} for s, ms in ((4, 20), (5, 51), (9, 70))]
    assert worker_goals(rows) == {
        "1 × 1, cold: first token s": "5.00, at most 5: met",
        "1 × 1, cold: with no prefix kept s": "6.00, at most 5: NOT MET",
        "1 × 1, warm: found in ms": "51.0, at most 50: NOT MET",
    }


def test_a_first_token_is_one_that_the_model_chose(tmp_path):
    """Under this grammar the first token is forced, and would come without a pass."""
    from bench_workers import first_token
    from support.tiny_model import make_model, toolchain_for

    from gsum.engine.llm.decode import Decoder
    from gsum.engine.llm.load import load
    from gsum.engine.llm.schemes import SCHEMES
    from gsum.rules.requests import Message, Request, Role

    messages = (Message(Role.SYSTEM, "Copy."), Message(Role.USER, "Lamp L3 colour: blue."))
    request = Request(messages, 1, 'start: "{" /[a-z]{3,9}/ "}"\n', 40, 2000, "t", "p")
    folder = make_model(tmp_path / "m")
    decoder = Decoder(load("tiny", toolchain_for(folder), folder, folder), SCHEMES["ragged-1"])
    done = decoder.generate(first_token(request))
    assert (done.forced, done.sampled, len(done.token_ids)) == (0, 1, 1)


def test_the_page_of_workers_is_made_of_its_rows_alone():
    from bench_workers import table

    times = {"first token s": 4.0, "with no prefix kept s": 6.0, "warm, found in ms": 12.0}
    row = {"way": "1 × 1", "profile": "p", "requests": 8, **times}
    page = table([row, row], 2)
    assert "8 leaf prompts of the corpus, medians of 2 repeats" in page
    assert "| 1 × 1, cold: first token s | 4.00, at most 5: met |" in page
    assert "| 1 × 1, cold: with no prefix kept s | 6.00, at most 5: NOT MET |" in page


def test_outputs_are_compared_as_far_as_both_have_them():
    from generate.ways import Measured, Turn, same_outputs

    one = Measured(Fixed(Turn(3, 1, 1, 1.0, 1.0, ((1,), (2,), (3,)))))
    other = Measured(Fixed(Turn(2, 1, 1, 1.0, 1.0, ((1,), (9,)))))
    one.measure()
    other.measure()
    assert same_outputs(one, other) == "1 of 2"


@pytest.mark.parametrize("slots", [1, 3])
def test_the_server_gets_raw_ids_and_makes_just_as_many_tokens_as_asked(server, tmp_path, slots):
    from generate.llama import LlamaServer
    from generate.ways import Asked

    asked = [Asked(tuple(range(place, place + 5)), place + 2) for place in range(5)]
    way = LlamaServer(server, tmp_path / "model.gguf", slots, 1, asked)
    try:
        turn = way.turn()
        assert turn.outputs == tuple(tuple(range(p + 5, p + 7 + p)) for p in range(5))
        assert (turn.requests, turn.prompt_tokens, turn.new_tokens) == (5, 25, 20)
        pid = way._process.pid
    finally:
        way.close()
    assert not Path(f"/proc/{pid}").exists()


def test_a_server_that_ends_at_once_is_an_error_and_not_a_wait(tmp_path):
    from generate.llama import LlamaServer
    from generate.ways import Asked

    binary = tmp_path / "llama-server"
    binary.write_text("#!/bin/sh\nexit 3\n")
    binary.chmod(0o755)
    with pytest.raises(SystemExit, match="did not start"):
        LlamaServer(binary, tmp_path / "model.gguf", 1, 1, [Asked((1,), 1)])
