"""Run directories: made, written and read. Plain files, no absolute paths inside: they can be moved and sent."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from pydantic import ValidationError

from emu.errors import EmuError, InputError
from emu.outcome import Outcome
from emu.results.columns import SCHEMA_VERSION, TABLES, Table, Value
from emu.results.manifest import SCENARIO_FILE, Manifest
from emu.results.rows import Row, rows_of
from emu.results.stored_summary import SUMMARY_FILE, summary_text
from emu.results.wiring import FABRICS_FILE, wiring_text
from emu.scenario.schema import Scenario

MANIFEST = "manifest.json"
DEFAULT_PARENT = Path("runs")


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run directory, read back. tables: by name, one mapping a row, cells as their columns declare them."""

    manifest: Manifest
    scenario: str
    tables: Mapping[str, list[dict[str, Value]]]


def create_directory(scenario: Scenario, out: Path | None = None) -> Path:
    """Make an empty run directory: `out`, or `runs/<name>-<date>-<time>` here.

    Raises InputError if `out` is a file, holds anything, or cannot be made.
    """
    try:
        if out is None:
            return _fresh(DEFAULT_PARENT, f"{scenario.name}-{time.strftime('%Y%m%d-%H%M%S')}")
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise InputError(f"the run directory {out} is not empty", hint="name one that is new")
    except OSError as error:
        place = out or DEFAULT_PARENT
        raise InputError(f"cannot make the run directory {place}: {error.strerror}", hint="name another") from error
    return out


def write_run(outcome: Outcome) -> None:
    """Write tables, scenario, wiring, summary and manifest into the run's directory; the manifest comes last.

    Raises EmuError if the disk does not take it.
    """
    directory = outcome.directory
    try:
        for table in TABLES:
            rows = (row for fabric in outcome.fabrics for row in rows_of(table.name, fabric))
            _write(directory / table.file, partial(_write_rows, table, rows))
        _write(directory / SCENARIO_FILE, lambda file: file.write(outcome.scenario.to_json()))
        _write(directory / FABRICS_FILE, lambda file: file.write(wiring_text(outcome)))
        _write(directory / SUMMARY_FILE, lambda file: file.write(summary_text(outcome)))
        manifest = Manifest.of(outcome).model_dump_json(indent=2)
        _write(directory / MANIFEST, lambda file: file.write(manifest + "\n"))
        give_to_caller(directory)
    except OSError as error:
        raise EmuError(f"cannot write {error.filename or directory}: {error.strerror}") from error


def read_run(directory: Path) -> StoredRun:
    """Read a run directory. Raises InputError for one that is none, not whole, or of a later version."""
    manifest = read_manifest(directory)
    try:
        scenario = (directory / SCENARIO_FILE).read_text()
    except OSError as error:
        raise _not_whole(directory, error) from error
    return StoredRun(manifest, scenario, {table.name: read_rows(directory / table.file, table) for table in TABLES})


def read_manifest(directory: Path) -> Manifest:
    """Read a run directory's manifest. Raises InputError as `read_run` does."""
    try:
        return Manifest.model_validate_json((directory / MANIFEST).read_bytes())
    except OSError as error:
        raise _not_whole(directory, error) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        hint = f"this emu reads schema version {SCHEMA_VERSION}"
        raise InputError(f"{directory}/{MANIFEST}: {where}: {first['msg']}", hint=hint) from error


def read_rows(path: Path, table: Table) -> list[dict[str, Value]]:
    """Read a table's file, cells as their columns declare them. Raises InputError, with the line of a wrong cell."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = {column.name for column in table.columns} - set(reader.fieldnames or ())
            if missing:
                raise InputError(f"{path}: there is no column {min(missing)}")
            return [_typed(row, table, f"{path}:{reader.line_num}") for row in reader]
    except OSError as error:
        raise _not_whole(path.parent, error) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: {error}") from error


def _typed(row: Mapping[str, str | None], table: Table, place: str) -> dict[str, Value]:
    try:
        return {column.name: column.read(row[column.name] or "") for column in table.columns}
    except ValueError as error:
        raise InputError(f"{place}: {error}") from error


def _not_whole(directory: Path, error: OSError) -> InputError:
    name = Path(str(error.filename)).name
    return InputError(f"{directory} is no whole run directory: {name}: {error.strerror}")


def give_to_caller(directory: Path) -> None:
    """Under sudo, make the caller the owner of a directory and all that is in it, so that it can be removed."""
    user, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() != 0 or not (user.isdecimal() and group.isdecimal()):
        return
    for path in (directory, *directory.rglob("*")):
        os.chown(path, int(user), int(group), follow_symlinks=False)


def _fresh(parent: Path, name: str) -> Path:
    """A new directory; a number follows the name if two runs begin in one second."""
    made = not parent.exists()
    parent.mkdir(parents=True, exist_ok=True)
    if made:
        give_to_caller(parent)
    attempt = 1
    while True:
        directory = parent / (name if attempt == 1 else f"{name}-{attempt}")
        try:
            directory.mkdir()
            return directory
        except FileExistsError:
            attempt += 1


def _write(path: Path, fill: Callable[[TextIO], object]) -> None:
    """Write a file whole or not at all."""
    draft = path.with_name(f"{path.name}.part")
    with draft.open("w", encoding="utf-8", newline="") as file:
        fill(file)
    draft.replace(path)


def _write_rows(table: Table, rows: Iterable[Row], file: TextIO) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(column.name for column in table.columns)
    writer.writerows([_cell(row[column.name]) for column in table.columns] for row in rows)


def _cell(value: Value) -> str:
    """Twelve significant digits: a nanosecond in a quarter of an hour."""
    if value is None:
        return ""
    return f"{value:.12g}" if isinstance(value, float) else str(value)
