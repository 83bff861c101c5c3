"""What a sweep came to: one row for each point, fabric and phase; and the same over the seeds, in a few rows."""

from __future__ import annotations

import csv
import os
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from emu.errors import EmuError
from emu.results.directory import read_manifest
from emu.results.manifest import Manifest
from emu.results.stored_summary import read_summary
from emu.results.summary import FabricSummary
from emu.sweep.running import Result
from emu.verdict.levels import Level, worst

WHOLE: Final = "all phases"
TABLE_FILE: Final = "sweep.csv"
_COLUMNS: Final = (
    "seed",
    "fabric",
    "phase",
    "duration_s",
    "duration_min_s",
    "duration_max_s",
    "ideal_s",
    "exposed_s",
    "dark_share",
    "changes",
    "verdict",
    "directory",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One phase (or the whole, from time zero to the end) of one fabric at one point. Modelled seconds.

    duration, lowest, highest: median and spread over the repeats. ideal: None where nothing was measured.
    exposed, dark_share: None of the whole. changes: of circuits, in the whole run.
    """

    values: Mapping[str, Any]
    seed: int
    fabric: str
    phase: str
    duration: float | None
    lowest: float | None
    highest: float | None
    ideal: float | None
    exposed: float | None
    dark_share: float | None
    changes: int
    verdict: Level
    directory: Path


@dataclass(frozen=True, slots=True)
class Cell:
    """A phase of a fabric for some values of the parameters, over all seeds. Modelled seconds."""

    values: Mapping[str, Any]
    fabric: str
    phase: str
    median: float
    lowest: float
    highest: float
    seeds: int
    changes: float
    verdict: Level


def rows_of(results: Iterable[Result]) -> list[Row]:
    """The rows of the points that were run, in their order. Raises InputError for a run directory that was spoiled."""
    return [row for result in results if not result.problem for row in _rows(result)]


def _rows(result: Result) -> Iterator[Row]:
    summary, manifest = read_summary(result.directory), read_manifest(result.directory)
    measured = manifest.engine != "model"
    for fabric in summary.fabrics:
        changes = _changes(manifest, fabric.name)
        yield _row(result, fabric, changes, WHOLE, (fabric.end,) * 3, fabric.ideal_end if measured else None)
        for phase in fabric.phases:
            times = (phase.duration, phase.duration_min, phase.duration_max)
            ideal = phase.ideal if measured else None
            yield _row(result, fabric, changes, phase.phase, times, ideal, phase.exposed, phase.dark_share)


def _row(
    result: Result,
    fabric: FabricSummary,
    changes: int,
    phase: str,
    times: tuple[float | None, float | None, float | None],
    ideal: float | None,
    exposed: float | None = None,
    dark_share: float | None = None,
) -> Row:
    point, (duration, lowest, highest) = result.point, times
    return Row(
        values=point.values,
        seed=point.seed,
        fabric=fabric.name,
        phase=phase,
        duration=duration,
        lowest=lowest,
        highest=highest,
        ideal=ideal,
        exposed=exposed,
        dark_share=dark_share,
        changes=changes,
        verdict=fabric.verdict.level,
        directory=result.directory,
    )


def _changes(manifest: Manifest, fabric: str) -> int:
    """Changes of circuits that were made in the first repeat."""
    entry = next(entry for entry in manifest.fabrics if entry.name == fabric)
    return sum(change.outcome == "committed" for change in entry.repeats[0].changes) if entry.repeats else 0


# -- over the seeds ---------------------------------------------------------------------------------------------------


def cells_of(rows: Sequence[Row]) -> list[Cell]:
    """The rows with all seeds together, in the order of the points."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row.duration is not None:
            groups.setdefault((row.fabric, row.phase, *map(str, row.values.values())), []).append(row)
    return [_cell(group) for group in groups.values()]


def _cell(rows: Sequence[Row]) -> Cell:
    first, times = rows[0], [row.duration for row in rows if row.duration is not None]
    return Cell(
        values=first.values,
        fabric=first.fabric,
        phase=first.phase,
        median=statistics.median(times),
        lowest=min(row.lowest for row in rows if row.lowest is not None),
        highest=max(row.highest for row in rows if row.highest is not None),
        seeds=len(rows),
        changes=statistics.mean(row.changes for row in rows),
        verdict=worst(row.verdict for row in rows),
    )


# -- the file ---------------------------------------------------------------------------------------------------------


def write_table(rows: Sequence[Row], directory: Path) -> Path:
    """Write all rows as a CSV file into a directory, and return where it is.

    The first columns are the parameters, as the scenario writes their values; `directory` is relative to the file.
    Raises EmuError if the disk does not take it.
    """
    path = directory / TABLE_FILE
    parameters = list(rows[0].values) if rows else []
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with draft.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*parameters, *_COLUMNS])
            writer.writerows(_line(row, directory) for row in rows)
        draft.replace(path)
    except OSError as error:
        raise EmuError(f"cannot write {path}: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)
    return path


def _line(row: Row, directory: Path) -> list[object]:
    times = (row.duration, row.lowest, row.highest, row.ideal, row.exposed, row.dark_share)
    numbers = ["" if value is None else f"{value:.12g}" for value in times]
    where = row.directory.relative_to(directory)
    return [*row.values.values(), row.seed, row.fabric, row.phase, *numbers, row.changes, row.verdict, where]
