"""Where a sweep keeps its points: a run directory each, named by the hash of its scenario.

A point is written beside its place and moved there when it is whole. So a sweep that was killed goes on where it was,
and one whose scenario was changed keeps the points that are still the same.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from emu.errors import EmuError, InputError
from emu.results.directory import MANIFEST, give_to_caller, read_manifest
from emu.sweep.points import Point

_POINTS = "points"
_DRAFT = ".part"
_DIGITS = 16
"""Of a hash, in a directory's name."""


@dataclass(frozen=True, slots=True)
class Store:
    """The directory of a sweep."""

    directory: Path

    @classmethod
    def open(cls, directory: Path) -> Store:
        """The store in a directory, made if it is not there.

        Raises InputError for a directory that holds something else, or cannot be made.
        """
        try:
            (directory / _POINTS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            hint = "name another by --out"
            raise InputError(f"cannot make the sweep's directory {directory}: {error.strerror}", hint=hint) from error
        if (directory / MANIFEST).exists():
            raise InputError(f"{directory} is a run directory", hint="name another by --out")
        return cls(directory)

    def place(self, point: Point) -> Path:
        """The run directory of a point."""
        return self.directory / _POINTS / point.scenario.hash[:_DIGITS]

    def holds(self, point: Point) -> bool:
        """Whether a point was run to its end."""
        with suppress(InputError):
            manifest = read_manifest(self.place(point))
            return manifest.scenario_hash == point.scenario.hash and not manifest.partial
        return False

    def draft(self, point: Point) -> Path:
        """An empty directory for a point that is about to run; what an earlier attempt left goes. Raises EmuError."""
        place = self.place(point)
        draft = place.with_name(place.name + _DRAFT)
        try:
            for left in (place, draft):
                if left.exists():
                    shutil.rmtree(left)
            draft.mkdir()
        except OSError as error:
            raise EmuError(f"cannot make {draft}: {error.strerror}") from error
        return draft

    def keep(self, point: Point) -> Path:
        """Put the draft of a point in its place, now that it is whole."""
        place = self.place(point)
        place.with_name(place.name + _DRAFT).replace(place)
        return place

    def discard(self, point: Point) -> None:
        """Forget the draft of a point that was not run to its end."""
        place = self.place(point)
        shutil.rmtree(place.with_name(place.name + _DRAFT), ignore_errors=True)

    def give(self) -> None:
        """Under sudo, let the caller own all of it."""
        give_to_caller(self.directory)
