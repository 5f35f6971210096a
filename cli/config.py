"""Options, environment and working directory of a command, as one frozen value; every command starts from it.

The module that reads the environment, but for what `cli.main` needs before any of this is known. It prints nothing and
opens nothing, so that `gsum --version` and queries load no store.
"""

from __future__ import annotations

import enum
import importlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from gsum.cli.light import STORE_FOLDER
from gsum.rules.root import find_root

F = TypeVar("F", bound=Callable[..., Any])

_META = "gsum.options"
_REPEATED = ("workspace", "store", "principal", "toolchain")


class Color(enum.Enum):
    """When to colour what is printed."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Config(msgspec.Struct, frozen=True):
    """Options and environment of one command. Null: not given."""

    cwd: Path
    cache: Path | None = None
    runtime: Path | None = None
    workspace: Path | None = None
    store: Path | None = None
    principal: str | None = None
    toolchain: str | None = None
    json: bool = False
    color: Color = Color.AUTO
    environ: Mapping[str, str] = {}
    given: tuple[str, ...] = ()
    """The options among those above that stand on the command line and that a next command needs too."""

    @property
    def root(self) -> Path:
        """The workspace's root: as given, else the nearest one above the working directory.

        Raises:
            NoWorkspace: when there is none.
        """
        return find_root(self.cwd if self.workspace is None else self.cwd / self.workspace)

    @property
    def cache_dir(self) -> Path:
        """The folder of fetched models: GSUM_CACHE, else gsum's folder among the user's caches."""
        if self.cache is not None:
            return self.cache
        found: Path = importlib.import_module("platformdirs").user_cache_path("gsum")
        return found

    @property
    def runtime_dir(self) -> Path:
        """The folder of warm workers' sockets: GSUM_RUNTIME_DIR, else gsum's in XDG_RUNTIME_DIR, else the user's own
        among temporary files.
        """
        if self.runtime is not None:
            return self.runtime
        session = self.environ.get("XDG_RUNTIME_DIR")
        if session and os.access(session, os.W_OK):
            return Path(session) / "gsum"
        return Path(self.environ.get("TMPDIR") or "/tmp") / f"gsum-{os.getuid()}"

    def store_folder(self, root: Path) -> Path:
        """The folder of the store: as given, else `.gsum` in the workspace."""
        return root / STORE_FOLDER if self.store is None else self.cwd / self.store

    def typed(self, *words: str, without: Sequence[str] = ()) -> str:
        """Return a command line to type next, with the options that say where and for whom as they were given.

        `without` names those that the command does not take.
        """
        pairs = zip(self.given[::2], self.given[1::2], strict=True)
        options = [word for pair in pairs if pair[0].removeprefix("--") not in without for word in pair]
        return shlex.join(["gsum", *words, *options])

    @property
    def colored(self) -> bool | None:
        """Whether to colour; null: as the terminal wants it."""
        if self.color is Color.AUTO:
            return False if self.environ.get("NO_COLOR") else None
        return self.color is Color.ALWAYS


def config_from(given: Mapping[str, Any], environ: Mapping[str, str], cwd: Path) -> Config:
    """Return the configuration that options and an environment make; options win."""
    cache, runtime = environ.get("GSUM_CACHE"), environ.get("GSUM_RUNTIME_DIR")
    store = given.get("store") or environ.get("GSUM_STORE") or None
    return Config(
        cwd=cwd,
        cache=cwd / cache if cache else None,
        runtime=cwd / runtime if runtime else None,
        workspace=given.get("workspace"),
        store=Path(store) if store else None,
        principal=given.get("principal"),
        toolchain=given.get("toolchain"),
        json=bool(given.get("json")),
        color=Color(given.get("color") or "auto"),
        environ=dict(environ),
        given=tuple(word for name in _REPEATED if name in given for word in (f"--{name}", str(given[name]))),
    )


def check_text(context: click.Context, parameter: click.Parameter, value: object) -> object:
    """Refuse the value of an option that is no text: bytes that the encoding of arguments can't decode."""
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= one <= "\udfff" for one in value):
        raise click.BadParameter("is not valid text in the encoding of this terminal", context, parameter)
    return value


def _remember(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Keep an option where it can be given before the command's name as well as after it; the last one wins."""
    if value == "":
        raise click.BadParameter("is empty", context, parameter)
    check_text(context, parameter, value)
    if value:
        context.meta.setdefault(_META, {})[parameter.name] = value


def _option(*names: str, **settings: Any) -> Callable[[F], F]:  # noqa: ANN401 - handed on to click
    return click.option(*names, expose_value=False, callback=_remember, **settings)


class GivenPath(click.Path):
    """A path as given. An empty one is refused: as a `Path` it would be the working directory."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Return a path."""
        if not os.fspath(value):
            self.fail("is empty", param, ctx)
        return super().convert(value, param, ctx)


_PATH = GivenPath(path_type=Path)
_GLOBAL = (
    _option("-C", "--workspace", type=_PATH, metavar="DIR", help="The workspace; else the nearest one above."),
    _option("--store", type=_PATH, metavar="DIR", help="The store; else GSUM_STORE, else `.gsum` in the workspace."),
    _option("--json", is_flag=True, help="Print one JSON document."),
    _option("--color", type=click.Choice([color.value for color in Color]), help="When to colour."),
)
_PRINCIPAL = _option("--principal", metavar="P", help="Read as P; else the principal of BUILD.toml.")
_TOOLCHAIN = _option("--toolchain", metavar="T", help="Use toolchain T; else the declared one.")


def options(*, principal: bool = False, toolchain: bool = False) -> Callable[[F], F]:
    """Decorate a command (or the group) with the options that all have, and those asked for."""

    def decorate(function: F) -> F:
        extra = ((_TOOLCHAIN,) if toolchain else ()) + ((_PRINCIPAL,) if principal else ())
        for option in (*reversed(_GLOBAL), *extra):
            function = option(function)
        return function

    return decorate


def current_config() -> Config:
    """Return the configuration of the command that runs."""
    return config_from(click.get_current_context().meta.get(_META, {}), os.environ, Path.cwd())
