"""Requests for a tiny model, and clients that ask a warm worker for them."""

import os
import time
from pathlib import Path

import msgspec
from support.tiny_model import toolchain_for
from support.warm_workers import only

from gsum.engine.executors.make import make_executor
from gsum.engine.executors.protocol import ExecRequest
from gsum.engine.executors.staying import Warm
from gsum.rules.config import NumericsSection
from gsum.rules.requests import Message, Request, Role

RAGGED = NumericsSection("ragged-1", 1)
ENDLESS = "start: /[a-z]{3400}/"
SECRET = "Sesame-4711"


class Clients:
    """Executors over one folder of sockets, all closed at the end, and the notices of their workers."""

    def __init__(self, model: Path, tmp_path: Path, sockets: Path):
        self.model, self.tmp_path, self.sockets = model, tmp_path, sockets
        self.notices, self.made = [], []

    def __call__(self, numerics=RAGGED, idle=300, model=None, alone=False, **changes):
        made = make_executor(
            toolchain_for(model or self.model, **changes),
            numerics,
            cache_dir=self.tmp_path / "cache",
            workspace_root=self.tmp_path,
            name="tiny",
            environ=os.environ,
            warm=Warm(self.sockets, idle, self.notices.append),
            alone=alone,
        )
        self.made.append(made)
        return made

    def started(self):
        """What was said of the workers, in order: whether each was warm."""
        return [notice.warm for notice in self.notices if notice.seconds is None]


def ask(letter: str, text: str = "Product P-1 site: Lyon.", *, timeout: int = 120, **changes) -> ExecRequest:
    request = Request((Message(Role.SYSTEM, "Copy."), Message(Role.USER, text)), 1, None, 12, 500, "t", "p")
    return ExecRequest(letter * 64, msgspec.structs.replace(request, **changes), timeout)


def answers(executor, count):
    found = []
    while len(found) < count:
        found += executor.wait(120)
    return {outcome.key[0]: outcome for outcome in found}


def one(executor, letter="a", **changes):
    executor.submit([ask(letter, **changes)])
    return answers(executor, 1)[letter]


def sent(executor, folder, count):
    """Let an executor hand over what it has, and wait until the worker has `count` requests at hand."""
    until(lambda: executor.wait(0) or only(folder).status.at_hand == count, 60)


def until(condition, seconds=20.0):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)
