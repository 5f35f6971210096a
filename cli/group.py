"""The group of all commands, and the one boundary where errors become text and exit codes.

It knows no command; what a command returns is the exit code.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from gsum.cli.commands import LazyGroup
from gsum.cli.config import options
from gsum.cli.render import print_error
from gsum.cli.streams import PIPE_CLOSED, leave, silence
from gsum.store.errors import ExitCode, GsumError
from gsum.store.version import VERSION

BUG = 70

_HELP_WIDTH = 80
_NEAR = re.compile(r"(.*?)\.? \(?D(id you mean .*\?)\)?", re.DOTALL)
"""How click ends a message with the names it thinks were meant."""
_QUOTED = re.compile(r"(?<!\w)'([^']+)'(?!\w)")


class UsageFailure(GsumError):
    """The command line can't be understood."""

    exit_code = ExitCode.USAGE


class Interrupted(GsumError):
    """The user stopped the command."""

    exit_code = ExitCode.INTERRUPTED


class Gsum(LazyGroup):
    """The group with its error boundary. `main` always ends in SystemExit."""

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,  # noqa: ARG002 - always `gsum`
        **extra: Any,  # noqa: ANN401
    ) -> NoReturn:
        """Run a command line and exit with its code."""
        extra["standalone_mode"] = False
        code = self._guarded(list(sys.argv[1:] if args is None else args), extra)
        leave(code)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as declared by click
        """Run the command; what click would take for its own is told apart here."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            silence()
            return PIPE_CLOSED
        except (KeyboardInterrupt, EOFError):
            raise Interrupted("interrupted") from None

    def _guarded(self, arguments: list[str], extra: dict[str, Any]) -> int:
        try:
            return int(super().main(arguments, "gsum", **extra) or 0)
        except GsumError as error:
            failure = error
        except click.ClickException as error:
            failure = _usage(error)
        except click.Abort:
            failure = Interrupted("interrupted")
        except BrokenPipeError:
            silence()
            return PIPE_CLOSED
        except OSError as error:
            failure = GsumError(f"the system refused: {error.strerror or type(error).__name__}", facts=_file(error))
        except Exception as error:
            failure = _bug(error)
        print_error(failure, json=_wants_json(arguments), color=_color(arguments))
        return int(failure.exit_code)


EXIT_CODES = """\b
Exit codes:
  0  ok                        6    model or toolchain
  1  an action failed          7    a requested target is INVALID
  2  usage                     8    not reproducible
  3  declarations or gold      9    budget reached
  4  stale or not built        10   damage found
  5  store                     130  interrupted
  70 a bug in gsum             141  the reader of the output went away
"""


@click.group(
    "gsum",
    cls=Gsum,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(VERSION, prog_name="gsum")
@options(principal=True, toolchain=True)
def cli() -> None:
    """Build summaries of documents, serve what is current, refuse what is stale."""


class _Bug(GsumError):
    exit_code = BUG  # type: ignore[assignment]


def _bug(error: Exception) -> GsumError:
    """Return what is said of an error that should not happen: never its text, which may quote a document."""
    if os.environ.get("GSUM_DEBUG"):
        sys.excepthook(type(error), error, error.__traceback__)
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "?" if place is None else f"{os.path.basename(place.tb_frame.f_code.co_filename)}:{place.tb_lineno}"  # noqa: PTH119
    facts = {"kind": type(error).__name__, "place": where}
    return _Bug("this is a bug in gsum", facts=facts, hint="run it again with GSUM_DEBUG=1 and report the trace")


def _file(error: OSError) -> dict[str, object]:
    return {} if error.filename is None else {"file": error.filename}


def _usage(error: click.ClickException) -> GsumError:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "gsum"
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return UsageFailure(f"`{path}` needs a command", facts=_commands(error.ctx), hint=f"{path} --help")
    message, _, hint = error.format_message().partition("\n")
    if message.endswith(":"):  # click lists choices below a sentence that it puts behind another
        message, _, lead = message.rpartition(". ")
        hint = f"{lead[:1].lower()}{lead[1:]} {hint}"
    if near := _NEAR.fullmatch(message):
        message, hint = near[1], f"d{near[2]}"
    message, hint = (_QUOTED.sub(r"`\1`", " ".join(text.split())) for text in (message, hint))
    return UsageFailure(message[:1].lower() + message[1:].removesuffix("."), hint=hint or f"{path} --help")


def _commands(context: click.Context | None) -> dict[str, object]:
    """Return the commands of a group with what each does, as its help shows them."""
    group = context.command if context is not None else None
    if context is None or not isinstance(group, click.Group):
        return {}
    found = ((name, group.get_command(context, name)) for name in group.list_commands(context))
    return {name: command.get_short_help_str(_HELP_WIDTH) for name, command in found if command is not None}


def _wants_json(arguments: list[str]) -> bool:
    return "--json" in (arguments[: arguments.index("--")] if "--" in arguments else arguments)


def _color(arguments: list[str]) -> bool | None:
    """Whether errors are coloured, told from the arguments alone: they may be what is wrong."""
    given = [value for name, value in itertools.pairwise(arguments) if name == "--color"]
    given += [argument.removeprefix("--color=") for argument in arguments if argument.startswith("--color=")]
    if given and given[-1] in ("always", "never"):
        return given[-1] == "always"
    return False if os.environ.get("NO_COLOR") else None
