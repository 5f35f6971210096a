"""Targets that a build counts as cached without having looked at them: their dossiers stand as they were. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class StandingDossier(msgspec.Struct, frozen=True):
    """A dossier of a package that is served as it was: the parts that its root is made of."""

    package: str
    dossier: str
    parts: tuple[str, ...]

    def labels(self) -> list[str]:
        """Return the labels of its targets."""
        return [f"//{self.package}:{self.dossier}/{part}" for part in self.parts]


class Cached(msgspec.Struct, frozen=True):
    """The labels that were cached, made only when asked for, sorted: whether a dossier stood or was analysed tells
    whether its manifest changed, which may be for what the principal may not read.
    """

    labels: tuple[str, ...]
    standing: tuple[StandingDossier, ...] = ()

    def __len__(self) -> int:
        return len(self.labels) + sum(len(one.parts) for one in self.standing)

    def __iter__(self) -> Iterator[str]:
        yield from sorted([*self.labels, *(label for one in self.standing for label in one.labels())])
