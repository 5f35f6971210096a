"""The entry point: a plain build with nothing to do is answered at once, all else by the group of commands.

It imports neither click nor msgspec: together they take longer than looking at ten thousand files.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import NoReturn

from gsum.cli.streams import leave, prepare_streams
from gsum.store.errors import ExitCode


def main() -> NoReturn:
    """Run the command line of this process and exit with its code."""
    prepare_streams()
    found = None
    if sys.argv[1:2] == ["build"]:
        plain = importlib.import_module("gsum.cli.plain")
        try:
            patterns = plain.plain_patterns(sys.argv[1:], os.environ)
            found = None if patterns is None else plain.plain_build(patterns, os.environ)
        except KeyboardInterrupt:
            sys.stderr.write("error: interrupted\n")
            leave(int(ExitCode.INTERRUPTED))
    if isinstance(found, int):
        leave(found)
    importlib.import_module("gsum.cli.group").cli.main(obj=found)
    raise AssertionError("the group always exits")
