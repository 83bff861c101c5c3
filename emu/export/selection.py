"""What of a run is exported: all of it, or one fabric or repeat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from emu.errors import InputError
from emu.export.cells import Row, text, whole
from emu.results import Manifest, read_run
from emu.results.manifest import FabricEntry
from emu.scenario.fields import nearest


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows of a run directory that are exported.

    fabrics: the manifest's entries of the fabrics chosen, in its order. tables: by name, rows of these fabrics and, if
    one was chosen, this repeat. notes: what a user should know of the export, added to by whoever writes it.
    """

    directory: Path
    manifest: Manifest
    fabrics: tuple[FabricEntry, ...]
    repeat: int | None
    tables: Mapping[str, Sequence[Row]]
    notes: list[str] = field(default_factory=list)

    def rows(self, table: str, fabric: str, repeat: int) -> list[Row]:
        """The rows of a table for one repeat on one fabric."""
        return [row for row in self.tables[table] if _is_of(row, fabric, repeat)]

    def runs(self) -> list[tuple[FabricEntry, int]]:
        """Every fabric with each of its repeats that was run and is exported."""
        return [
            (fabric, repeat)
            for fabric in self.fabrics
            for repeat in range(1, len(fabric.repeats) + 1)
            if self.repeat in (None, repeat)
        ]

    def one_fabric(self, what: str) -> FabricEntry:
        """The fabric, for formats that have no place for its name. Raises InputError if there are several."""
        if len(self.fabrics) > 1:
            names = ", ".join(fabric.name for fabric in self.fabrics)
            problem = f"{self.directory} has {len(self.fabrics)} fabrics, and {what} is of one"
            raise InputError(problem, hint=f"choose one with --fabric: {names}")
        return self.fabrics[0]


def select(directory: Path, fabric: str | None = None, repeat: int | None = None) -> Selection:
    """Read a run directory and choose from it.

    Raises InputError if it is none, holds no measured fabric, or has no such fabric or repeat.
    """
    run = read_run(directory)
    fabrics = _fabrics(directory, run.manifest, fabric)
    most = max(len(entry.repeats) for entry in fabrics)
    if repeat is not None and not 1 <= repeat <= most:
        raise InputError(f"{directory} has no repeat {repeat}", hint=f"valid: {_numbers(most)}")
    names = {entry.name for entry in fabrics}
    tables = {name: _chosen(rows, names, repeat) for name, rows in run.tables.items()}
    return Selection(directory, run.manifest, fabrics, repeat, tables)


def _fabrics(directory: Path, manifest: Manifest, wanted: str | None) -> tuple[FabricEntry, ...]:
    measured = tuple(entry for entry in manifest.fabrics if entry.repeats)
    if not measured:
        raise InputError(f"{directory} holds no measured repeat on any fabric, so there is nothing to export")
    if wanted is None:
        return measured
    chosen = tuple(entry for entry in measured if entry.name == wanted)
    if not chosen:
        hint = nearest(wanted, [entry.name for entry in measured])
        raise InputError(f"{directory} has no measured fabric {wanted!r}", hint=hint)
    return chosen


def _chosen(rows: Iterable[Row], fabrics: set[str], repeat: int | None) -> list[Row]:
    return [row for row in rows if row["fabric"] in fabrics and (repeat is None or row["repeat"] == repeat)]


def _is_of(row: Row, fabric: str, repeat: int) -> bool:
    return text(row, "fabric") == fabric and whole(row, "repeat") == repeat


def _numbers(most: int) -> str:
    return "1" if most == 1 else f"1 to {most}"
